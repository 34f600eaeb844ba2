/*
 * The kernels with which it is tried what programs share, as PTX text. The simulator knows span by its name; peek
 * does nothing there.
 *
 * span(struct span *output, uint64_t ns): each block stays for so many ns of the GPU's clock, whatever runs beside it,
 *     and writes output[block].
 * peek(uint64_t *output, uint64_t address): reads the address, and writes to *output what is there.
 */
#ifndef CLIENT_KERNELS_H
#define CLIENT_KERNELS_H

#include <stdint.h>

struct span {
	uint64_t start, end; /* on the GPU's clock, in ns; all processes on a GPU read the same one */
	uint64_t sm;         /* under MPS, a number of the client's own */
};

extern const char client_kernels_ptx[];

#endif
