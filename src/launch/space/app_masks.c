#include "app_masks.h"

#include "base/ring.h"
#include "base/table.h"
#include "driver/gpus.h"
#include "epoch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- a mask that is read while it is written ---------------------------------------------------------------- */

#define PLACES 4

struct app_mask {
	uint64_t words[APP_MASKS_WORDS];
};

struct shared_mask {
	_Atomic uint64_t current; /* the mask in force stands at places[current % PLACES] */
	_Atomic uint64_t places[PLACES][APP_MASKS_WORDS];
};

static struct app_mask read_mask(const struct shared_mask *shared)
{
	struct app_mask mask = {{0}};
	uint64_t seen;

	do {
		seen = atomic_load_explicit(&shared->current, memory_order_acquire);
		ring_copy(mask.words, shared->places[seen % PLACES], APP_MASKS_WORDS);
	} while (__builtin_expect(!ring_is_whole(&shared->current, seen, PLACES), 0));
	return mask;
}

/* One writer at a time. */
static void write_mask(struct shared_mask *shared, const struct app_mask *mask)
{
	uint64_t next = atomic_load_explicit(&shared->current, memory_order_relaxed) + 1;

	ring_fill(shared->places[next % PLACES], mask->words, APP_MASKS_WORDS);
	atomic_store_explicit(&shared->current, next, memory_order_release);
}

static bool is_set(const struct app_mask *mask)
{
	return (mask->words[0] | mask->words[1]) != 0;
}

/* --- the masks --------------------------------------------------------------------------------------------- */

/* The mask of a stream. Readers take no lock, so no entry is freed: a destroyed stream leaves a vacant entry. */
struct stream_mask {
	struct table_entry entry;
	struct shared_mask mask;
};

static atomic_bool is_open;
static atomic_bool are_any;      /* the program has set a mask: launches look for masks */
static atomic_bool are_in_force; /* every launch does: cached decisions from before the first mask are invalid */
static atomic_bool hears_calls;
static pthread_once_t heard = PTHREAD_ONCE_INIT;
static atomic_bool wants_calls;

/* Held for writing the masks below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared_mask for_all;
static struct table of_streams;

static __thread struct {
	struct app_mask next;
	struct app_mask per_thread; /* of the per-thread default stream */
} thread __attribute__((tls_model("initial-exec")));

static struct stream_mask *find_stream(CUstream stream)
{
	return TABLE_CONTENT(table_find(&of_streams, stream), struct stream_mask, entry);
}

static int add_stream(CUstream stream, const struct app_mask *mask)
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

/* The mask is written before the entry becomes vacant, and in add() before the entry can be found: a reader without the
 * lock that finds a stream finds the stream's mask. */
static int set_for_stream(CUstream stream, const struct app_mask *mask)
{
	struct stream_mask *known = find_stream(stream);
	int result = 0;

	if (!known && is_set(mask))
		result = add_stream(stream, mask);
	if (known)
		write_mask(&known->mask, mask);
	if (known && !is_set(mask))
		table_vacate(&known->entry);
	return result;
}

static void forget_stream(CUstream stream)
{
	static const struct app_mask none;

	if ((uintptr_t)stream > (uintptr_t)CU_STREAM_PER_THREAD && find_stream(stream)) {
		pthread_mutex_lock(&lock);
		set_for_stream(stream, &none);
		pthread_mutex_unlock(&lock);
	}
}

static struct app_mask mask_of_stream(CUstream stream)
{
	struct app_mask mask = {{0}};
	const struct stream_mask *known;

	if (stream == CU_STREAM_PER_THREAD) {
		mask = thread.per_thread;
	} else if (stream) {
		known = find_stream(stream);
		if (known)
			mask = read_mask(&known->mask);
	}
	return mask;
}

/* --- deciding ---------------------------------------------------------------------------------------------- */

/* Finds the mask of a launch; false: no mask. The mask for the thread's next launch is used up, except by a graph. */
static bool take_mask(const struct launch *launch, struct app_mask *mask)
{
	bool is_of_graph = launch->frame.uploads_nodes;

	*mask = (struct app_mask){{0}};
	if (!is_of_graph) {
		*mask = thread.next;
		memset(&thread.next, 0, sizeof thread.next);
	}
	if (!is_of_graph && !is_set(mask))
		*mask = mask_of_stream(launch->frame.stream);
	if (!is_set(mask))
		*mask = read_mask(&for_all);
	return is_set(mask);
}

