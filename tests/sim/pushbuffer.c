#include "pushbuffer.h"

#include "context.h"
#include "faults.h"
#include "hook.h"
#include "stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* As on an H100 and an H200: a ring, then USERD, with GP_GET and GP_PUT; and a pushbuffer for each channel. */
#define RING_ENTRIES 1024
#define CHANNEL_BYTES 0x3000
#define USERD_OFFSET 0x2000
#define GP_GET_OFFSET 0x88
#define GP_PUT_OFFSET 0x8c
#define PUSHBUFFER_BYTES (4u << 20)

/* A segment of a launch without parameters, and where its descriptor lies. */
#define SEGMENT_BYTES 1496
#define OTHER_BYTES 92 /* of a wait for a value */
#define DESCRIPTOR_OFFSET 1036

#define ENTRY_SYNC (UINT64_C(1) << 63)
#define ENTRY_LENGTH_SHIFT 42 /* of words */
#define ENTRY_ADDRESS UINT64_C(0xfffffffffc)

/* How the driver counts channels in what it announces. */
#define FIRST_NUMBER 10

_Static_assert(RING_ENTRIES * (SEGMENT_BYTES + LAUNCH_ARGUMENTS_MAX) < PUSHBUFFER_BYTES, "what waits is not overwritten");

struct channel {
	pthread_mutex_t lock;
	uint32_t put;   /* the next entry */
	uint32_t begin; /* of the next segment, in the pushbuffer */
};

struct pushbuffer {
	unsigned char *rings, *segments; /* CHANNELS of each */
	_Atomic unsigned int streams;
	struct channel channels[CHANNELS];
};

/* Where the first one lies on an H100 and an H200: the address of a segment has 40 bits in an entry. */
#define FIRST_ADDRESS 0x200600000

static void *map(size_t bytes)
{
	static _Atomic uintptr_t next = FIRST_ADDRESS;
	void *hint = (void *)atomic_fetch_add(&next, (bytes + 0x1fffff) / 0x200000 * 0x200000);
	void *memory = mmap(hint, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		fatal("no memory for a pushbuffer");
	return memory;
}

static struct pushbuffer *new_pushbuffer(void)
{
	struct pushbuffer *new = calloc(1, sizeof *new);

	if (!new)
		fatal("no memory");
	new->rings = map(CHANNELS * CHANNEL_BYTES);
	new->segments = map((size_t)CHANNELS * PUSHBUFFER_BYTES);
	for (unsigned int i = 0; i < CHANNELS; i++)
		pthread_mutex_init(&new->channels[i].lock, NULL);
	return new;
}

static struct pushbuffer *pushbuffer_of(CUcontext context)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (!context->family->pushbuffer)
		context->family->pushbuffer = new_pushbuffer();
	pthread_mutex_unlock(&lock);
	return context->family->pushbuffer;
}

static _Atomic uint64_t *ring_of(const struct pushbuffer *pushbuffer, unsigned int channel)
{
	return (_Atomic uint64_t *)(void *)(pushbuffer->rings + (size_t)channel * CHANNEL_BYTES);
}

static _Atomic uint32_t *userd_of(const struct pushbuffer *pushbuffer, unsigned int channel, unsigned int offset)
{
	unsigned char *userd = pushbuffer->rings + (size_t)channel * CHANNEL_BYTES + USERD_OFFSET;

	return (_Atomic uint32_t *)(void *)(userd + offset);
}

/* Segments lie one behind the other, and begin again in front. */
static unsigned char *take_segment(struct pushbuffer *pushbuffer, unsigned int number, uint32_t bytes)
{
	struct channel *channel = &pushbuffer->channels[number];

	if (channel->begin + bytes > PUSHBUFFER_BYTES)
		channel->begin = 0;
	unsigned char *segment = pushbuffer->segments + (size_t)number * PUSHBUFFER_BYTES + channel->begin;

	channel->begin += bytes;
	return segment;
}

static uint32_t bytes_of(const struct launch *launch)
{
	uint32_t bytes = 0;

	for (unsigned int i = 0; i < launch->function->parameter_count; i++)
		bytes += launch->function->parameters[i].bytes;
	return SEGMENT_BYTES + (bytes + 3) / 4 * 4;
}

