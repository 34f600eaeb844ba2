/*
 * Finds a struct by a pointer, the struct's first member: a growing hash table in one piece of memory. All structs of a
 * map have the size given to each call. A found or added struct stays in place until the next addition. For one thread
 * at a time.
 */
#pragma once

#include <stddef.h>

/* All zero is an empty map. */
struct pointer_map {
	void *structs; /* a struct with a NULL pointer is free */
	size_t count;
	size_t room; /* a power of 2, or 0 */
	void *former; /* of the parent, in the child of a fork: a leak that is meant */
};

/* NULL if the pointer is not there. */
void *pointer_map_find(const struct pointer_map *map, size_t size, const void *pointer);

/* Adds a struct for a new pointer, not NULL: all zero except for the pointer. NULL without memory. */
void *pointer_map_add(struct pointer_map *map, size_t size, const void *pointer);

/* Finds or adds. NULL for a NULL pointer, or without memory. */
void *pointer_map_have(struct pointer_map *map, size_t size, const void *pointer);

void pointer_map_clear(struct pointer_map *map);

/* In the child of a fork: an empty map. A thread of the parent may have been in the middle of a change, so nothing is
 * freed. */
void pointer_map_forget(struct pointer_map *map);
