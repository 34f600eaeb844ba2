/*
 * The memory of another process: its map, and reading and writing it.
 *
 * Through /proc alone, so nothing depends on its files, its root directory or its namespaces. It runs while we look:
 * whatever was read may be out of date, and a hostile process may have put anything there.
 */
#ifndef NVTASKSET_ATTACH_MEMORY_H
#define NVTASKSET_ATTACH_MEMORY_H

#include "base/mapping.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory {
	int file;
	char *text; /* what the paths point into */
	struct mapping *mappings; /* by address */
	size_t count;
};

/* A part of an address space. */
struct range {
	uint64_t start, end;
};

static inline bool range_has(const struct range *range, uint64_t address)
{
	return address >= range->start && address < range->end;
}

/* Reads the map as it is now. -1 with errno; the caller closes it if 0. */
int memory_open(struct memory *memory, pid_t pid);
void memory_close(struct memory *memory);

/* The mapping that holds the address, or NULL. */
const struct mapping *memory_find(const struct memory *memory, uint64_t address);

/* All of it, or false. */
bool memory_read(const struct memory *memory, uint64_t address, void *to, size_t length);
bool memory_write(const struct memory *memory, uint64_t address, const void *from, size_t length);

/* A string, cut where it is longer than there is room, and fit to be shown. "" where it cannot be read. */
void memory_read_text(const struct memory *memory, uint64_t address, char *to, size_t room);

#endif
