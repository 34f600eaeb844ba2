/*
 * A file in Chrome's trace-event format: a JSON array, which viewers open also without its end. A program has a track
 * for the partition, and for each stream and graph; a GPU has the number of busy TPCs: the sum over the programs, of
 * each the most of its kernels at the time; at most the GPU's number, since programs may share TPCs.
 *
 * Hostile programs get bounded memory: the longest unused track becomes the next stream's. Events of a take beyond
 * TRACKS_EVENTS are dropped, and counted.
 */
#pragma once

#include "cli/gpus.h"
#include "show/activity.h"

#include <inttypes.h>

#define TRACKS_LANES 64 /* of a program */
#define TRACKS_EVENTS 32768
#define TRACKS_EDGES (1U << 20) /* of a GPU, in a round of takes; more are left out */
#define TRACKS_BYTES (UINT64_C(1) << 30) /* a larger file is of no use to a viewer */
#define TRACKS_TEXT 512 /* the most bytes of a name */

struct tracks {
	FILE *file;
	uint64_t begin_ns; /* by process_clock_ns: times in the file begin here */
	uint64_t events, bytes, dropped; /* dropped: kernels */
	const struct topology_list *gpus;
	struct gpu_choices chosen; /* none: all */
	pid_t *pids;
	size_t pid_count; /* 0: all programs */
	struct program_tracks *programs;
	struct gpu_track {
		struct pci_address pci;
		char label[PCI_ADDRESS_TEXT];
		const struct topology *topology; /* NULL: not known */
		struct edge {
			uint64_t time;
			int tpcs; /* more from then on, or fewer */
		} *edges;
		size_t count, room;
		int64_t busy, written;
	} loads[TOPOLOGY_GPUS_MAX];
	unsigned int load_count;
	uint64_t last_thread;
	size_t names; /* the bytes of all names of functions */
};

/* Whether the process is among the programs, and has to do with the GPUs, or may have not yet. */
bool tracks_want(const void *tracks, const struct process *process);

/* What a take tells. */
void tracks_hear(void *tracks, const struct watched *watched, const struct monitor_times *times);

/* After a look: names new programs, and ends the tracks of gone programs. */
void tracks_follow(struct tracks *tracks, const struct activities *activities);

/* Writes the numbers of busy TPCs until then: all programs have told the time before. */
void tracks_write_loads(struct tracks *tracks, uint64_t until_ns);

/* Ends all tracks, and the file's text. */
void tracks_end(struct tracks *tracks);
