/*
 * Whose segment a found file is. The process that has it open may be hostile: its content is not trusted.
 */
#ifndef NVTASKSET_STATE_SEGMENT_KIND_H
#define NVTASKSET_STATE_SEGMENT_KIND_H

#include "layout.h"

enum segment_kind {
	KIND_OWN,
	KIND_INHERITED, /* an ancestor's, inherited through fork or exec */
	KIND_LEFT,      /* inherited, and its owner has gone on with a new one */
	KIND_NOT_READY, /* the process may be making it */
	KIND_NOBODYS
};

struct segment_header {
	uint64_t magic, version_and_size;
	struct identity owner;
};

/* Reads the header. All zero if the file is not, or not yet, a segment. */
struct segment_header segment_read_header(int file);

/* What the segment is for the process `who`. */
enum segment_kind segment_kind_for(const struct segment_header *header, struct identity who);

/* Maps a segment, also one that its owner has left. Takes over `file`: it is then the segment's, or closed. */
enum segment_state segment_map_found(struct segment *segment, int file, struct error *error);

#endif
