/*
 * A mapping of memory, from a line of /proc/PID/maps.
 */
#ifndef NVTASKSET_MAPPING_H
#define NVTASKSET_MAPPING_H

#include <stdbool.h>
#include <stdint.h>

struct mapping {
	uint64_t start, end;
	int protection;   /* PROT_READ, PROT_WRITE and PROT_EXEC */
	uint64_t offset;  /* in its file */
	uint64_t inode;   /* of its file; 0 if it has none */
	const char *path; /* the rest of the line, with its newline if it has one; "" if the mapping has no name */
};

/* `mapping` points into `line`. False if it is no such line. */
bool mapping_parse(struct mapping *mapping, const char *line);

static inline bool mapping_has(const struct mapping *mapping, uint64_t address)
{
	return address >= mapping->start && address < mapping->end;
}

#endif
