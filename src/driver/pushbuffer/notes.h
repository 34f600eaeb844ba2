/*
 * What the files of this room share: the launches of each stream, as queue.c notes them and walk.c reads them.
 */
#ifndef NVTASKSET_DRIVER_PUSHBUFFER_NOTES_H
#define NVTASKSET_DRIVER_PUSHBUFFER_NOTES_H

#include "driver/calls.h"
#include "gpu/qmd.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STREAMS 64    /* the bits of a word */
#define LAUNCHES 1024 /* of a stream; more do not fit into a channel's ring */
#define MASK_WORDS (QMD_MASK_BITS / 32)

/* The bits of a mask as the descriptor has them. */
struct words {
	uint32_t word[MASK_WORDS];
};

/* A launch. Its place may be taken by a later launch at any time: `turn` says whose it is. */
struct note {
	_Atomic uint64_t turn; /* 0: being written */
	uint64_t cookie;
	struct launch_end ahead, end;
	uint32_t *mask;     /* in the pushbuffer; NULL: not noted */
	unsigned int words; /* of the mask */
	struct words written;
};

/* What a change has made of it. Only who changes writes here. */
struct changed {
	uint64_t turn;
	struct words written;
};

/* The place of a stream. */
struct queue {
	_Atomic uint64_t life;      /* rises when a stream gets the place, and when it gives the place up: odd in between */
	_Atomic uintptr_t stream;   /* 0: free */
	_Atomic(CUcontext) context; /* of the stream */
	_Atomic uint64_t begin;     /* turns up to here are of streams before */
	_Atomic uint64_t turns;     /* of launches; they rise from stream to stream */
	struct words present;       /* TPCs of the GPU */
	unsigned int number;        /* of the place */

	/* Only launching threads look at these. */
	uint64_t others; /* interruptions up to the last launch */
	bool waits;      /* for an event, since then */
	uint32_t offset; /* of the last descriptor, in its commands */

	uint64_t oldest;   /* only for who changes: launches before it have ended; */
	uint64_t answered; /* and those up to here were visited, and no visitor stopped there */
	struct note notes[LAUNCHES];
	struct changed changes[LAUNCHES];
};

/* STREAMS of them; NULL while launches cannot be noted. Never given back: a launch may look at any time. */
extern _Atomic(struct queue *) notes_queues __attribute__((visibility("hidden")));

/* A bit for each that has a stream. */
extern _Atomic uint64_t notes_living __attribute__((visibility("hidden")));

/* The GPU writes there. */
static inline uint64_t notes_read_end(struct launch_end end)
{
	return __atomic_load_n(end.at, __ATOMIC_ACQUIRE);
}

static inline bool notes_has_ended(struct launch_end end)
{
	return notes_read_end(end) >= end.number;
}

/* `bits` where TPCs are present, the tag elsewhere: bits that no other launch of the process has, as long as the numbers
 * of 26 bits differ. */
static inline uint32_t notes_tagged(const struct queue *queue, uint64_t turn, uint32_t bits, unsigned int i)
{
	uint64_t mixed = (turn * STREAMS + queue->number) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t tag = (uint32_t)(mixed >> (i % 2 ? 0 : 32));

	return (bits & queue->present.word[i]) | (tag & ~queue->present.word[i]);
}

#endif
