/*
 * Memory of a process that others read, and that its segment names: an area of counts.h or timestamps.h. It is a memfd
 * of its own, and not the segment, which may move to another file: what the hardware writes to must never move, and is
 * never unmapped.
 */
#ifndef NVTASKSET_STATE_KERNELS_AREA_H
#define NVTASKSET_STATE_KERNELS_AREA_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct segment_area;

/* How an area begins. */
struct area_header {
	_Atomic uint64_t magic; /* last */
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

/* Makes one of zeros, but for its header, below the address `reach` if possible. -1 with the reason. */
int area_make(struct area *area, const struct area_kind *kind, uint64_t reach, struct error *error);

/* The segment names it here from now on. */
void area_name(const struct area *area, struct segment_area *here);

/* Whether its file is open: the program may have closed it. */
bool area_is_open(const struct area *area, const struct area_kind *kind);

/* In the child of a fork: it is its parent's. */
void area_leave(struct area *area, const struct area_kind *kind);

/* --- another process's ------------------------------------------------------------------------------------------- */

/* Maps memory for reading. `directory` is the process's /proc/PID/fd, `number` its descriptor. NULL if that is not a memfd with
 * this inode number and size that nobody can cut; errno then tells of a limit only if there was one. The process may be
 * hostile. The caller unmaps it. */
const void *area_map(int directory, uint64_t number, uint64_t inode, size_t size);

/* The same, in the place of what is mapped there; NULL: anywhere. */
const void *area_map_at(int directory, uint64_t number, uint64_t inode, size_t size, void *at);

/* Whether it is of this kind; NULL is not. */
bool area_is(const void *memory, const struct area_kind *kind);

/* Whether this errno is a limit of the reader's own: it says nothing about the process. */
bool area_is_limit(int code);

#endif
