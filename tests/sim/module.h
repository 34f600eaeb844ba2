/* Modules and functions, from PTX text: of that only entry names and parameters are read. */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "kernels.h"

#define FUNCTION_NAME_MAX 64
#define FUNCTION_PARAMETERS_MAX 8

struct CUfunc_st {
	char name[FUNCTION_NAME_MAX];
	CUmodule module;
	kernel_model *model; /* NULL: does nothing */
	unsigned int parameter_count;
	struct {
		unsigned int offset;
		unsigned int bytes;
	} parameters[FUNCTION_PARAMETERS_MAX];
	bool is_unannounced; /* no kernel, for the driver: memory work */
	_Atomic bool allows_large_clusters;
	_Atomic int dynamic_shared_limit;
	struct CUfunc_st *next;
};

struct CUmod_st {
	CUcontext family; /* the contexts that can launch it are those of this one's family */
	struct CUfunc_st *functions;
};

/* One of the driver's own, which are in every context, and some of them have the device runtime. */
void module_announce_drivers(CUcontext context);

#endif
