/*
 * Where a launch waits until the GPU takes it (hardware.md, "Queued launches").
 *
 * A context has CHANNELS channels. The commands of a launch, a segment, lie in the pushbuffer of a channel, and the
 * launch's descriptor lies in the segment. An entry of the channel's ring names the segment. The GPU fetches segments
 * ahead of the running kernel; a descriptor that has been fetched is a copy, and the pushbuffer no longer matters.
 */
#ifndef SIM_PUSHBUFFER_H
#define SIM_PUSHBUFFER_H

#include "descriptor.h"
#include "launch.h"

#define CHANNELS 8

/* What the GPU fetches at most: bytes and segments behind the one that it processes, and entries that it reads. */
#define FETCHED_BYTES 16384
#define FETCHED_SEGMENTS 16
#define READ_ENTRIES 32

/* Where a launch lies. */
struct segment_place {
	unsigned int channel;
	uint32_t entry; /* counted on for ever; its place in the ring is the remainder */
	uint32_t bytes;
	uint32_t *descriptor;
};

/* Writes the launch's segment and entry, and announces both. The caller makes sure that there is room in the ring.
 * `told` is the descriptor in the segment when the GPU is told. */
struct segment_place pushbuffer_write(const struct launch *launch, const struct descriptor *descriptor,
                                      struct descriptor *told);

/* The same for a fill, a copy or a wait for a value. The work is done at once. */
void pushbuffer_write_other(CUcontext context, CUstream stream);

/* Whether the entry has SYNC: nothing of the segment is fetched before the GPU processes the segment ahead of it. */
bool pushbuffer_syncs(CUcontext context, const struct segment_place *place);

/* The GPU copies the descriptor. */
void pushbuffer_fetch(const struct segment_place *place, struct descriptor *descriptor);

/* The GPU processes this entry now; written where GP_GET is. */
void pushbuffer_process(CUcontext context, const struct segment_place *place);

/* Of a new stream; the streams of a context take turns. */
unsigned int pushbuffer_channel_of_new_stream(CUcontext context);

/* The context is about to be destroyed. */
void pushbuffer_forget(CUcontext context);

#endif
