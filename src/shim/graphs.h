/*
 * CUDA graphs that follow a changed partition.
 *
 * A node of an instantiated graph is uploaded once, and keeps the mask of that moment (FACTS 7). After a change we have
 * what can be a kernel uploaded again at the graph's next launch, by disabling and enabling it. That takes the nodes of
 * the graph that was instantiated, so such a graph must live as long as what was made of it: when the application
 * destroys it earlier, the driver is given an empty graph to destroy instead (docs/hardware.md), and the real one goes
 * with the last instance.
 *
 * The driver keeps a node's launch descriptor and uploads the same one again: what we disabled there is taken back as
 * soon as it has been uploaded, or the masks of all partitions that ever were would gather in it.
 *
 * Out of reach, and counted, are: nodes that the application has destroyed in the graph since, nodes that kernels may
 * change (uploading them again would undo that), launches by kernels, graphs that were instantiated before we came, and
 * the bodies of conditional nodes that were added before.
 *
 * While the partition stays the same, a launch of a graph costs one comparison.
 */
#ifndef NVTASKSET_SHIM_GRAPHS_H
#define NVTASKSET_SHIM_GRAPHS_H

#include "driver/cuda.h"
#include "qmd.h"
#include "segment.h"

#include <stdbool.h>

/* Calls of the driver that we must hear of, by their published CUPTI_DRIVER_TRACE_CBID_* numbers. */
#define GRAPHS_CALLS(X)                  \
	X(513) /* cuGraphInstantiate */  \
	X(514) /* cuGraphLaunch */       \
	X(515) /* cuGraphLaunch_ptsz */  \
	X(516) /* cuGraphExecDestroy */  \
	X(517) /* cuGraphDestroy */      \
	X(522) /* cuGraphDestroyNode */  \
	X(578) /* cuGraphInstantiate_v2 */ \
	X(580) /* cuGraphUpload */       \
	X(581) /* cuGraphUpload_ptsz */  \
	X(643) /* cuGraphInstantiateWithFlags */ \
	X(656) /* cuGraphInstantiateWithParams */ \
	X(657) /* cuGraphInstantiateWithParams_ptsz */ \
	X(712) /* cuGraphAddNode */      \
	X(723) /* cuGraphAddNode_v2 */

/* Whether this thread is in a call that uploads nodes of a graph. In the static block of thread-local storage: the
 * launch path must not be the one to allocate it. */
extern __thread bool graphs_uploading __attribute__((tls_model("initial-exec")));

/* A descriptor of a graph's node is about to be narrowed: it is restored at the end of the call. One of an unknown
 * version will not be touched, and is left alone. */
void graphs_remember(const struct qmd_family *family, void *qmd);

/* Before any call comes. */
void graphs_use(const struct segment *segment);

/* Before that, in a process that runs before we come: it may have graphs that we shall never know. They keep the whole
 * GPU; their launches are counted where the partition is, or has been made, another. */
void graphs_expect_older(void);

/* A call begins, or has ended with this result. `arguments` are its own, one behind the other; what is written there
 * at its begin is what it works with. */
void graphs_call_begins(int call, void **arguments);
void graphs_call_ended(int call, void *const *arguments, CUresult result);

/* In the child of a fork: forgets all graphs, which the parent's CUDA took with it, and with them what other threads were
 * doing. */
void graphs_after_fork(void);

#endif
