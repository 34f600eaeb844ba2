#include "app_masks.h"

#include "driver/hook.h"
#include "partition.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* --- a mask that others read while it is written ----------------------------------------------------------- */

#define PLACES 4

struct shared_mask {
	_Atomic uint64_t current; /* the mask in force stands at places[current % PLACES] */
	_Atomic uint64_t places[PLACES][STREAMS_WORDS];
};

/* A writer fills the place behind the one that it has published last. */
static struct streams_mask read_mask(const struct shared_mask *shared)
{
	struct streams_mask mask;
	uint64_t current, later;

	do {
		current = atomic_load_explicit(&shared->current, memory_order_acquire);
		for (unsigned int word = 0; word < STREAMS_WORDS; word++)
			mask.words[word] = atomic_load_explicit(&shared->places[current % PLACES][word],
			                                        memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		later = atomic_load_explicit(&shared->current, memory_order_relaxed);
	} while (__builtin_expect(later - current >= PLACES - 1, 0));
	return mask;
}

/* One writer at a time. */
static void write_mask(struct shared_mask *shared, const struct streams_mask *mask)
{
	uint64_t next = atomic_load_explicit(&shared->current, memory_order_relaxed) + 1;

	atomic_thread_fence(memory_order_release);
	for (unsigned int word = 0; word < STREAMS_WORDS; word++)
		atomic_store_explicit(&shared->places[next % PLACES][word], mask->words[word], memory_order_relaxed);
	atomic_store_explicit(&shared->current, next, memory_order_release);
}

static bool is_set(const struct streams_mask *mask)
{
	return (mask->words[0] | mask->words[1]) != 0;
}

/* --- the masks --------------------------------------------------------------------------------------------- */

/* The mask of a stream. Entries stay where they are, for readers without a lock; one whose stream has gone is used
 * again. */
struct entry {
	struct entry *next;
	_Atomic(CUstream) stream; /* NULL where free */
	struct shared_mask mask;
};

#define BUCKETS 256 /* a power of two */

_Atomic uint64_t streams_changes;

static atomic_bool is_open;
static atomic_bool hears_calls;
static pthread_once_t heard = PTHREAD_ONCE_INIT;
static atomic_bool wants_calls;

/* Guards all writing. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared_mask for_all;
static _Atomic(struct entry *) buckets[BUCKETS];

static __thread struct {
	struct streams_mask next;
	struct streams_mask per_thread; /* of its own default stream */
	CUstream stream;                /* of the launch that it is in the middle of */
} thread __attribute__((tls_model("initial-exec")));

