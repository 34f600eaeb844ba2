/*
 * A mapping, as a line of /proc/PID/maps tells of it.
 */
#ifndef NVTASKSET_MAPPING_H
#define NVTASKSET_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

struct mapping {
	uint64_t start, end;
	int protection;   /* as mprotect takes it */
	uint64_t offset;  /* in its file */
	uint64_t inode;   /* of its file; 0 where it has none */
	const char *path; /* the rest of the line; "" where it has none */
};

/* False where it is no such line. */
bool mapping_parse(struct mapping *mapping, const char *line);

static inline bool mapping_has(const struct mapping *mapping, uint64_t address)
{
	return address >= mapping->start && address < mapping->end;
}

#endif
