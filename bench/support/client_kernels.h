/*
 * The kernels with which it is tried what programs share, as PTX text. The simulator knows span by its name; peek
 * does nothing there.
 *
 * span(uint64_t *output, uint64_t ns): each block stays for so many ns of the GPU's clock, whatever runs beside it, and
 *     writes to output[3 * block] and the two after it: when it began, when it ended, and on which SM it ran.
 * peek(uint64_t *output, uint64_t address): reads the address, and writes to *output what is there.
 */
#ifndef CLIENT_KERNELS_H
#define CLIENT_KERNELS_H

extern const char client_kernels_ptx[];

#endif
