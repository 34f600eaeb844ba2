/*
 * Reading a ring of timestamps (timestamps.h). Its owner may be hostile: no number in it is used as an index before it
 * is checked, and whatever stands there, the work is bounded.
 */
#ifndef NVTASKSET_STATE_KERNELS_TIMESTAMPS_READ_H
#define NVTASKSET_STATE_KERNELS_TIMESTAMPS_READ_H

#include "timestamps_layout.h"

/* How far one reader has read in one ring. All zero, but for the ring, reads from its oldest launch on. */
struct timestamps_reader {
	const struct timestamps *ring;
	uint64_t read;  /* all up to this number are done */
	uint64_t looked; /* all up to this number have been looked at */
	uint64_t done[TIMESTAMPS_CELLS / 64]; /* bit number % TIMESTAMPS_CELLS */
};

enum timestamps_state {
	TIMESTAMPS_ENDED,
	TIMESTAMPS_RUNNING, /* or waiting; it comes again in the next scan */
	TIMESTAMPS_GRAPH_LAUNCHED
};

struct timestamps_event {
	enum timestamps_state state;
	uint64_t number;
	bool was_looked_at; /* by the scan before this one, and had not ended then */
	uint64_t launched_ns;
	uint64_t timestamp_ns; /* of TIMESTAMPS_ENDED, the GPU's time */
	uint64_t function, stream; /* what the owner calls them */
	unsigned int tpcs;
	/* Of TIMESTAMPS_GRAPH_LAUNCHED: its nodes, and up to `end` its functions; first is 0: they are not known.
	 * `tpcs` is the number of kernels. */
	uint64_t exec, first, last, end;
};

typedef void timestamps_visitor(const struct timestamps_event *event, void *data);

/* Begins to read with what is launched from now on. */
void timestamps_reader_begin(struct timestamps_reader *reader, const struct timestamps *ring);

/* Visits what has ended, and what runs, since the last scan, in the order of launches; it stops when `running` kernels
 * were found that run. Returns how many were overwritten before they were read. */
uint64_t timestamps_scan(struct timestamps_reader *reader, unsigned int running, timestamps_visitor *visit, void *data);

/* The launch of this number, whatever was scanned. False if its record is not written yet, or not there any more, or it
 * will never end. */
bool timestamps_read_launch(const struct timestamps *ring, uint64_t number, struct timestamps_event *event);

/* The time at which the oldest launch was made that the ring still has; 0 if there is none. */
uint64_t timestamps_oldest(const struct timestamps_reader *reader);

/* What runs now never ends: it will not come again. */
void timestamps_give_up(struct timestamps_reader *reader);

/* A node of a graph. False if it has no cell any more. */
struct timestamps_node_event {
	uint64_t number;
	uint64_t exec, function;
	uint64_t timestamp_ns; /* 0: it has not ended yet */
	unsigned int tpcs;
	bool is_break; /* it is no node, see timestamps_add_node */
};
bool timestamps_read_node(const struct timestamps *ring, uint64_t number, struct timestamps_node_event *event);

/* How many nodes of the instance are kernels of the function; 0 if that is not there, or is not there any more. */
uint64_t timestamps_read_function(const struct timestamps *ring, uint64_t number, uint64_t exec, uint64_t *function);

/* How many names there are; the name `entry`, into `name`. False if there is none, or it is none. */
unsigned int timestamps_names_count(const struct timestamps *ring);
bool timestamps_read_name(const struct timestamps *ring, unsigned int entry, uint64_t *function,
                          char name[TIMESTAMPS_NAME_MAX + 1]);

#endif
