#include "driver/gpus.h"
#include "driver/releases.h"
#include "driver/streams.h"
#include "notes.h"
#include "swap.h"

#include <stdlib.h>
#include <sys/mman.h>

_Atomic(struct queue *) notes_queues;
_Atomic uint64_t notes_living;

/* --- places ------------------------------------------------------------------------------------------------------- */

#define TRIED 8 /* places in a row that a stream may have */

struct queue *notes_find(uintptr_t stream)
{
	struct queue *queues = atomic_load(&notes_queues), *found = NULL;

	for (unsigned int i = 0; queues && i < TRIED && !found; i++) {
		struct queue *queue = notes_place(queues, stream, i);

		if (notes_has_place(queue, stream))
			found = queue;
	}
	return found;
}

static void begin_life(struct queue *queue, unsigned int number, const struct launch *launch)
{
	uint64_t turns = atomic_load(&queue->turns);

	for (unsigned int i = 0; i < QMD_MASK_BITS / 64; i++)
		atomic_store_explicit(&queue->present[i], launch->gpu->present.words[i], memory_order_relaxed);
	atomic_store_explicit(&queue->number, number, memory_order_relaxed);
	atomic_store(&queue->context, launch->context);
	atomic_store(&queue->begin, turns);
	queue->others = NEVER;
	queue->ended = QUEUE_ALONE;
	queue->mask = qmd_mask_place(launch->gpu->family, launch->qmd);
	queue->stamp = qmd_release_word(&launch->releases->stamping, launch->qmd);
	atomic_fetch_add(&queue->life, 1);
	atomic_fetch_or(&notes_living, UINT64_C(1) << number);
}

struct queue *notes_take(const struct launch *launch, uintptr_t stream)
{
	struct queue *queues = atomic_load(&notes_queues), *taken = NULL;

	for (unsigned int i = 0; queues && i < TRIED && !taken; i++) {
		struct queue *queue = notes_place(queues, stream, i);
		uintptr_t nobody = 0;

		if (atomic_compare_exchange_strong(&queue->stream, &nobody, stream)) {
			begin_life(queue, (unsigned int)(queue - queues), launch);
			taken = queue;
		}
	}
	return taken;
}

/* --- forgetting --------------------------------------------------------------------------------------------------- */

/* A walk from here on skips the place. False if the place is free. */
static bool end_life(struct queue *queue)
{
	uint64_t life = atomic_load(&queue->life);
	bool ends = life % 2 == 1 && atomic_compare_exchange_strong(&queue->life, &life, life + 1);

	if (ends)
		atomic_fetch_and(&notes_living, ~(UINT64_C(1) << queue->number));
	return ends;
}

void queue_forget_stream(CUstream stream, CUcontext context)
{
	struct queue *queue = notes_find(streams_number(stream, context));

	if (queue && end_life(queue)) {
		swap_end_all();
		atomic_store(&queue->stream, 0);
	}
}

static void forget_all_of(struct queue *queues, CUcontext context)
{
	uint64_t ended = 0;

	for (unsigned int i = 0; queues && i < STREAMS; i++) {
		if ((!context || atomic_load(&queues[i].context) == context) && end_life(&queues[i]))
			ended |= UINT64_C(1) << i;
	}
	if (ended != 0)
		swap_end_all();
	for (unsigned int i = 0; ended != 0 && i < STREAMS; i++) {
		if (ended >> i & 1)
			atomic_store(&queues[i].stream, 0);
	}
}

void queue_forget_context(CUcontext context)
{
	forget_all_of(atomic_load(&notes_queues), context);
}

/* --- beginning and end -------------------------------------------------------------------------------------------- */

static struct queue *make_queues(void)
{
	size_t bytes = STREAMS * sizeof(struct queue);
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory != MAP_FAILED ? memory : NULL;
}

/* At the program's end. */
static void end(void)
{
	forget_all_of(atomic_exchange(&notes_queues, NULL), NULL);
}

bool queue_prepare(void)
{
	static bool is_first = true;

	if (is_first && swap_prepare() && atexit(end) == 0)
		atomic_store(&notes_queues, make_queues());
	is_first = false;
	return atomic_load(&notes_queues);
}

void queue_context_created(void)
{
	static atomic_flag is_registered = ATOMIC_FLAG_INIT;

	if (atomic_load(&notes_queues) && !atomic_flag_test_and_set(&is_registered))
		atexit(end);
}
