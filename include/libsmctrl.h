/*
 * libsmctrl's interface (Bakita and Anderson, "Hardware Compute Partitioning on NVIDIA GPUs", RTAS 2023), on top of
 * nvtaskset: a program says itself which TPCs its kernels may not use. Link with -lsmctrl.
 *
 * Masks
 *   - TPC n is bit n, and a bit that is set disables the TPC. To allow TPCs 0 to 4 only: ~0x1full.
 *   - TPCs are numbered as nvtaskset -T shows them, SM id / SMs per TPC, on every GPU. Bits of TPCs that a GPU does not
 *     have mean nothing.
 *   - The 64-bit forms know TPCs 0 to 63. On larger GPUs they disable the others, too: who asks for some TPCs gets no
 *     more. The _ext forms know TPCs 0 to 127.
 *   - A mask of 0 is none: what is set more generally applies again, and the whole GPU where there is nothing. To let a
 *     stream use the whole GPU although there is a mask for all kernels, disable a TPC that does not exist.
 *
 * Which mask a kernel obeys: the one for the thread's next launch, else the one of its stream, else the one for all. The
 * partition of the process (nvtaskset SET COMMAND, nvtaskset -p) stands above them: a kernel uses what both leave
 * enabled, or the partition where that is nothing. What green contexts are restricted to holds as well.
 *
 * A kernel obeys what is in force when it is launched. Kernels in CUDA graphs obey the mask for all kernels, and when it
 * changes the next launch of the graph does: masks of streams and for the next launch do not reach them. A launch whose
 * blocks must run at once, cooperative or in clusters, and that does not fit, gets the smallest superset that it fits.
 *
 * Functions return 0 or an errno number; those that the original declares void can be called as if they were. Where masks
 * have no effect, a line on standard error says why, once. All can be called from any thread.
 */
#ifndef LIBSMCTRL_H
#define LIBSMCTRL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

__extension__ typedef unsigned __int128 uint128_t;

/* For all kernels of this process that have no other mask. */
int libsmctrl_set_global_mask(uint64_t mask);
int libsmctrl_set_global_mask_ext(uint128_t mask);

/* For kernels launched into a stream, a CUstream or cudaStream_t, until it is destroyed. A default stream is NULL or
 * cudaStreamLegacy, in all contexts; cudaStreamPerThread is the calling thread's. */
int libsmctrl_set_stream_mask(void *stream, uint64_t mask);
int libsmctrl_set_stream_mask_ext(void *stream, uint128_t mask);

/* For the next kernel that the calling thread launches. CUDA may have kernels of its own. */
int libsmctrl_set_next_mask(uint64_t mask);
int libsmctrl_set_next_mask_ext(uint128_t mask);

/* The mask that disables all but TPCs `low` to `high_exclusive` - 1. EINVAL where there are none, or they are above 63
 * (127). */
int libsmctrl_make_mask(uint64_t *result, uint32_t low, uint32_t high_exclusive);
int libsmctrl_make_mask_ext(uint128_t *result, uint32_t low, uint32_t high_exclusive);

/* How many TPCs a GPU has: GPU number `dev` of nvtaskset -T, which is by PCI address; or of CUDA, which need not be. ENODEV
 * where there is none, or nobody knows it. */
int libsmctrl_get_tpc_info(uint32_t *num_tpcs, int dev);
int libsmctrl_get_tpc_info_cuda(uint32_t *num_tpcs, int cuda_dev);

/* The GPCs that have TPCs, by number, and for each the TPCs that are in it, as bits that are set: ~(*tpcs_for_gpc)[0] is
 * the mask that leaves the first GPC. The array is the library's. ENODEV as above; ENOENT where GPCs are not known;
 * ERANGE where a TPC has a number that the 64-bit form does not reach. */
int libsmctrl_get_gpc_info(uint32_t *num_enabled_gpcs, uint64_t **tpcs_for_gpc, int dev);
int libsmctrl_get_gpc_info_ext(uint32_t *num_enabled_gpcs, uint128_t **tpcs_for_gpc, int dev);

/* Launches a kernel into the stream, in the current context, and looks where it ran: 0 where that was on TPCs `low` to
 * `high_exclusive` - 1 and nowhere else, -1 otherwise. Prints with `echo` where it ran. */
int libsmctrl_validate_stream_mask(void *stream, int low, int high_exclusive, bool echo);

/* Not needed: whatever is called first makes the library ready. After it, whether masks have an effect. */
int libsmctrl_init(void);
int libsmctrl_init_from_cuda(void);
int libsmctrl_is_init(void);
const char *libsmctrl_get_version(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
