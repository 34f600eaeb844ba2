/* A process that others find on the board, with work in flight on a GPU as the test says, and no CUDA. */
#ifndef NVTASKSET_TESTS_PEER_H
#define NVTASKSET_TESTS_PEER_H

#include "base/clock.h"
#include "state/board/board.h"
#include "state/kernels/counts.h"
#include "state/segment/owner.h"

#include <stdatomic.h>
#include <stdlib.h>

struct peer_process {
	struct segment segment;
	struct counts_areas areas;
	struct counts_place *place;
	struct board_claim claim; /* the test may change it before each peer_claim */
};

/* Ends the process if it cannot. */
static inline void peer_begin(struct peer_process *peer, struct pci_address pci)
{
	const struct segment_revision nothing = {.count = 0};
	struct error error;

	*peer = (struct peer_process){.areas = {.count = 0}};
	if (segment_create(&peer->segment, &nothing, NULL, -1, -1, &error) < 0 || board_join(&error) < 0)
		abort();
	segment_set_at_work(&peer->segment);
	peer->place = counts_take(&peer->areas, &peer->segment, pci, UINT64_MAX, 0, &error);
	if (!peer->place)
		abort();
	counts_begin(peer->place);
	peer->claim = (struct board_claim){
		.pci = pci,
		.tpcs = {{UINT64_MAX}},
		.priority = SEGMENT_PRIORITY_USUAL,
		.weight = SEGMENT_WEIGHT_USUAL,
		.group = (uint64_t)getpid(),
		.segment = (uint64_t)peer->segment.file,
		.inode = peer->segment.inode,
	};
}

static inline void peer_claim(struct peer_process *peer)
{
	peer->claim.written = process_clock_ns();
	board_claim(&peer->claim);
}

static inline void peer_launch(struct peer_process *peer)
{
	counts_launch_shared(peer->place);
}

static inline void peer_end(struct peer_process *peer)
{
	atomic_fetch_add(counts_ended(peer->place, COUNTS_PLAIN), 1);
}

#endif
