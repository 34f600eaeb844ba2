#include "queue.h"

#include "driver/releases.h"
#include "driver/streams.h"
#include "notes.h"

#include <string.h>

/* The byte with SYNC of a ring's entry has the upper bits of the length, which are 0 below this. */
#define LARGE_BYTES (64u << 10)

/* Rise with each interruption, and with each foreign work. */
static _Alignas(64) _Atomic uint64_t interruptions;
static _Atomic uint64_t foreign;

static atomic_bool keeps_masks;

void queue_change_masks(bool may)
{
	atomic_store(&keeps_masks, !may);
}

/* --- what is ahead ------------------------------------------------------------------------------------------------ */

/* The place of most streams that have a place; otherwise NULL. */
static inline struct queue *find_at_once(CUstream stream, CUcontext context)
{
	struct queue *queues = atomic_load_explicit(&notes_queues, memory_order_acquire);
	uintptr_t number = stream == CU_STREAM_LEGACY ? (uintptr_t)context : (uintptr_t)stream;
	struct queue *queue = queues ? notes_place(queues, number, 0) : NULL;

	return queue && notes_has_place(queue, number) ? queue : NULL;
}

void queue_interrupt(void)
{
	atomic_fetch_add_explicit(&interruptions, 1, memory_order_relaxed);
}

void queue_pass_foreign(void)
{
	atomic_fetch_add_explicit(&foreign, 1, memory_order_relaxed);
}

/* QUEUE_NOTED: a running launch is ahead, also of foreign work. */
static inline enum queue_outcome outcome_by_front(const struct queue *queue)
{
	uint64_t last = atomic_load_explicit(&queue->turns, memory_order_relaxed);
	enum queue_outcome outcome = queue->ended;
	bool is_known = queue->others == atomic_load_explicit(&interruptions, memory_order_relaxed);

	if (is_known && !notes_has_ended(queue->notes[last % LAUNCHES].end))
		outcome = QUEUE_NOTED;
	else if (!is_known || queue->foreign != atomic_load_explicit(&foreign, memory_order_relaxed))
		outcome = QUEUE_UNKNOWN;
	return outcome;
}

static uint64_t own_number(void)
{
	static _Atomic uint64_t threads;
	static __thread uint64_t own __attribute__((tls_model("initial-exec")));

	own = own != 0 ? own : atomic_fetch_add(&threads, 1) + 1;
	return own;
}

static uint64_t thread_of(CUstream stream)
{
	return stream == CU_STREAM_PER_THREAD ? own_number() : 0;
}

/* A new thread may have the place of an ended thread, with launches of a different stream. */
static struct queue *find(CUstream stream, CUcontext context)
{
	struct queue *queue = notes_find(streams_number(stream, context));
	uint64_t thread = thread_of(stream);

	if (queue && queue->thread != thread) {
		atomic_store(&queue->begin, atomic_load(&queue->turns));
		queue->others = NEVER;
		queue->thread = thread;
	}
	return queue;
}

void queue_wait(CUstream stream, CUcontext context)
{
	struct queue *queue = notes_find(streams_number(stream, context));

	if (queue)
		queue->ended = QUEUE_UNKNOWN;
}

/* --- noting ------------------------------------------------------------------------------------------------------- */

static inline bool is_equal(const uint32_t *a, const uint32_t *b, unsigned int first)
{
	return memcmp(a + first, b + first, 4 * sizeof *a) == 0;
}

/* Only some words are compared at the expected place. Address and number of the timestamp are in no descriptor of
 * another launch of the context, so what has both is a copy of this descriptor. The mask is the part that will be
 * written. */
static inline bool is_at(const struct queue *queue, const struct launch *launch, const struct submission *submission,
                         uint32_t offset)
{
	const uint32_t *found = (const void *)((const char *)submission->commands + offset);

	return offset + QMD_SIZE <= submission->bytes && submission->bytes < LARGE_BYTES &&
	       is_equal(found, launch->qmd, queue->stamp) && is_equal(found, launch->qmd, queue->mask.first) &&
	       qmd_mask_is_valid(&queue->mask, launch->qmd);
}

static inline void set_offset(struct queue *queue, const struct submission *submission, uint32_t offset)
{
	queue->offset = offset;
	queue->rest = submission->bytes - offset;
}

/* Usually the descriptor is as far from the begin of the commands, or from the end, as in the stream's last launch: the
 * commands hold the parameters as well. */
static inline bool is_expected(struct queue *queue, const struct launch *launch, const struct submission *submission)
{
	uint32_t from_end = submission->bytes > queue->rest ? submission->bytes - queue->rest : 0;
	bool is_there = is_at(queue, launch, submission, queue->offset);
	uint32_t offset = is_there ? queue->offset : from_end;

	is_there = is_there || is_at(queue, launch, submission, from_end);
	if (is_there)
		set_offset(queue, submission, offset);
	return is_there;
}

