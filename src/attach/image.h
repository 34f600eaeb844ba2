/*
 * A program or library that the dynamic linker has loaded into another process, as its memory shows it: where it is,
 * and which symbols it defines. Its file is not needed, which may be gone or in another mount namespace.
 */
#ifndef NVTASKSET_ATTACH_IMAGE_H
#define NVTASKSET_ATTACH_IMAGE_H

#include "attach/memory.h"

struct image {
	struct range range; /* all that its file and its zeroed data take */
	struct range gap;   /* behind its code, to the end of the page */
	uint64_t bias;      /* what is added to addresses in the file */
	uint64_t symbols, strings, hash; /* addresses of its tables */
};

/* Whether an image of this machine's kind starts at the address. */
bool image_open(struct image *image, const struct memory *memory, uint64_t start);

/* The address of a symbol that it defines, or 0. `size` may be NULL. */
uint64_t image_find(const struct image *image, const struct memory *memory, const char *name, uint64_t *size);

#endif
