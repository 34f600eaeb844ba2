/*
 * The launches of each stream: queue.c notes a launch, walk.c reads the notes, and places.c gives places to streams.
 * `turn` is a launch's number in the queue of its stream, from 1 on.
 */
#pragma once

#include "driver/calls.h"
#include "gpu/qmd.h"
#include "queue.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STREAMS 64    /* the bits of a word */
#define LAUNCHES 1024 /* of a stream; more do not fit into a channel's ring */
#define MASK_WORDS 4  /* of 32 bits, of the widest mask; the others have half of them */

/* The bits of a mask in the descriptor's order. A mask of two words of 32 bits has the first half only. */
struct words {
	uint64_t half[QMD_MASK_BITS / 64];
};

/* A launch. A later launch may take the note at any time: `turn` names the owner. */
struct note {
	_Atomic uint64_t turn; /* 0: being written */
	uint64_t cookie;
	struct launch_end end;
	uint32_t *mask; /* in the pushbuffer; NULL: not noted */
	struct words written;
	unsigned int words; /* of 32 bits, of the mask */
	bool is_behind_foreign; /* foreign work is between the launch and the launch ahead */
};

/* The mask after a change. Only walk.c writes here. */
struct changed {
	uint64_t turn;
	uint64_t walk; /* the number */
	struct words written;
};

#define NEVER UINT64_MAX

/* The place of a stream. */
struct queue {
	_Alignas(64) struct note notes[LAUNCHES]; /* turn n has notes[n % LAUNCHES]; 64 bytes each */
	_Atomic uint64_t life;      /* rises when a stream gets the place, and when the stream goes: odd in between */
	_Atomic uintptr_t stream;   /* 0: free */
	_Atomic(CUcontext) context; /* of the stream */
	_Atomic uint64_t begin;     /* turns up to here are of earlier streams */
	_Atomic uint64_t turns;     /* of launches; rise from stream to stream */

	/* A walk of the place's stream before may still look at these. */
	_Atomic uint64_t present[QMD_MASK_BITS / 64]; /* TPCs of the GPU */
	_Atomic uint32_t number;                      /* of the place */

	/* Only launching threads look at these. */
	uint64_t thread;            /* the number of the thread that has the stream; 0: of no thread, or not known */
	uint64_t others, foreign;   /* interruptions, and foreign work, up to the last launch; NEVER before the first */
	struct qmd_mask_place mask; /* in the descriptors of the GPU */
	unsigned int stamp;         /* the descriptors' word with the address of the timestamp */
	uint32_t offset, rest;      /* of the last descriptor, from the begin and to the end of its commands */
	enum queue_outcome ended;   /* once the last launch has ended: unknown if the stream waits for an event since */

	/* Launches up to here were visited and not answered by QUEUE_STOP, or came with an answer. */
	_Atomic uint64_t answered;

	/* Only walk.c looks at these. */
	uint64_t oldest;   /* earlier launches have ended */
	uint64_t furthest; /* no later launch was changed */

	struct changed changes[LAUNCHES];
};

/* --- places (places.c) -------------------------------------------------------------------------------------------- */

/* STREAMS places; NULL while launches cannot be noted. The memory stays, since a launch may look at any time. */
extern _Atomic(struct queue *) notes_queues __attribute__((visibility("hidden")));

/* A bit for each place with a stream. */
extern _Atomic uint64_t notes_living __attribute__((visibility("hidden")));

/* Where a stream may have its place. */
static inline struct queue *notes_place(struct queue *queues, uintptr_t stream, unsigned int i)
{
	return &queues[((stream * UINT64_C(0x9e3779b97f4a7c15) >> 58) + i) % STREAMS];
}

static inline bool notes_has_place(const struct queue *queue, uintptr_t stream)
{
	return atomic_load_explicit(&queue->stream, memory_order_acquire) == stream;
}

/* The place of a stream (streams_number); NULL if the stream has no place. */
struct queue *notes_find(uintptr_t stream);

/* Gives a place to the stream of a launch; NULL if there is no free place. */
struct queue *notes_take(const struct launch *launch, uintptr_t stream);

/* --- ends and masks ----------------------------------------------------------------------------------------------- */

/* The GPU writes the number. */
static inline uint64_t notes_read_end(struct launch_end end)
{
	return __atomic_load_n(end.at, __ATOMIC_ACQUIRE);
}

static inline bool notes_has_ended(struct launch_end end)
{
	return notes_read_end(end) >= end.number;
}

static inline uint64_t notes_present(const struct queue *queue, unsigned int half)
{
	return atomic_load_explicit(&queue->present[half], memory_order_relaxed);
}

/* `bits` where TPCs are present, elsewhere a tag. No other launch of the process has the same tag, as far as there are
 * bits for a tag. */
static inline struct words notes_tagged(const struct queue *queue, uint64_t turn, const struct words *bits)
{
	uint32_t number = atomic_load_explicit(&queue->number, memory_order_relaxed);
	uint64_t tag = (turn * STREAMS + number) * UINT64_C(0x9e3779b97f4a7c15);

	return (struct words){{tag ^ ((bits->half[0] ^ tag) & notes_present(queue, 0)),
	                       tag ^ ((bits->half[1] ^ tag) & notes_present(queue, 1))}};
}
