/*
 * Reading what a process counts (counts.h). The process may be hostile: a reader believes neither the names nor the content, and
 * sums do not wrap around.
 */
#ifndef NVTASKSET_STATE_KERNELS_COUNTS_READ_H
#define NVTASKSET_STATE_KERNELS_COUNTS_READ_H

#include "counts.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define COUNTS_GPUS (SEGMENT_GPUS + 1) /* and those that are not known, as one */

struct counts_of_gpu {
	struct pci_address pci;
	uint64_t launched; /* those that were never announced count when they end */
	uint64_t ended;
	uint64_t in_flight;
	uint64_t unheard; /* of `launched` and `ended`: nobody announced them */
	uint32_t gaps;    /* a bit for each enum counts_gap; those of all GPUs are not among them */
};

/* Whether the number of kernels that were launched is known; of those that have ended, and are in flight. */
bool counts_know_launched(uint32_t gaps);
bool counts_know_ended(uint32_t gaps);

struct counts {
	uint32_t gaps; /* of all GPUs */
	unsigned int count;
	struct counts_of_gpu gpus[COUNTS_GPUS];
};

/* Reads the counts of process `pid`, whose segment this is. A GPU that it has made no context on is not in the list. -1
 * with the reason, and errno, if the reader's own limits keep it from that: they say nothing about the process. */
int counts_read(const struct segment *segment, pid_t pid, struct counts *counts, struct error *error);

/* Those of one GPU, all 0 if it is not in the list, with the gaps of all GPUs. */
struct counts_of_gpu counts_on(const struct counts *counts, struct pci_address pci);

/* --- one place, at any moment --------------------------------------------------------------------------------------- */

/* A number that changes with each launch: of a kernel before it is uploaded, of a graph before its call begins. Also with what
 * counts_place_is_exact says. */
uint64_t counts_place_launches(const struct counts_place *place);

/* How many kernels are in flight there, at least one while a graph is being launched. What ended is read first. */
uint64_t counts_place_in_flight(const struct counts_place *place);

/* Whether all ends are counted exactly there. */
bool counts_place_is_exact(const struct counts_place *place);

/* The same for the owner, without a system call. Not while an area is made. */
void counts_read_own(const struct counts_areas *areas, const struct segment *segment, struct counts *counts);

/* The owner's places in use on that GPU, at most `room`; returns how many there are. They are never unmapped. */
unsigned int counts_own_places(const struct counts_areas *areas, struct pci_address pci, const struct counts_place *places[],
                               unsigned int room);

/* --- a view ----------------------------------------------------------------------------------------------------------
 * Another process's counts, mapped for as long as a reader wants to look: reading them then makes no system call. One thread at a time
 * opens and closes views; others may go on reading what was in one that is closed: then these are zeros, or another process's. */

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

/* What the process counts on one GPU, with the gaps of all; all 0 where nothing is mapped. No system call. */
struct counts_of_gpu counts_view_read(const struct counts_view *view, struct pci_address pci);

/* The places in use on that GPU, at most `room`; returns how many there are. */
unsigned int counts_view_places(const struct counts_view *view, struct pci_address pci, const struct counts_place *places[],
                                unsigned int room);

/* A number that changes when there may be more of them, or a gap of all; whether there is such a gap. */
const _Atomic uint64_t *counts_view_number(const struct counts_view *view);
bool counts_view_has_gap(const struct counts_view *view);

#endif
