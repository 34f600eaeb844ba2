#include "queue.h"

#include "driver/gpus.h"
#include "driver/releases.h"
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

static inline bool has_place(const struct queue *queue, uintptr_t stream)
{
	return atomic_load_explicit(&queue->stream, memory_order_acquire) == stream;
}

/* NULL if the stream has none. */
static __attribute__((noinline)) struct queue *find_queue(uintptr_t stream)
{
	struct queue *queues = atomic_load(&notes_queues), *found = NULL;

	for (unsigned int i = 0; queues && i < PLACES && !found; i++) {
		struct queue *queue = place(queues, stream, i);

		if (has_place(queue, stream))
			found = queue;
	}
	return found;
}

/* The same for most streams that have one. */
static inline struct queue *find_at_once(CUstream stream, CUcontext context)
{
	struct queue *queues = atomic_load_explicit(&notes_queues, memory_order_acquire);
	uintptr_t number = stream == CU_STREAM_LEGACY ? (uintptr_t)context : (uintptr_t)stream;
	struct queue *queue = queues ? place(queues, number, 0) : NULL;

	return queue && has_place(queue, number) ? queue : NULL;
}

static void begin_life(struct queue *queue, unsigned int number, const struct launch *launch)
{
	uint64_t turns = atomic_load(&queue->turns);

	memcpy(&queue->present, &launch->gpu->present, sizeof queue->present);
	queue->number = number;
	atomic_store(&queue->context, launch->context);
	atomic_store(&queue->begin, turns);
	queue->others = NEVER;
	queue->ended = QUEUE_FRONT_ENDED;
	queue->mask = qmd_mask_place(launch->gpu->family);
	atomic_fetch_add(&queue->life, 1);
	atomic_fetch_or(&notes_living, UINT64_C(1) << number);
}

/* Gives the stream a free place; NULL if there is none. */
static struct queue *take_place(const struct launch *launch, uintptr_t stream)
{
	struct queue *queues = atomic_load(&notes_queues), *taken = NULL;

	for (unsigned int i = 0; queues && i < PLACES && !taken; i++) {
		struct queue *queue = place(queues, stream, i);
		uintptr_t nobody = 0;

		if (atomic_compare_exchange_strong(&queue->stream, &nobody, stream)) {
			begin_life(queue, (unsigned int)(queue - queues), launch);
			taken = queue;
		}
	}
	return taken;
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
	struct queue *queue = find_queue(streams_number(stream, context));

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
	enum queue_front front = queue->ended;

	if (queue->others != atomic_load_explicit(&interruptions, memory_order_relaxed))
		front = QUEUE_FRONT_UNKNOWN;
	else if (!notes_has_ended(queue->notes[last % LAUNCHES].end))
		front = QUEUE_FRONT_RUNS;
	return front;
}

static __attribute__((noinline)) enum queue_front search_front(CUstream stream, CUcontext context)
{
	const struct queue *queue = find_queue(streams_number(stream, context));

	return queue ? front_of(queue) : QUEUE_FRONT_UNKNOWN;
}

enum queue_front queue_front(CUstream stream, CUcontext context)
{
	const struct queue *queue = find_at_once(stream, context);

	return __builtin_expect(queue != NULL, 1) ? front_of(queue) : search_front(stream, context);
}

void queue_wait(CUstream stream, CUcontext context)
{
	struct queue *queue = find_queue(streams_number(stream, context));

	if (queue)
		queue->ended = QUEUE_FRONT_UNKNOWN;
}

/* --- noting ------------------------------------------------------------------------------------------------------- */

static inline bool is_equal(const uint32_t *a, const uint32_t *b, unsigned int first)
{
	return memcmp(a + first, b + first, 4 * sizeof *a) == 0;
}

/* Of the expected place, only words that matter are compared: the release of the timestamp, whose address and number no
 * other launch of the context has, so that only copies of this descriptor have them; and the mask, which is to be
 * written. */
static inline bool is_expected(const struct queue *queue, const struct launch *launch,
                               const struct submission *submission)
{
	const uint32_t *found = (const void *)((const char *)submission->commands + queue->offset);
	unsigned int stamp = launch->releases->stamping.address.word;

	return queue->offset + QMD_SIZE <= submission->bytes && submission->bytes < LARGE_BYTES &&
	       is_equal(found, launch->qmd, stamp) && is_equal(found, launch->qmd, queue->mask.first) &&
	       qmd_mask_is_valid(&queue->mask, launch->qmd);
}

static __attribute__((noinline)) bool search(struct queue *queue, const struct launch *launch,
                                             const struct submission *submission)
{
	const char *commands = submission->commands;
	unsigned int found = 0;

	for (uint32_t offset = 0; offset + QMD_SIZE <= submission->bytes; offset += sizeof(uint32_t)) {
		if (memcmp(commands + offset, launch->qmd, QMD_SIZE) == 0) {
			queue->offset = offset;
			found++;
		}
	}
	return found == 1;
}

