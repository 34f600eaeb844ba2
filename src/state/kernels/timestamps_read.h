/*
 * Reading a ring of timestamps (timestamps.h). The owner may be hostile: each number is checked before use as an index,
 * and the work is bounded for any content.
 */
#pragma once

#include "timestamps_layout.h"

/* The progress of a reader in a ring. All zero, except for the ring, begins with the oldest launch. */
struct timestamps_reader {
	const struct timestamps *ring;
	uint64_t read;  /* all launches up to this number are done */
	uint64_t looked; /* all launches up to this number have been looked at */
	uint64_t done[TIMESTAMPS_CELLS / 64]; /* bit number % TIMESTAMPS_CELLS */
};

enum timestamps_state {
	TIMESTAMPS_ENDED,
	TIMESTAMPS_RUNNING, /* or waiting; comes again in the next scan */
	TIMESTAMPS_GRAPH_LAUNCHED
};

struct timestamps_event {
	enum timestamps_state state;
	uint64_t number;
	bool was_looked_at; /* by the last scan, and had not ended */
	uint64_t launched_ns;
	uint64_t timestamp_ns; /* of TIMESTAMPS_ENDED, the GPU's time */
	uint64_t function, stream; /* as the owner names function and stream */
	unsigned int tpcs;
	struct qmd_grid grid;
	/* Of TIMESTAMPS_GRAPH_LAUNCHED: the nodes, and up to `end` the functions; `first` is 0 for unknown nodes.
	 * `tpcs` is the number of kernels. */
	uint64_t exec, first, last, end;
};

typedef void timestamps_visitor(const struct timestamps_event *event, void *data);

/* Begins with the next launch. */
void timestamps_reader_begin(struct timestamps_reader *reader, const struct timestamps *ring);

/* Visits ended and running launches since the last scan, in the order of launches, until `running` running kernels have
 * been visited. Returns the number of launches overwritten before being read. */
uint64_t timestamps_scan(struct timestamps_reader *reader, unsigned int running, timestamps_visitor *visit, void *data);

/* The launch with the number, scanned or not. False if the record is not yet written, or overwritten, or the launch
 * will never end. */
bool timestamps_read_launch(const struct timestamps *ring, uint64_t number, struct timestamps_event *event);

/* The time of the oldest launch in the ring; 0 if there is none. */
uint64_t timestamps_oldest(const struct timestamps_reader *reader);

/* Running launches never end: the scans leave them out. */
void timestamps_give_up(struct timestamps_reader *reader);

/* A node of a graph. False if the node has no cell any more. */
struct timestamps_node_event {
	uint64_t number;
	uint64_t exec, function;
	uint64_t timestamp_ns; /* 0: the node has not ended yet */
	unsigned int tpcs;
	struct qmd_grid grid;
	bool is_break; /* no node, see timestamps_add_node */
};
bool timestamps_read_node(const struct timestamps *ring, uint64_t number, struct timestamps_node_event *event);

/* The number of kernels of the function in the instance; 0 if the record is missing or overwritten. */
uint64_t timestamps_read_function(const struct timestamps *ring, uint64_t number, uint64_t exec, uint64_t *function);

/* The number of names; the name `entry`, into `name`. False without a valid name. */
unsigned int timestamps_names_count(const struct timestamps *ring);
bool timestamps_read_name(const struct timestamps *ring, unsigned int entry, uint64_t *function,
                          char name[TIMESTAMPS_NAME_MAX + 1]);