static unsigned int channel_of(CUstream stream)
{
	return stream_is_real(stream) ? stream->channel : 0;
}

/* With the channel's lock: an entry for the segment; tells of both. */
static void announce(struct pushbuffer *pushbuffer, CUcontext context, struct segment_place *place, const void *segment)
{
	_Atomic uint64_t *ring = ring_of(pushbuffer, place->channel);

	place->entry = pushbuffer->channels[place->channel].put++;
	atomic_store(&ring[place->entry % RING_ENTRIES],
	             ((uintptr_t)segment & ENTRY_ADDRESS) | (uint64_t)(place->bytes / 4) << ENTRY_LENGTH_SHIFT);
	hook_segment(&(const struct hook_segment){.context = context, .segment = segment, .bytes = place->bytes,
	                                          .channel = FIRST_NUMBER + place->channel, .ring = ring,
	                                          .put = place->entry % RING_ENTRIES});
}

static void tell(struct pushbuffer *pushbuffer, unsigned int channel)
{
	atomic_store(userd_of(pushbuffer, channel, GP_PUT_OFFSET), pushbuffer->channels[channel].put % RING_ENTRIES);
}

struct segment_place pushbuffer_write(const struct launch *launch, const struct descriptor *descriptor,
                                      struct descriptor *told)
{
	struct pushbuffer *pushbuffer = pushbuffer_of(launch->context);
	struct segment_place place = {.channel = channel_of(launch->stream), .bytes = bytes_of(launch)};
	struct channel *channel = &pushbuffer->channels[place.channel];

	pthread_mutex_lock(&channel->lock);
	unsigned char *segment = take_segment(pushbuffer, place.channel, place.bytes);

	place.descriptor = (uint32_t *)(void *)(segment + DESCRIPTOR_OFFSET);
	memcpy(place.descriptor, descriptor->words, sizeof descriptor->words);
	announce(pushbuffer, launch->context, &place, segment);
	pushbuffer_fetch(&place, told);
	tell(pushbuffer, place.channel);
	pthread_mutex_unlock(&channel->lock);
	return place;
}

void pushbuffer_write_other(CUcontext context, CUstream stream)
{
	struct pushbuffer *pushbuffer = pushbuffer_of(context);
	struct segment_place place = {.channel = channel_of(stream), .bytes = OTHER_BYTES};
	struct channel *channel = &pushbuffer->channels[place.channel];

	pthread_mutex_lock(&channel->lock);
	announce(pushbuffer, context, &place, take_segment(pushbuffer, place.channel, place.bytes));
	tell(pushbuffer, place.channel);
	pthread_mutex_unlock(&channel->lock);
}

bool pushbuffer_syncs(CUcontext context, const struct segment_place *place)
{
	return atomic_load(&ring_of(pushbuffer_of(context), place->channel)[place->entry % RING_ENTRIES]) & ENTRY_SYNC;
}

/* Others may write meanwhile: the GPU copies words. */
__attribute__((no_sanitize("thread")))
void pushbuffer_fetch(const struct segment_place *place, struct descriptor *descriptor)
{
	for (unsigned int i = 0; i < DESCRIPTOR_WORDS; i++)
		descriptor->words[i] = __atomic_load_n(&place->descriptor[i], __ATOMIC_RELAXED);
}

void pushbuffer_process(CUcontext context, const struct segment_place *place)
{
	_Atomic uint32_t *get = userd_of(pushbuffer_of(context), place->channel, GP_GET_OFFSET);

	atomic_store(get, (place->entry + 1) % RING_ENTRIES);
}

unsigned int pushbuffer_channel_of_new_stream(CUcontext context)
{
	return (atomic_fetch_add(&pushbuffer_of(context)->streams, 1) + 1) % CHANNELS;
}

void pushbuffer_forget(CUcontext context)
{
	struct pushbuffer *pushbuffer = context->pushbuffer;

	context->pushbuffer = NULL;
	if (!pushbuffer)
		return;
	munmap(pushbuffer->rings, CHANNELS * CHANNEL_BYTES);
	munmap(pushbuffer->segments, (size_t)CHANNELS * PUSHBUFFER_BYTES);
	free(pushbuffer);
}