static void narrow(const struct app_mask *mask, struct decision *decision)
{
	const struct tpcset enabled = {{~mask->words[0], ~mask->words[1]}};
	struct tpcset both = tpcset_and(&enabled, &decision->set), full = tpcset_and(&enabled, &decision->full);

	decision->has_own_mask = true;
	if (!tpcset_overlap(&enabled, &decision->partition))
		decision_note(decision, SEGMENT_OWN_MASK);
	if (!tpcset_is_empty(&full))
		decision->full = full;
	if (!tpcset_is_empty(&both) && !tpcset_equal(&both, &decision->set))
		decision_restrict(decision, &both);
}

void app_masks_decide(const struct launch *launch, struct decision *decision)
{
	struct app_mask mask;

	if (!atomic_load_explicit(&are_any, memory_order_acquire) || decision->state == DECISION_UNRESTRICTED)
		return;
	decision->is_of_launch = true;
	if (!launch->gpu->has_masks)
		decision_lacks_masks(decision, launch->gpu);
	else if (take_mask(launch, &mask))
		narrow(&mask, decision);
}

/* --- setting ------------------------------------------------------------------------------------------------- */

static void hear_of_calls(void)
{
	atomic_store(&wants_calls, true);
	epoch_raise();
	if (atomic_load(&hears_calls))
		hook_want_more();
}

static int set_in_scope(enum app_masks_scope scope, CUstream stream, const struct app_mask *mask)
{
	int result = 0;

	if (scope == APP_MASKS_NEXT)
		thread.next = *mask;
	else if (scope == APP_MASKS_ALL)
		write_mask(&for_all, mask);
	else if (stream == CU_STREAM_PER_THREAD)
		thread.per_thread = *mask;
	else
		result = set_for_stream(stream ? stream : CU_STREAM_LEGACY, mask);
	/* Last: a thread that sees the flags, or the new epoch, also sees the mask. */
	bool is_first = !atomic_exchange(&are_any, true);

	if (is_first || scope == APP_MASKS_ALL)
		epoch_raise_masks();
	atomic_store(&are_in_force, true);
	return result;
}

int nvtaskset_set_mask_1(int scope, void *stream, const uint64_t *disabled)
{
	struct app_mask mask;

	if (!atomic_load_explicit(&is_open, memory_order_relaxed))
		return ENOTSUP;
	if (scope < APP_MASKS_ALL || scope > APP_MASKS_NEXT)
		return scope == APP_MASKS_ASK ? 0 : EINVAL;
	memcpy(&mask, disabled, sizeof mask);
	if (scope == APP_MASKS_STREAM)
		pthread_once(&heard, hear_of_calls);
	/* Only this thread reads the mask. The very first mask takes the lock nevertheless, to raise the epoch. */
	if (scope == APP_MASKS_NEXT && atomic_load(&are_in_force)) {
		thread.next = mask;
		return 0;
	}
	pthread_mutex_lock(&lock);
	int result = set_in_scope((enum app_masks_scope)scope, stream, &mask);

	pthread_mutex_unlock(&lock);
	return result;
}

void app_masks_open(bool hears)
{
	/* Only ever set: a second thread may have subscribed meanwhile. */
	if (hears)
		atomic_store(&hears_calls, true);
	atomic_store(&is_open, true);
	if (hears && atomic_load(&wants_calls))
		hook_want_more();
}

void app_masks_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

bool app_masks_want_call(int id)
{
	return atomic_load_explicit(&wants_calls, memory_order_relaxed) &&
	       (calls_launch(id) || calls_create_stream(id) || calls_destroy_stream(id));
}

void app_masks_call_begins(const struct call *call)
{
	if (calls_destroy_stream(call->id))
		forget_stream(((const struct call_destroy_stream *)call->arguments)->stream);
}

/* A destroyed context takes its streams along, unannounced. A new stream may get an old handle: forget the old mask. */
void app_masks_call_ended(const struct call *call)
{
	const struct call_create_stream *created = (const struct call_create_stream *)call->arguments;

	if (calls_create_stream(call->id) && *call->result == CUDA_SUCCESS && created->stream)
		forget_stream(*created->stream);
}
