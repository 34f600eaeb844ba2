/*
 * The memory of another process: the map, and access to the content.
 *
 * All goes through /proc/PID, so nothing depends on the process's files, root directory or namespaces. The process runs
 * meanwhile: what was read may be out of date, and a hostile process may have put anything there.
 */
#pragma once

#include "base/proc.h"

#include <sys/types.h>

struct memory {
	int file;
	char *text; /* with the mappings' paths */
	struct mapping *mappings; /* sorted by address */
	size_t count;
};

struct range {
	uint64_t start, end;
};

static inline bool range_has(const struct range *range, uint64_t address)
{
	return address >= range->start && address < range->end;
}

/* Reads the current map. -1 with errno; on success, the caller closes the memory. */
int memory_open(struct memory *memory, pid_t pid);
void memory_close(struct memory *memory);

/* The mapping that holds the address, or NULL. */
const struct mapping *memory_find(const struct memory *memory, uint64_t address);

/* False unless everything was read or written. */
bool memory_read(const struct memory *memory, uint64_t address, void *to, size_t length);
bool memory_write(const struct memory *memory, uint64_t address, const void *from, size_t length);

/* Reads a string, cut to `room`, with unprintable characters replaced. "" if unreadable. */
void memory_read_text(const struct memory *memory, uint64_t address, char *to, size_t room);
