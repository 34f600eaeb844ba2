/*
 * A program or library in another process, read from memory: the place, and the defined symbols. The file is not used,
 * since it may be deleted, or in another mount namespace.
 */
#pragma once

#include "attach/memory.h"

struct image {
	struct range range; /* from the first page to the end of the zeroed data */
	struct range gap;   /* from the end of the code to the end of the page */
	uint64_t bias;      /* added to addresses in the file */
	uint64_t symbols, strings, hash; /* addresses of the tables */
};

/* Reads the headers of the image at the address: nothing to close. False without an image for this machine. */
bool image_open(struct image *image, const struct memory *memory, uint64_t start);

/* The address of a symbol defined by the image, or 0. `size` may be NULL. */
uint64_t image_find(const struct image *image, const struct memory *memory, const char *name, uint64_t *size);
