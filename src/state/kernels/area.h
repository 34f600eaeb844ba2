/*
 * An area: a memfd of a process, named by the process's segment, for other processes to read (counts.h, timestamps.h).
 * An area is not in the segment, since the segment may move to another file: the GPU writes to an area, so an area
 * never moves, and is never unmapped.
 */
#pragma once

#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct segment_area;

struct area_header {
	_Atomic uint64_t magic; /* written last */
	uint64_t version;
	uint64_t size;
};

struct area_kind {
	const char *name; /* of the file */
	uint64_t magic, version;
	size_t size;
};

/* --- the owner's side ------------------------------------------------------------------------------------------- */

struct area {
	struct area_header *memory; /* NULL: none */
	int file;
	ino_t inode;
};

/* Makes an area of zeros except for the header, below the address `reach` if possible. -1 with the reason. */
int area_make(struct area *area, const struct area_kind *kind, uint64_t reach, struct error *error);

/* Names the area in the segment, at `here`. */
void area_name(const struct area *area, struct segment_area *here);

/* Whether the file of the area is open: the program may have closed the file. */
bool area_is_open(const struct area *area, const struct area_kind *kind);

/* In the child of a fork: the area belongs to the parent. */
void area_leave(struct area *area, const struct area_kind *kind);

/* --- the reader's side -------------------------------------------------------------------------------------------- */

/* Maps memory of a hostile process for reading. `directory` is the process's /proc/PID/fd, `number` a descriptor. NULL
 * if the descriptor is no sealed memfd with the inode number and the size; errno is a limit of the reader
 * (proc_is_limit) only if a limit was the reason. The caller unmaps the memory. */
const void *area_map(int directory, uint64_t number, uint64_t inode, size_t size);

/* The same in place of the mapping at `at`; NULL: anywhere. */
const void *area_map_at(int directory, uint64_t number, uint64_t inode, size_t size, void *at);

/* Whether the memory is an area of the kind; NULL is not. */
bool area_is(const void *memory, const struct area_kind *kind);
