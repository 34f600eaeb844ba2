/* One kernel launch: from the driver call's arguments to the blocks' results. */
#ifndef SIM_LAUNCH_H
#define SIM_LAUNCH_H

#include "api.h"
#include "descriptor.h"
#include "module.h"

struct dimensions {
	unsigned int x, y, z;
};

struct launch {
	CUcontext context;
	CUstream stream;
	CUfunction function;
	struct dimensions grid;
	struct dimensions block;
	struct dimensions cluster; /* all 0 without clusters */
	bool cooperative;
	unsigned int shared_bytes;
	unsigned char arguments[LAUNCH_ARGUMENTS_MAX]; /* in the layout that the kernel reads */
};

/* In blocks. */
#define PORTABLE_CLUSTER 8
#define LARGEST_CLUSTER 16 /* if the function allows it */

size_t launch_blocks(const struct launch *launch);
unsigned int launch_threads(const struct launch *launch);      /* of one block */
unsigned int launch_cluster_size(const struct launch *launch); /* in blocks; 0 without clusters */

/* Fills a launch except for its arguments, or returns the error that the driver would return. The driver knows nothing
 * of partitions: it checks against the whole GPU, or the green context. */
CUresult launch_configure(struct launch *launch, const CUlaunchConfig *config, CUfunction function);

/* Copies the arguments of the call. */
CUresult launch_copy_arguments(struct launch *launch, void **parameters);

/* Lets the subscriber change the mask of a descriptor that has been written. */
void launch_upload(const struct launch *launch, struct descriptor *descriptor);

/* Runs all blocks on the TPCs that this descriptor enables. Ends the test if they would never finish. */
CUresult launch_run(const struct launch *launch, const struct descriptor *descriptor);

/* All of a launch outside of graphs; with this descriptor, which stays. */
CUresult launch_now(const struct launch *launch);
CUresult launch_by(struct descriptor *descriptor, const struct launch *launch);

/* The kernel has ended: carries out the releases of all slots. Where the memory is gone, the kernel has a fault. */
void release_all(CUcontext context, const struct descriptor *descriptor);

/* The driver asks to be told of a plain launch's end, in slot 0 if there is one; then, that it was told. If not, the
 * kernel has a fault: on the hardware, the next synchronisation would never end. */
uint32_t release_ask_for_end(CUcontext context, CUstream stream, struct descriptor *descriptor);
void release_check_end(uint32_t number);

#endif
