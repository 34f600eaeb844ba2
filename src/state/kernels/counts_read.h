/*
 * Reading the counts of a process (counts.h). The process may be hostile: a reader believes neither the names nor the
 * content, and sums do not wrap around.
 */
#pragma once

#include "counts.h"

#include <sys/types.h>

#define COUNTS_GPUS (SEGMENT_GPUS + 1) /* all unknown GPUs are an entry */

struct counts_of_gpu {
	struct pci_address pci;
	uint64_t launched; /* a kernel that no call announced counts as launched when ended */
	uint64_t ended;
	uint64_t in_flight;
	uint64_t unheard; /* of `launched` and `ended`: kernels that no call announced */
	uint32_t gaps;    /* a bit for each enum counts_gap, without the gaps of all GPUs */
};

/* Whether the number of launched kernels is known; whether the numbers of ended kernels and of kernels in flight
 * are. */
bool counts_know_launched(uint32_t gaps);
bool counts_know_ended(uint32_t gaps);

struct counts {
	uint32_t gaps; /* of all GPUs */
	unsigned int count;
	struct counts_of_gpu gpus[COUNTS_GPUS];
};

/* Reads the counts of process `pid`, the owner of the segment. GPUs without a context are not in the list. -1 with the
 * reason and errno, without a meaning for the process, if the reader's own limits keep the reader from reading. */
int counts_read(const struct segment *segment, pid_t pid, struct counts *counts, struct error *error);

/* The counts of a GPU, all 0 if the GPU is not in the list, with the gaps of all GPUs. */
struct counts_of_gpu counts_on(const struct counts *counts, struct pci_address pci);

/* --- a place at any moment ---------------------------------------------------------------------------------------- */

/* A number that changes with each launch: before a kernel is uploaded, and before the call for a graph begins. Changes
 * also with counts_place_is_exact. */
uint64_t counts_place_launches(const struct counts_place *place);

/* The number of kernels in flight, at least 1 during the launch of a graph. Reads the ended kernels first. */
uint64_t counts_place_in_flight(const struct counts_place *place);

bool counts_place_is_exact(const struct counts_place *place); /* counts each end exactly */

/* The counts of the calling process, without a system call. Not while an area is made. */
void counts_read_own(const struct counts_areas *areas, const struct segment *segment, struct counts *counts);

/* The owner's places in use on the GPU, at most `room`; returns the number of places in use. Places are never
 * unmapped. */
unsigned int counts_own_places(const struct counts_areas *areas, struct pci_address pci,
                               const struct counts_place *places[], unsigned int room);

/* --- a view --------------------------------------------------------------------------------------------------------
 * The counts of another process, mapped for as long as a reader looks: reading makes no system call. A single thread
 * opens and closes views at a time. Other threads may still read a closed view, and see zeros or foreign counts. */

struct counts_view {
	pid_t pid;
	const struct segment_memory *segment; /* NULL: nothing is mapped */
	struct counts_view_area {
		uint64_t inode; /* 0: none yet */
		const struct counts_memory *memory;
	} areas[SEGMENT_AREAS];
};

/* Maps the segment by descriptor and inode number of process `pid`. False if the file is no segment, or cannot be
 * opened. */
bool counts_view_open(struct counts_view *view, pid_t pid, uint64_t descriptor, uint64_t inode);
void counts_view_close(struct counts_view *view);

void counts_view_follow(struct counts_view *view); /* maps new areas of the process */

/* Whether the process still executes the same program; also true if the reader's own limits hide the process. */
bool counts_view_is_current(const struct counts_view *view);

/* As counts_on; all 0 if nothing is mapped. */
struct counts_of_gpu counts_view_read(const struct counts_view *view, struct pci_address pci);

/* The places in use on the GPU, at most `room`; returns the number of places in use. */
unsigned int counts_view_places(const struct counts_view *view, struct pci_address pci,
                                const struct counts_place *places[], unsigned int room);

/* A number that changes with new places and with gaps of all GPUs; whether there is a gap of all GPUs. */
const _Atomic uint64_t *counts_view_number(const struct counts_view *view);
bool counts_view_has_gap(const struct counts_view *view);

/* The number of segment_count_opening, and the word of segment_rings. */
const _Atomic uint64_t *counts_view_openings(const struct counts_view *view);
_Atomic uint32_t *counts_view_rings(const struct counts_view *view);