static _Atomic(struct entry *) *bucket_of(CUstream stream)
{
	return &buckets[(uint64_t)(uintptr_t)stream * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

/* The entry of a stream, or a free one of its bucket for NULL; NULL where there is none. */
static struct entry *find(_Atomic(struct entry *) *bucket, CUstream stream)
{
	struct entry *entry = atomic_load_explicit(bucket, memory_order_acquire);

	while (entry && atomic_load_explicit(&entry->stream, memory_order_acquire) != stream)
		entry = entry->next;
	return entry;
}

/* NULL where there is no memory. */
static struct entry *add(_Atomic(struct entry *) *bucket)
{
	struct entry *entry = calloc(1, sizeof *entry);

	if (entry) {
		entry->next = atomic_load_explicit(bucket, memory_order_relaxed);
		atomic_store_explicit(bucket, entry, memory_order_release);
	}
	return entry;
}

static int set_for_stream(CUstream stream, const struct streams_mask *mask)
{
	_Atomic(struct entry *) *bucket = bucket_of(stream);
	struct entry *entry = find(bucket, stream);

	if (!entry && is_set(mask)) {
		entry = find(bucket, NULL);
		if (!entry)
			entry = add(bucket);
		if (!entry)
			return ENOMEM;
	}
	if (entry) {
		write_mask(&entry->mask, mask);
		atomic_store_explicit(&entry->stream, is_set(mask) ? stream : NULL, memory_order_release);
	}
	return 0;
}

static void forget(CUstream stream)
{
	static const struct streams_mask none;

	if ((uintptr_t)stream > (uintptr_t)CU_STREAM_PER_THREAD && find(bucket_of(stream), stream)) {
		pthread_mutex_lock(&lock);
		set_for_stream(stream, &none);
		pthread_mutex_unlock(&lock);
	}
}

static struct streams_mask mask_of_stream(CUstream stream)
{
	struct streams_mask mask = {{0}};
	const struct entry *entry;

	if (stream == CU_STREAM_PER_THREAD) {
		mask = thread.per_thread;
	} else if (stream) {
		entry = find(bucket_of(stream), stream);
		if (entry)
			mask = read_mask(&entry->mask);
	}
	return mask;
}

bool streams_of_graphs(struct streams_mask *mask)
{
	*mask = read_mask(&for_all);
	return is_set(mask);
}

bool streams_take(struct streams_mask *mask)
{
	*mask = thread.next;
	memset(&thread.next, 0, sizeof thread.next);
	if (!is_set(mask))
		*mask = mask_of_stream(thread.stream);
	return is_set(mask) || streams_of_graphs(mask);
}

/* --- setting ------------------------------------------------------------------------------------------------- */

static void hear_of_calls(void)
{
	atomic_store(&wants_calls, true);
	if (atomic_load(&hears_calls))
		hook_want_more();
}

static int set(enum streams_scope scope, CUstream stream, const struct streams_mask *mask)
{
	int result = 0;

	if (scope == STREAMS_NEXT)
		thread.next = *mask;
	else if (scope == STREAMS_ALL)
		write_mask(&for_all, mask);
	else if (stream == CU_STREAM_PER_THREAD)
		thread.per_thread = *mask;
	else
		result = set_for_stream(stream ? stream : CU_STREAM_LEGACY, mask);
	/* Last: whoever sees it finds the mask. And once more when all launches look for one: who has seen the first too early
	 * will see another. */
	if ((scope == STREAMS_ALL || atomic_load(&streams_changes) == 0) && atomic_fetch_add(&streams_changes, 1) == 0) {
		enforce_anew();
		atomic_fetch_add(&streams_changes, 1);
	}
	return result;
}

int nvtaskset_set_mask_1(int scope, void *stream, const uint64_t *disabled)
{
	struct streams_mask mask;

	if (!atomic_load_explicit(&is_open, memory_order_relaxed))
		return ENOTSUP;
	if (scope < STREAMS_ALL || scope > STREAMS_NEXT)
		return scope == STREAMS_ASK  ? 0 : EINVAL;
	memcpy(&mask, disabled, sizeof mask);
	if (scope == STREAMS_ONE)
		pthread_once(&heard, hear_of_calls);
	/* A thread needs nobody's leave for its own, but for the first. */
	if (scope == STREAMS_NEXT && atomic_load(&streams_changes) > 1) {
		thread.next = mask;
		return 0;
	}
	pthread_mutex_lock(&lock);
	int result = set((enum streams_scope)scope, stream, &mask);

	pthread_mutex_unlock(&lock);
	return result;
}

void streams_open(bool hears)
{
	/* Another thread may have come to hear them meanwhile. */
	if (hears)
		atomic_store(&hears_calls, true);
	atomic_store(&is_open, true);
	if (hears && atomic_load(&wants_calls))
		hook_want_more();
}

void streams_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

bool streams_wants_call(int id)
{
	return atomic_load_explicit(&wants_calls, memory_order_relaxed) &&
	       (calls_launch(id) || calls_create_stream(id) || calls_destroy_stream(id));
}

void streams_call_begins(const struct call *call)
{
	if (calls_destroy_stream(call->id))
		forget(((const struct call_destroy_stream *)call->arguments)->stream);
	else if (calls_launch(call->id))
		thread.stream = calls_origin(call).stream;
}

/* Streams also go with their context, which announces none of them: their handles may come again. */
void streams_call_ended(const struct call *call)
{
	const struct call_create_stream *created = (const struct call_create_stream *)call->arguments;

	if (calls_launch(call->id))
		thread.stream = NULL;
	else if (calls_create_stream(call->id) && *call->result == CUDA_SUCCESS && created->stream)
		forget(*created->stream);
}
