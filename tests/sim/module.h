/*
 * Modules and functions, from PTX text: only the names of entries and their parameters are read. What the simulated GPU executes is
 * a function in C for each kernel that it knows by name; the kernels themselves are in src/gpu/kernels.h.
 */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "api.h"

#include <stdatomic.h>

#define LAUNCH_ARGUMENTS_MAX 200 /* bytes: a copy, in a graph, is described in as many */

struct launch;
struct schedule;

typedef CUresult kernel_model(const struct launch *launch, const struct schedule *schedule);

/* NULL if the simulator knows no kernel of that name; such a kernel does nothing. */
kernel_model *kernel_model_of(const char *name);

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
	bool is_unannounced; /* to the driver this is memory work, not a kernel */
	_Atomic bool allows_large_clusters;
	_Atomic int dynamic_shared_limit;
	struct CUfunc_st *next;
};

struct CUmod_st {
	CUcontext family; /* only contexts of this family can launch it */
	struct CUfunc_st *functions;
};

/* Announces one of the driver's own modules, which every context has; some of them have the device runtime. */
void module_announce_drivers(CUcontext context);

#endif
