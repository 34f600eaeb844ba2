#include "queue.h"

#include "driver/gpus.h"
#include "driver/streams.h"
#include "notes.h"
#include "swap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PLACES 8 /* that a stream looks at */

/* The byte of a ring's entry in which SYNC is holds the upper bits of the length: from here on they are used. */
#define LARGE_BYTES (64u << 10)

_Atomic(struct queue *) notes_queues;
_Atomic uint64_t notes_living;

/* Rises with work that is not a launch whose end is known. */
static _Atomic uint64_t interruptions;

/* --- places ------------------------------------------------------------------------------------------------------- */

static inline struct queue *place(struct queue *queues, uintptr_t stream, unsigned int i)
{
	return &queues[((stream * UINT64_C(0x9e3779b97f4a7c15) >> 58) + i) % STREAMS];
}

/* NULL if the stream has none. */
static inline struct queue *find_queue(struct queue *queues, uintptr_t stream)
{
	struct queue *found = NULL;

	for (unsigned int i = 0; queues && i < PLACES && !found; i++) {
		struct queue *queue = place(queues, stream, i);

		if (atomic_load_explicit(&queue->stream, memory_order_acquire) == stream)
			found = queue;
	}
	return found;
}

static void begin_life(struct queue *queue, unsigned int number, const struct launch *launch)
{
	uint64_t turns = atomic_load(&queue->turns);

	memcpy(&queue->present, &launch->gpu->present, sizeof queue->present);
	queue->number = number;
	atomic_store(&queue->context, launch->context);
	atomic_store(&queue->begin, turns);
	queue->waits = false;
	atomic_fetch_add(&queue->life, 1);
	atomic_fetch_or(&notes_living, UINT64_C(1) << number);
}

/* Gives the stream a free place; NULL if there is none. */
static __attribute__((noinline)) struct queue *take_place(struct queue *queues, const struct launch *launch,
                                                          uintptr_t stream)
{
	struct queue *taken = NULL;

	for (unsigned int i = 0; i < PLACES && !taken; i++) {
		struct queue *queue = place(queues, stream, i);
		uintptr_t nobody = 0;

		if (atomic_compare_exchange_strong(&queue->stream, &nobody, stream)) {
			begin_life(queue, (unsigned int)(queue - queues), launch);
			taken = queue;
		}
	}
	return taken;
}

static struct queue *queue_of(const struct launch *launch)
{
	struct queue *queues = atomic_load_explicit(&notes_queues, memory_order_acquire);
	uintptr_t stream = streams_number(launch->frame.stream, launch->context);
	struct queue *queue = find_queue(queues, stream);

	return queue || !queues ? queue : take_place(queues, launch, stream);
}

/* --- forgetting --------------------------------------------------------------------------------------------------- */

/* From here on, a change that begins finds nothing there. */
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
	struct queue *queue = find_queue(atomic_load(&notes_queues), streams_number(stream, context));

	if (queue && end_life(queue)) {
		swap_end_all();
		atomic_store(&queue->stream, 0);
	}
}

static bool is_of(const struct queue *queue, CUcontext context)
{
	return !context || atomic_load(&queue->context) == context;
}