/* The GPU has not been told of the commands yet, so they may be written as usual. */
static inline void write_mask(const struct queue *queue, uint64_t turn, struct note *note)
{
	struct words bits = {{0}};

	if (__builtin_expect(note->words == MASK_WORDS, 1))
		memcpy(&bits, note->mask, sizeof bits);
	else
		memcpy(&bits, note->mask, sizeof bits.half[0]);
	note->written = bits = notes_tagged(queue, turn, &bits);
	if (__builtin_expect(note->words == MASK_WORDS, 1))
		memcpy(note->mask, &bits, sizeof bits);
	else
		memcpy(note->mask, &bits, sizeof bits.half[0]);
}

static inline uint64_t next_turn(const struct queue *queue)
{
	return atomic_load_explicit(&queue->turns, memory_order_relaxed) + 1;
}

/* Until end_note, the note is nobody's. */
static inline struct note *begin_note(struct queue *queue, uint64_t turn)
{
	struct note *note = &queue->notes[turn % LAUNCHES];

	atomic_store_explicit(&note->turn, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	return note;
}

static inline void end_note(struct queue *queue, uint64_t turn, struct note *note, struct launch *launch)
{
	note->cookie = launch->frame.cookie;
	note->end = launch->frame.end;
	atomic_store_explicit(&note->turn, turn, memory_order_release);
	atomic_store_explicit(&queue->turns, turn, memory_order_release);
	queue->others = atomic_load_explicit(&interruptions, memory_order_relaxed);
	queue->ended = QUEUE_FRONT_ENDED;
	launch->frame.turn = turn;
}

static inline void note_without_mask(struct queue *queue, struct launch *launch)
{
	uint64_t turn = next_turn(queue);
	struct note *note = begin_note(queue, turn);

	note->mask = NULL;
	end_note(queue, turn, note, launch);
}

/* The descriptor lies where queue->offset says. */
static inline void note_with_mask(struct queue *queue, struct launch *launch, const struct submission *submission)
{
	uint64_t turn = next_turn(queue);
	struct note *note = begin_note(queue, turn);
	char *descriptor = (char *)submission->commands + queue->offset;

	note->mask = (uint32_t *)(void *)descriptor + queue->mask.first;
	note->words = queue->mask.words;
	write_mask(queue, turn, note);
	end_note(queue, turn, note, launch);
}

static __attribute__((noinline)) enum queue_outcome note_elsewhere(struct queue *queue, struct launch *launch,
                                                                   const struct submission *submission)
{
	enum queue_outcome outcome = QUEUE_NOTED;

	if (submission->bytes >= LARGE_BYTES)
		outcome = QUEUE_LARGE;
	else if (!qmd_mask_is_valid(&queue->mask, launch->qmd))
		outcome = QUEUE_NO_MASK;
	else if (!search(queue, launch, submission))
		outcome = QUEUE_NOT_FOUND;
	if (outcome == QUEUE_NOTED)
		note_with_mask(queue, launch, submission);
	else if (outcome == QUEUE_NOT_FOUND)
		queue_interrupt();
	else
		note_without_mask(queue, launch);
	return outcome;
}

/* Usually the descriptor is as far from the begin of the commands as that of the stream's last launch. */
static __attribute__((noinline)) enum queue_outcome note_behind(struct queue *queue, struct launch *launch,
                                                                const struct submission *submission)
{
	enum queue_outcome outcome = QUEUE_NOTED;

	if (__builtin_expect(is_expected(queue, launch, submission), 1))
		note_with_mask(queue, launch, submission);
	else
		outcome = note_elsewhere(queue, launch, submission);
	return outcome;
}

static inline enum queue_outcome note_in(struct queue *queue, struct launch *launch, const struct submission *submission)
{
	enum queue_front front = front_of(queue);
	enum queue_outcome outcome = (enum queue_outcome)front;

	if (front == QUEUE_FRONT_RUNS)
		outcome = note_behind(queue, launch, submission);
	else
		note_without_mask(queue, launch);
	return outcome;
}

/* The stream has no place yet, or not the first at which one looks. */
static __attribute__((noinline)) enum queue_outcome note_first(struct launch *launch, const struct submission *submission)
{
	uintptr_t stream = streams_number(launch->frame.stream, launch->context);
	struct queue *queue = find_queue(stream);
	enum queue_outcome outcome = QUEUE_STREAMS;

	if (!queue)
		queue = take_place(launch, stream);
	launch->frame.turn = 0;
	if (queue)
		outcome = note_in(queue, launch, submission);
	return outcome;
}

enum queue_outcome queue_note(struct launch *launch, const struct submission *submission)
{
	struct queue *queue = find_at_once(launch->frame.stream, launch->context);
	enum queue_outcome outcome;

	if (__builtin_expect(queue != NULL, 1))
		outcome = note_in(queue, launch, submission);
	else
		outcome = note_first(launch, submission);
	return outcome;
}
