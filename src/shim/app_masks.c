#include "app_masks.h"

#include "base/ring.h"
#include "base/table.h"
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

static struct streams_mask read_mask(const struct shared_mask *shared)
{
	struct streams_mask mask;
	uint64_t seen;

	do {
		seen = atomic_load_explicit(&shared->current, memory_order_acquire);
		ring_copy(mask.words, shared->places[seen % PLACES], STREAMS_WORDS);
	} while (__builtin_expect(!ring_is_whole(&shared->current, seen, PLACES), 0));
	return mask;
}

/* One writer at a time. */
static void write_mask(struct shared_mask *shared, const struct streams_mask *mask)
{
	uint64_t next = atomic_load_explicit(&shared->current, memory_order_relaxed) + 1;

	ring_fill(shared->places[next % PLACES], mask->words, STREAMS_WORDS);
	atomic_store_explicit(&shared->current, next, memory_order_release);
}

static bool is_set(const struct streams_mask *mask)
{
	return (mask->words[0] | mask->words[1]) != 0;
}

/* --- the masks --------------------------------------------------------------------------------------------- */

/* The mask of a stream. They stay where they are, for readers without a lock: one whose stream has gone is vacant. */
struct stream_mask {
	struct table_entry entry;
	struct shared_mask mask;
};

_Atomic uint64_t streams_changes;

static atomic_bool is_open;
static atomic_bool hears_calls;
static pthread_once_t heard = PTHREAD_ONCE_INIT;
static atomic_bool wants_calls;

/* Guards all writing. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared_mask for_all;
static struct table of_streams;

static __thread struct {
	struct streams_mask next;
	struct streams_mask per_thread; /* of its own default stream */
	CUstream stream;                /* of the launch that it is in the middle of */
} thread __attribute__((tls_model("initial-exec")));

static struct stream_mask *find(CUstream stream)
{
	return TABLE_CONTENT(table_find(&of_streams, stream), struct stream_mask, entry);
}

/* What a mask says is there before its stream is. */
static void change(struct stream_mask *known, const struct streams_mask *mask)
{
	write_mask(&known->mask, mask);
	if (!is_set(mask))
		table_vacate(&known->entry);
}

static int add(CUstream stream, const struct streams_mask *mask)
{
	struct table_entry *vacant = table_find_vacant(&of_streams, stream);
	struct stream_mask *new = vacant ? TABLE_CONTENT(vacant, struct stream_mask, entry) : calloc(1, sizeof *new);

	if (!new)
		return ENOMEM;
	write_mask(&new->mask, mask);
	if (vacant)
		table_occupy(vacant, stream);
	else
		table_add(&of_streams, &new->entry, stream);
	return 0;
}

static int set_for_stream(CUstream stream, const struct streams_mask *mask)
{
	struct stream_mask *known = find(stream);
	int result = 0;

	if (known)
		change(known, mask);
	else if (is_set(mask))
		result = add(stream, mask);
	return result;
}

static void forget(CUstream stream)
{
	static const struct streams_mask none;

	if ((uintptr_t)stream > (uintptr_t)CU_STREAM_PER_THREAD && find(stream)) {
		pthread_mutex_lock(&lock);
		set_for_stream(stream, &none);
		pthread_mutex_unlock(&lock);
	}
}

static struct streams_mask mask_of_stream(CUstream stream)
{
	struct streams_mask mask = {{0}};
	const struct stream_mask *known;

	if (stream == CU_STREAM_PER_THREAD) {
		mask = thread.per_thread;
	} else if (stream) {
		known = find(stream);
		if (known)
			mask = read_mask(&known->mask);
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