static inline uint64_t words_at(const void *words)
{
	uint64_t value;

	memcpy(&value, words, sizeof value);
	return value;
}

/* First looks at the address of the timestamp. */
static __attribute__((noinline)) bool search(struct queue *queue, const struct launch *launch,
                                             const struct submission *submission)
{
	const char *commands = submission->commands;
	uint32_t stamp = queue->stamp * (uint32_t)sizeof(uint32_t);
	uint64_t wanted = words_at((const char *)launch->qmd + stamp);
	unsigned int found = 0;

	for (uint32_t offset = 0; offset + QMD_SIZE <= submission->bytes; offset += sizeof(uint32_t)) {
		if (words_at(commands + offset + stamp) == wanted &&
		    memcmp(commands + offset, launch->qmd, QMD_SIZE) == 0) {
			set_offset(queue, submission, offset);
			found++;
		}
	}
	return found == 1;
}

/* The GPU has not been told of the commands yet, so an ordinary store is enough. */
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

/* Readers skip the note until end_note. */
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
	queue->foreign = atomic_load_explicit(&foreign, memory_order_relaxed);
	queue->ended = QUEUE_ALONE;
	launch->frame.turn = turn;
}

static inline void note_without_mask(struct queue *queue, struct launch *launch)
{
	uint64_t turn = next_turn(queue);
	struct note *note = begin_note(queue, turn);

	note->mask = NULL;
	end_note(queue, turn, note, launch);
}

/* With SYNC the GPU fetches nothing of the commands before all commands ahead are processed. The byte is
 * stored and not read, since the ring lies in the GPU's memory. */
#define SYNC 0x80

/* The descriptor lies where queue->offset says. */
static inline void note_with_mask(struct queue *queue, struct launch *launch, const struct submission *submission)
{
	uint64_t turn = next_turn(queue);
	struct note *note = begin_note(queue, turn);
	char *descriptor = (char *)submission->commands + queue->offset;

	note->mask = (uint32_t *)(void *)descriptor + queue->mask.first;
	note->words = queue->mask.words;
	note->is_behind_foreign = queue->foreign != atomic_load_explicit(&foreign, memory_order_relaxed);
	write_mask(queue, turn, note);
	*submission->sync = SYNC;
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

static inline enum queue_outcome note_in(struct queue *queue, struct launch *launch,
                                         const struct submission *submission)
{
	enum queue_outcome outcome = outcome_by_front(queue);

	launch->frame.front = queue->notes[(next_turn(queue) - 1) % LAUNCHES].end;
	if (outcome != QUEUE_NOTED)
		launch->frame.front.number = 0;
	if (outcome == QUEUE_NOTED &&
	    (launch->frame.keeps_mask || atomic_load_explicit(&keeps_masks, memory_order_relaxed)))
		outcome = QUEUE_KEPT;
	if (outcome == QUEUE_NOTED)
		outcome = note_behind(queue, launch, submission);
	else
		note_without_mask(queue, launch);
	return outcome;
}

/* The stream has no place yet, or a later place in the row. */
static __attribute__((noinline)) enum queue_outcome note_first(struct launch *launch,
                                                               const struct submission *submission)
{
	uintptr_t stream = streams_number(launch->frame.stream, launch->context);
	struct queue *queue = find(launch->frame.stream, launch->context);
	enum queue_outcome outcome = QUEUE_STREAMS;

	if (!queue && (queue = notes_take(launch, stream)))
		queue->thread = thread_of(launch->frame.stream);
	launch->frame.turn = launch->frame.front.number = 0;
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

/* --- widening ----------------------------------------------------------------------------------------------------- */

bool queue_widen(const struct launch *launch, const struct submission *submission, const struct qmd_mask *disable)
{
	struct queue *queue = find(launch->frame.stream, launch->context);
	bool is_there = queue && !launch->frame.keeps_mask && submission->bytes < LARGE_BYTES &&
	                qmd_mask_is_valid(&queue->mask, launch->qmd) &&
	                (is_expected(queue, launch, submission) || search(queue, launch, submission));

	for (unsigned int i = 0; is_there && i < queue->mask.words; i++) {
		char *at = (char *)submission->commands + queue->offset + (queue->mask.first + i) * sizeof(uint32_t);
		uint32_t present = (uint32_t)(notes_present(queue, i / 2) >> i % 2 * 32), word;

		memcpy(&word, at, sizeof word);
		word &= (uint32_t)(disable->words[i / 2] >> i % 2 * 32) | ~present;
		memcpy(at, &word, sizeof word);
	}
	return is_there;
}
