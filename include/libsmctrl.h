/*
 * libsmctrl's interface (Bakita and Anderson, "Hardware Compute Partitioning on NVIDIA GPUs", RTAS 2023), on top of
 * nvtaskset: the program itself disables TPCs for its kernels. Link with -lsmctrl.
 *
 * Masks
 *   - TPC n is bit n, and a set bit disables the TPC. To allow TPCs 0 to 4 only: ~0x1full.
 *   - On every GPU, TPCs have the numbers of nvtaskset -T: SM id / SMs per TPC. Bits of absent TPCs are ignored.
 *   - The 64-bit forms have bits for TPCs 0 to 63. On larger GPUs all TPCs above are disabled, too, so that a program
 *     never gets more TPCs than it asked for. The _ext forms have bits for TPCs 0 to 127.
 *   - A mask of 0 means no mask: the next more general mask applies, or the whole GPU without any mask. To let a stream
 *     use the whole GPU although there is a mask for all kernels, disable a TPC that does not exist.
 *
 * A kernel obeys one mask: the mask for the thread's next launch, or else the stream's mask, or else the mask for all
 * kernels. The partition of the process (nvtaskset SET COMMAND, nvtaskset -p) limits each mask: a kernel uses the TPCs
 * that mask and partition both enable. Without a TPC in both, the kernel uses the whole partition. Restrictions of
 * green contexts apply as well.
 *
 * A kernel obeys the masks at its launch. Kernels in CUDA graphs obey the mask for all kernels; after a change, from
 * the next launch of the graph on. Masks of streams and for the next launch do not apply to graphs. If the blocks of a
 * launch must run at once (cooperative launches and clusters) and do not fit, the launch gets the smallest superset
 * with room for the blocks.
 *
 * Unless noted, functions return 0 or an errno number. (In the original library, some return nothing.) If masks have no
 * effect, a line on standard error says why, once. All functions can be called from any thread.
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

/* For all kernels of this process without a mask of their own. */
int libsmctrl_set_global_mask(uint64_t mask);
int libsmctrl_set_global_mask_ext(uint128_t mask);

/* For kernels launched into a stream (CUstream or cudaStream_t), until the stream is destroyed. NULL and
 * cudaStreamLegacy mean the default streams of all contexts; cudaStreamPerThread means those of the calling thread. */
int libsmctrl_set_stream_mask(void *stream, uint64_t mask);
int libsmctrl_set_stream_mask_ext(void *stream, uint128_t mask);

/* For the calling thread's next kernel, perhaps a kernel of CUDA's own. */
int libsmctrl_set_next_mask(uint64_t mask);
int libsmctrl_set_next_mask_ext(uint128_t mask);

/* Makes the mask that disables all TPCs except `low` to `high_exclusive` - 1. EINVAL if no TPC is left, or a TPC is
 * above 63 (127 for _ext). */
int libsmctrl_make_mask(uint64_t *result, uint32_t low, uint32_t high_exclusive);
int libsmctrl_make_mask_ext(uint128_t *result, uint32_t low, uint32_t high_exclusive);

/* How many TPCs a GPU has. `dev` is the number in nvtaskset -T, in the order of PCI addresses; `cuda_dev` is CUDA's
 * number, which may differ. ENODEV if there is no such GPU, or its topology is unknown. */
int libsmctrl_get_tpc_info(uint32_t *num_tpcs, int dev);
int libsmctrl_get_tpc_info_cuda(uint32_t *num_tpcs, int cuda_dev);

/* The GPCs with TPCs, in the order of numbers. In each element, the bits of the GPC's TPCs are set: ~(*tpcs_for_gpc)[0]
 * is the mask that leaves only the first GPC. The array belongs to the library, and stays valid. ENODEV as above;
 * ENOENT if the GPCs are not known; ERANGE if a TPC's number is too large for the 64-bit form. */
int libsmctrl_get_gpc_info(uint32_t *num_enabled_gpcs, uint64_t **tpcs_for_gpc, int dev);
int libsmctrl_get_gpc_info_ext(uint32_t *num_enabled_gpcs, uint128_t **tpcs_for_gpc, int dev);

/* Launches a kernel into the stream, in the current context, and checks where the kernel ran. 0 if only on TPCs `low`
 * to `high_exclusive` - 1; otherwise -1. With `echo`, prints where the kernel ran. */
int libsmctrl_validate_stream_mask(void *stream, int low, int high_exclusive, bool echo);

/* Optional: the first call of any function makes the library ready. If masks have an effect, init returns 0, and
 * is_init 1; otherwise is_init returns 0. */
int libsmctrl_init(void);
int libsmctrl_init_from_cuda(void);
int libsmctrl_is_init(void);
const char *libsmctrl_get_version(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
