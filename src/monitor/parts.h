/*
 * The parts of a monitor (monitor.h), each in its file:
 *
 *   monitor.c    GPUs with their counts, and the order of the parts in a take
 *   rings.c      the rings with the timestamps of the process's contexts
 *   functions.c  the functions with names there
 *   events.c     the events since the last take
 *   clocks.c     the GPUs' clocks, by the events
 *   graphs.c     launches of graphs
 *
 * Only for these files. A monitor is for one thread at a time.
 */
#pragma once

#include "monitor.h"
#include "monitor/estimate/graph_times.h"
#include "state/kernels/counts_read.h"
#include "state/kernels/timestamps_read.h"
#include "state/segment/edit.h"

/* A GPU's clock is of interest for so long after the GPU's last event. */
#define MONITOR_IDLE_NS UINT64_C(5000000000)

#define MONITOR_BIT(gap) (UINT32_C(1) << (gap))

struct watched_gpu {
	struct monitor_gpu taken;
	struct times times;
	uint64_t ended;             /* kernels, at the last read */
	uint64_t running, in_flight; /* of the current take: by timestamps, by counts */
	unsigned int graphs;        /* in the GPU's rings */
	uint64_t found_at;          /* the last time when there was something to see; 0: never */
	bool misses_graph;          /* a launched graph of this take does not tell its end */
	bool was_short;             /* in the last take, more kernels had no timestamp than were in flight */
	bool has_ring;
};

#define MONITOR_GRAPHS_MAX 256 /* of a ring */

/* Bounds on memory and time for a hostile process: rings, instances of graphs on a GPU, functions, the bytes of names,
 * events of one take. More is not known, or lost. */
#define MONITOR_RINGS_MOST 64
#define MONITOR_GRAPHS_MOST 1024
#define MONITOR_FUNCTIONS_MOST 4096
#define MONITOR_TEXT_MOST (4U << 20)
#define MONITOR_EVENTS_MOST 65536

struct watched_graph {
	uint64_t exec, first, last, end;
	unsigned int kernels, tpcs;
	struct node_order order;
	uint64_t seen_end;    /* the timestamp of the last taken end */
	uint64_t sampled;     /* the last taken timestamp of a node */
	uint64_t polled_end, polled_at; /* of the latest node, at the last close look; when */
	uint64_t idle_number; /* earlier launches had ended by the last take */
	struct replays replays;
};

/* A function in a ring, and the index in the monitor's list. */
struct watched_name {
	uint64_t function;
	unsigned int index;
};

#define MONITOR_NAMES (2 * TIMESTAMPS_FUNCTIONS)

struct watched_ring {
	struct timestamps_reader reader;
	struct watched_gpu *gpu;
	uint64_t scanned_at; /* when the last scan began */
	unsigned int names_read;
	struct watched_name names[MONITOR_NAMES]; /* a hash table; function 0: free */
	struct watched_graph *graphs[MONITOR_GRAPHS_MAX];
	unsigned int graph_count;
};

struct watched_event {
	struct watched_ring *ring;
	struct timestamps_event event;
	uint64_t unseen, seen;
};

struct monitor {
	struct editor editor;
	uint64_t user; /* the process's */
	struct {
		uint64_t inode;
		const struct timestamps_memory *memory;
		struct watched_ring *rings[COUNTS_PLACES];
	} areas[SEGMENT_AREAS];
	uint32_t gaps; /* of all GPUs, in this take */
	struct counts counts;
	struct watched_gpu *gpus[MONITOR_GPUS];
	unsigned int gpu_count;
	struct monitor_function *functions;
	unsigned int function_count, function_room;
	uint16_t places[2 * MONITOR_FUNCTIONS_MOST]; /* hash table of functions, by name: an index; 0: free */
	size_t text;                              /* the bytes of all names */
	size_t reserved;                          /* monitor_reserve_memory */
	unsigned int ring_count;
	struct watched_event *found;
	size_t found_count, found_room;
	uint64_t limit_ns;        /* as `tells`: monitor_tell */
	bool tells;
	bool has_revision;        /* of this take */
	struct segment_revision revision;
	struct segment_events_read events;
	struct node_timestamps nodes; /* of the graph in question */
	uint64_t began, compared_at, comparisons, counted_at;
	uint64_t renewed_at;     /* the lease */
	bool has_lapsed;         /* the lease had ended when this take began */
	bool is_locked;          /* another editor's lock keeps the look from the process */
	unsigned int nodes_read; /* in this take */
};

/* --- memory.c ---------------------------------------------------------------------------------------------------- */

/* The memory of all looks of this process has a bound. One user's processes get no more than stays free for the rest.
 * False, and nothing is reserved, without as much. */
bool monitor_reserve_memory(struct monitor *monitor, size_t bytes);
void monitor_return_memory(struct monitor *monitor, size_t bytes);

/* --- monitor.c ---------------------------------------------------------------------------------------------------- */

/* NULL if there is no memory, or no room, as only a hostile process needs. */
struct watched_gpu *monitor_gpu_for(struct monitor *monitor, struct pci_address pci);

/* --- rings.c ----------------------------------------------------------------------------------------------------- */

/* Finds the areas and rings of now. `is_first`: a ring is read from here on; otherwise from its first launch on. */
void monitor_rings_find(struct monitor *monitor, bool is_first);

typedef void monitor_ring_action(struct monitor *monitor, struct watched_ring *ring);
void monitor_rings_each(struct monitor *monitor, monitor_ring_action *act);

/* Leaves the area with the number, and its rings. */
void monitor_rings_leave(struct monitor *monitor, unsigned int number);

/* --- functions.c ------------------------------------------------------------------------------------------------- */

/* Index 0 is for all functions without a name. False without memory. */
bool monitor_functions_add(struct monitor *monitor, const char *name);

/* The current names of the ring. */
void monitor_functions_read(struct monitor *monitor, struct watched_ring *ring);

/* By the ring's value for a function. */
unsigned int monitor_functions_number(struct watched_ring *ring, uint64_t function);
struct monitor_function *monitor_functions_find(struct monitor *monitor, struct watched_ring *ring, uint64_t function);

/* --- events.c ---------------------------------------------------------------------------------------------------- */

/* Adds events to the take: of ended kernels; the same, but of running kernels looks at the oldest only; of ended and
 * running kernels. */
void monitor_events_ended(struct monitor *monitor, struct watched_ring *ring);
void monitor_events_some(struct monitor *monitor, struct watched_ring *ring);
void monitor_events_all(struct monitor *monitor, struct watched_ring *ring);

/* --- clocks.c ---------------------------------------------------------------------------------------------------- */

/* Compares the clocks for the events of the take from `from` on. */
void monitor_clocks_compare_events(struct monitor *monitor, size_t from);

/* Looks all the time, for a while, where the clocks are not known well. */
void monitor_clocks_compare_closely(struct monitor *monitor);

/* --- graphs.c ---------------------------------------------------------------------------------------------------- */

void monitor_graphs_launched(struct monitor *monitor, const struct watched_event *event);

/* Finds the graphs before a kernel that has ended, for times_add. */
void monitor_graphs_before(struct monitor *monitor, const struct watched_event *event, struct times_kernel *kernel);

void monitor_graphs_take(struct monitor *monitor, struct watched_ring *ring);
