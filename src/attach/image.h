/*
 * A program or library in another process, read from its memory: where it lies, and which symbols it defines. Its
 * file is not used: it may be deleted, or in another mount namespace.
 */
#ifndef NVTASKSET_ATTACH_IMAGE_H
#define NVTASKSET_ATTACH_IMAGE_H

#include "attach/memory.h"

struct image {
	struct range range; /* from its first page to the end of its zeroed data */
	struct range gap;   /* from the end of its code to the end of the page */
	uint64_t bias;      /* added to addresses in the file */
	uint64_t symbols, strings, hash; /* addresses of its tables */
};

/* Opens the image at the address. False if there is none for this machine's architecture. */
bool image_open(struct image *image, const struct memory *memory, uint64_t start);

/* The address of a symbol that the image defines, or 0. `size` may be NULL. */
uint64_t image_find(const struct image *image, const struct memory *memory, const char *name, uint64_t *size);

#endif