static void forget_all_of(struct queue *queues, CUcontext context)
{
	uint64_t ended = 0;

	for (unsigned int i = 0; queues && i < STREAMS; i++) {
		if (is_of(&queues[i], context) && end_life(&queues[i]))
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

void queue_forget_all(void)
{
	forget_all_of(atomic_load(&notes_queues), NULL);
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

/* --- what is ahead ------------------------------------------------------------------------------------------------ */

void queue_interrupt(void)
{
	atomic_fetch_add_explicit(&interruptions, 1, memory_order_relaxed);
}

static inline enum queue_front front_of(const struct queue *queue)
{
	uint64_t last = atomic_load_explicit(&queue->turns, memory_order_relaxed);
	enum queue_front front = QUEUE_FRONT_UNKNOWN;

	if (last == atomic_load_explicit(&queue->begin, memory_order_relaxed) ||
	    queue->others != atomic_load_explicit(&interruptions, memory_order_relaxed))
		front = QUEUE_FRONT_UNKNOWN;
	else if (!notes_has_ended(queue->notes[last % LAUNCHES].end))
		front = QUEUE_FRONT_RUNS;
	else if (!queue->waits)
		front = QUEUE_FRONT_ENDED;
	return front;
}

enum queue_front queue_front(CUstream stream, CUcontext context)
{
	struct queue *queue = find_queue(atomic_load_explicit(&notes_queues, memory_order_acquire),
	                                 streams_number(stream, context));

	return queue ? front_of(queue) : QUEUE_FRONT_UNKNOWN;
}

void queue_wait(CUstream stream, CUcontext context)
{
	struct queue *queue = find_queue(atomic_load(&notes_queues), streams_number(stream, context));

	if (queue)
		queue->waits = true;
}

/* --- noting ------------------------------------------------------------------------------------------------------- */

static inline bool is_at(const struct submission *submission, const void *qmd, uint32_t offset)
{
	const char *commands = submission->commands;

	return offset + QMD_SIZE <= submission->bytes && memcmp(commands + offset, qmd, QMD_SIZE) == 0;
}

static __attribute__((noinline)) bool search(struct queue *queue, const struct submission *submission, const void *qmd)
{
	unsigned int found = 0;

	for (uint32_t offset = 0; offset + QMD_SIZE <= submission->bytes; offset += sizeof(uint32_t)) {
		if (is_at(submission, qmd, offset)) {
			queue->offset = offset;
			found++;
		}
	}
	return found == 1;
}

/* Usually at the same distance as that of the stream's last launch. NULL if the commands do not have the descriptor
 * exactly once. */
static inline uint32_t *find(struct queue *queue, const struct submission *submission, const void *qmd)
{
	bool is_found = is_at(submission, qmd, queue->offset) || search(queue, submission, qmd);

	return is_found ? (uint32_t *)(void *)((char *)submission->commands + queue->offset) : NULL;
}

/* With SYNC the GPU fetches nothing of the commands before it processes those ahead of them. The byte also has bits of the length, which
 * are 0 below LARGE_BYTES. It is stored and not read, since the ring lies in the GPU's memory. */
#define SYNC 0x80

/* The GPU has not been told of the commands yet, so they may be written as usual. */
static inline enum queue_outcome note_mask(struct queue *queue, const struct launch *launch,
                                           const struct submission *submission, uint64_t turn, struct note *note)
{
	unsigned int first, words = qmd_mask_place(launch->gpu->family, launch->qmd, &first);
	uint32_t *descriptor = words > 0 ? find(queue, submission, launch->qmd) : NULL;
	enum queue_outcome outcome = QUEUE_NOTED;

	if (words == 0)
		outcome = QUEUE_NO_MASK;
	else if (!descriptor)
		outcome = QUEUE_NOT_FOUND;
	else
		note->mask = descriptor + first;
	if (outcome == QUEUE_NOTED)
		*submission->sync = SYNC;
	note->words = outcome == QUEUE_NOTED ? words : 0;
	for (unsigned int i = 0; i < note->words; i++)
		note->mask[i] = note->written.word[i] = notes_tagged(queue, turn, note->mask[i], i);
	return outcome;
}

static inline enum queue_outcome note_in(struct queue *queue, const struct launch *launch,
                                         const struct submission *submission, uint64_t turn, struct note *note)
{
	static const enum queue_outcome without_note[] = {
		[QUEUE_FRONT_UNKNOWN] = QUEUE_UNKNOWN, [QUEUE_FRONT_ENDED] = QUEUE_ALONE, [QUEUE_FRONT_RUNS] = QUEUE_NOTED};
	enum queue_outcome outcome = without_note[front_of(queue)];

	atomic_store_explicit(&note->turn, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	note->mask = NULL;
	if (outcome == QUEUE_NOTED && submission->bytes >= LARGE_BYTES)
		outcome = QUEUE_LARGE;
	else if (outcome == QUEUE_NOTED)
		outcome = note_mask(queue, launch, submission, turn, note);
	return outcome;
}

static inline void publish(struct queue *queue, uint64_t turn, struct note *note)
{
	atomic_store_explicit(&note->turn, turn, memory_order_release);
	atomic_store_explicit(&queue->turns, turn, memory_order_release);
	queue->others = atomic_load_explicit(&interruptions, memory_order_relaxed);
	queue->waits = false;
}

enum queue_outcome queue_note(const struct launch *launch, const struct submission *submission, struct launch_end end,
                              uint64_t cookie, uint64_t *turn)
{
	struct queue *queue = queue_of(launch);
	enum queue_outcome outcome = QUEUE_STREAMS;

	*turn = 0;
	if (queue) {
		uint64_t last = atomic_load_explicit(&queue->turns, memory_order_relaxed);
		struct note *note = &queue->notes[(last + 1) % LAUNCHES];

		outcome = note_in(queue, launch, submission, last + 1, note);
		if (outcome != QUEUE_NOT_FOUND) {
			*turn = last + 1;
			note->cookie = cookie;
			note->ahead = queue->notes[last % LAUNCHES].end;
			note->end = end;
			publish(queue, last + 1, note);
		}
	}
	if (outcome == QUEUE_NOT_FOUND)
		queue_interrupt();
	return outcome;
}
