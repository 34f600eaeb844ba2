/*
 * The kernels of the experiments, as PTX text: the driver compiles it. To the simulator they are only names.
 *
 * read_clock(uint64_t *output): the GPU's clock, in ns; all processes on a GPU read the same one.
 * matmul(float *a, float *b, float *c, uint32_t n): c = a × b, in tiles of 32 × 32, one thread an element: blocks of
 *     (32, 32), a grid of (n / 32, n / 32).
 * copy(uint4 *to, uint4 *from, uint64_t count): as fast as the memory can. Any grid.
 * laps(uint64_t *stamps, uint64_t deadline, uint32_t rounds, uint32_t count): each block computes `count` times, for
 *     `rounds` rounds of 8 multiplications and additions a thread, and notes the time after each lap in
 *     stamps[block * count + lap]. It starts no lap once the GPU's clock shows `deadline`.
 */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

extern const char bench_kernels_ptx[];

#endif
