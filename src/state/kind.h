/*
 * Whose segment a file is, for those who have found one. Its process may be hostile: nothing in it is believed.
 */
#ifndef NVTASKSET_SEGMENT_KIND_H
#define NVTASKSET_SEGMENT_KIND_H

#include "layout.h"

enum segment_kind {
	KIND_OWN,
	KIND_INHERITED, /* an ancestor's, that came through an exec or a fork */
	KIND_LEFT,      /* likewise, and its owner has gone on with a new one */
	KIND_NOT_READY, /* which it may be making */
	KIND_NOBODYS
};

struct segment_header {
	uint64_t magic, version_and_size;
	struct identity owner;
};

/* All zero where that is no segment, or none yet. */
struct segment_header segment_read_header(int file);

/* What it is for this process. */
enum segment_kind segment_kind_for(const struct segment_header *header, struct identity who);

/* Maps it if it is one, also one that was left. Takes over `file`: it is the segment's or closed. */
enum segment_state segment_map_found(struct segment *segment, int file, struct error *error);

#endif
