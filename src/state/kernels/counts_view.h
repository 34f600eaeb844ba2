/*
 * Another process's counts of kernels (counts.h), mapped for as long as a reader wants to look: reading them then makes no system
 * call. The process may be hostile: a reader believes neither the names nor the content. One thread at a time opens and closes views;
 * others may go on reading what was in one that is closed: then these are zeros, or another process's.
 */
#ifndef NVTASKSET_STATE_KERNELS_COUNTS_VIEW_H
#define NVTASKSET_STATE_KERNELS_COUNTS_VIEW_H

#include "counts.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct counts_view {
	pid_t pid;
	const struct segment_memory *segment; /* NULL: nothing is mapped */
	struct counts_view_area {
		uint64_t inode; /* 0: none yet */
		const struct counts_memory *memory;
	} areas[SEGMENT_AREAS];
};

/* Maps the segment that process `pid` has open as this descriptor, by the file's inode number. False if it is no segment, or
 * cannot be opened. */
bool counts_view_open(struct counts_view *view, pid_t pid, uint64_t descriptor, uint64_t inode);
void counts_view_close(struct counts_view *view);

/* Maps the areas that the process has made since the last time, if any. */
void counts_view_follow(struct counts_view *view);

/* Whether the process still executes the program whose counts these are; or this process's own limits keep it from being seen. */
bool counts_view_is_current(const struct counts_view *view);

/* What the process counts on one GPU, with the gaps of all. No system call. */
struct counts_of_gpu counts_view_read(const struct counts_view *view, struct pci_address pci);

/* The places in use on that GPU, at most `room`; returns how many there are. */
unsigned int counts_view_places(const struct counts_view *view, struct pci_address pci, const struct counts_place *places[],
                                unsigned int room);

/* A number that changes when there may be more of them, or a gap of all; whether there is such a gap. */
const _Atomic uint64_t *counts_view_number(const struct counts_view *view);
bool counts_view_has_gap(const struct counts_view *view);

#endif
