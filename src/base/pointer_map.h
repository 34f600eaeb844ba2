/*
 * Finds a struct by a pointer, which is the struct's first member: a hash table in one piece of memory, which grows. All
 * structs of a map are of one size, which each call is told. What is found or added stays where it is until the next is
 * added.
 *
 * For one thread at a time.
 */
#ifndef NVTASKSET_BASE_POINTER_MAP_H
#define NVTASKSET_BASE_POINTER_MAP_H

#include <stddef.h>

/* All zero is an empty one. */
struct pointer_map {
	void *structs; /* those whose pointer is NULL are free */
	size_t count;
	size_t room; /* a power of 2, or 0 */
};

/* NULL if it is not there. */
void *pointer_map_find(const struct pointer_map *map, size_t size, const void *pointer);

/* Adds one that is not there, and not NULL: all zero but for the pointer. NULL if there is no memory. */
void *pointer_map_add(struct pointer_map *map, size_t size, const void *pointer);

void pointer_map_clear(struct pointer_map *map);

#endif
