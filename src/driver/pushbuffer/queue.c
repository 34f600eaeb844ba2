#include "queue.h"

#include "base/futex.h"
#include "driver/gpus.h"
#include "driver/streams.h"
#include "swap.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define STREAMS 64    /* a power of two */
#define LAUNCHES 1024 /* of a stream; more do not fit into a channel's ring */
#define MASK_WORDS (QMD_MASK_BITS / 32)

/* The bits of a mask as the descriptor has them. */
struct words {
	uint32_t word[MASK_WORDS];
};

/* A launch that was noted. Its place may be taken by a later launch at any time: `turn` says whose it is. */
struct note {
	_Atomic uint64_t turn; /* 0: being written */
	struct launch_end ahead, end;
	const void *function;
	uint32_t *mask; /* in the pushbuffer */
	struct words written, tag, present;
	struct words noted; /* in a copy */
	unsigned int words;
};

/* What a change has made of it. Only who changes writes here. */
struct changed {
	uint64_t turn;
	struct words written;
};

struct queue {
	_Atomic uintptr_t stream;   /* 0: free */
	_Atomic(CUcontext) context; /* of the stream */
	_Atomic uint64_t turns;     /* launches that were noted */
	struct launch_end last;      /* of the stream's last launch; only launching threads look at it */
	uint32_t offset;            /* of the last descriptor, in its commands */
	struct note notes[LAUNCHES];
	struct changed changes[LAUNCHES];
};

static _Atomic(struct queue *) queues; /* STREAMS, after queue_prepare */

static atomic_bool is_being_changed;

/* Never given back: a launch may look at any time. */
static struct queue *make_queues(void)
{
	size_t bytes = STREAMS * sizeof(struct queue);
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory != MAP_FAILED ? memory : NULL;
}

static struct queue *place_of(uintptr_t stream)
{
	return &queues[stream * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

bool queue_prepare(void)
{
	if (!queues && swap_prepare())
		queues = make_queues();
	return queues;
}

/* The GPU writes there. */
static uint64_t read_end(struct launch_end end)
{
	return __atomic_load_n(end.at, __ATOMIC_ACQUIRE);
}

static bool has_ended(struct launch_end end)
{
	return end.number == 0 || read_end(end) >= end.number;
}

/* --- noting
 * --------------------------------------------------------------------------------------------------------- */

/* The stream's place. Another stream's is taken over where nothing of that one waits; NULL if something does. */
static struct queue *queue_of(const struct launch *launch)
{
	uintptr_t stream = streams_number(launch->frame.stream, launch->context);
	struct queue *queue = place_of(stream);

	if (atomic_load_explicit(&queue->stream, memory_order_relaxed) == stream &&
	    atomic_load_explicit(&queue->context, memory_order_relaxed) == launch->context)
		return queue;
	if (!has_ended(queue->last))
		return NULL;
	queue->last.number = 0;
	atomic_store(&queue->context, launch->context);
	atomic_store(&queue->stream, stream);
	return queue;
}

static bool is_at(const struct submission *submission, const void *qmd, uint32_t offset)
{
	const char *commands = submission->commands;

	return offset + QMD_SIZE <= submission->bytes && memcmp(commands + offset, qmd, QMD_SIZE) == 0;
}

/* Usually at the same distance as that of the stream's last launch. NULL if the commands do not have the
 * descriptor exactly once. */
static char *find(struct queue *queue, const struct submission *submission, const void *qmd)
{
	unsigned int found = is_at(submission, qmd, queue->offset);

	for (uint32_t offset = 0; found != 1 && offset + QMD_SIZE <= submission->bytes; offset += sizeof(uint32_t)) {
		if (is_at(submission, qmd, offset)) {
			queue->offset = offset;
			found++;
		}
	}
	return found == 1 ? (char *)submission->commands + queue->offset : NULL;
}

static struct words words_of(const struct qmd_mask *mask)
{
	struct words words;

	memcpy(&words, mask, sizeof words);
	return words;
}

/* `bits` where TPCs are present, the tag elsewhere. */
static uint32_t tagged(const struct note *note, const struct words *bits, unsigned int i)
{
	return (bits->word[i] & note->present.word[i]) | (note->tag.word[i] & ~note->present.word[i]);
}

static struct words tag_of(uint64_t turn)
{
	uint64_t mixed = turn * UINT64_C(0x9e3779b97f4a7c15);

	return (struct words){{(uint32_t)(mixed >> 32), (uint32_t)(mixed >> 16), (uint32_t)turn, (uint32_t)mixed}};
}

/* The GPU has not been told of the commands yet, so they may be written as usual. */
static void write_note(struct note *note, uint64_t turn, uint32_t *mask, const struct qmd_mask *present)
{
	struct words before;

	note->mask = mask;
	note->tag = tag_of(turn);
	note->present = words_of(present);
	memcpy(&before, mask, note->words * sizeof before.word[0]);
	for (unsigned int i = 0; i < note->words; i++)
		mask[i] = note->written.word[i] = tagged(note, &before, i);
}

static enum queue_outcome note_in(struct queue *queue, const struct launch *launch, const struct submission *submission,
                                  struct launch_end end)
{
	uint64_t turn = atomic_load_explicit(&queue->turns, memory_order_relaxed) + 1;
	struct note *note = &queue->notes[turn % LAUNCHES];
	unsigned int first, words = qmd_mask_place(launch->gpu->family, launch->qmd, &first);
	char *descriptor = words > 0 ? find(queue, submission, launch->qmd) : NULL;

	if (words == 0)
		return QUEUE_NO_MASK;
	if (!descriptor)
		return QUEUE_NOT_FOUND;
	atomic_store_explicit(&note->turn, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	note->ahead = queue->last;
	note->end = end;
	note->function = launch->function;
	note->words = words;
	write_note(note, turn, (uint32_t *)(void *)descriptor + first, &launch->gpu->present);
	atomic_store_explicit(&note->turn, turn, memory_order_release);
	atomic_store_explicit(&queue->turns, turn, memory_order_release);
	return QUEUE_NOTED;
}

enum queue_outcome queue_note(const struct launch *launch, const struct submission *submission,
                              struct launch_end end)
{
	struct queue *queue = queue_of(launch);
	enum queue_outcome outcome = queue ? QUEUE_ALONE : QUEUE_STREAMS;

	if (queue && !has_ended(queue->last))
		outcome = note_in(queue, launch, submission, end);
	/* The commands of the launch may come later in the call. */
	if (queue && outcome != QUEUE_NOT_FOUND)
		queue->last = end;
	return outcome;
}

/* --- changing
 * ------------------------------------------------------------------------------------------------------- */

/* A copy of the note of this turn, with the mask that it has now. False if a later launch has its place. */
static bool read_note(const struct queue *queue, uint64_t turn, struct note *copy)
{
	const struct note *note = &queue->notes[turn % LAUNCHES];
	const struct changed *changed = &queue->changes[turn % LAUNCHES];
	bool is_whole = atomic_load_explicit(&note->turn, memory_order_acquire) == turn;

	if (is_whole) {
		copy->ahead = note->ahead;
		copy->end = note->end;
		copy->function = note->function;
		copy->mask = note->mask;
		copy->noted = note->written;
		copy->written = changed->turn == turn ? changed->written : note->written;
		copy->tag = note->tag;
		copy->present = note->present;
		copy->words = note->words;
		atomic_thread_fence(memory_order_acquire);
		is_whole = atomic_load_explicit(&note->turn, memory_order_relaxed) == turn;
	}
	return is_whole;
}

/* False once the launch ahead has ended, or the word is not what was written: nothing of the launch is written any
 * more. */
static bool replace_word(struct note *note, unsigned int i, uint32_t new)
{
	uint64_t guard = read_end(note->ahead);
	enum swap_outcome outcome = SWAP_GUARD_CHANGED;

	while (outcome == SWAP_GUARD_CHANGED && guard < note->ahead.number) {
		outcome = swap_while(note->ahead.at, guard, &note->mask[i], note->written.word[i], new);
		guard = read_end(note->ahead);
	}
	if (outcome == SWAP_DONE)
		note->written.word[i] = new;
	return outcome == SWAP_DONE;
}

static bool write_mask(struct queue *queue, uint64_t turn, struct note *note, const struct qmd_mask *disable)
{
	const struct words wanted = words_of(disable);
	struct changed *changed = &queue->changes[turn % LAUNCHES];
	bool goes_on = true;

	for (unsigned int i = 0; i < note->words && goes_on; i++) {
		uint32_t new = tagged(note, &wanted, i);

		goes_on = new == note->written.word[i] || replace_word(note, i, new);
	}
	*changed = (struct changed){turn, note->written};
	return goes_on;
}

static unsigned int waiting_in(const struct queue *queue, uint64_t last)
{
	unsigned int waiting = 0;
	struct note note;

	while (waiting < LAUNCHES && last > waiting && read_note(queue, last - waiting, &note) &&
	       !has_ended(note.ahead))
		waiting++;
	return waiting;
}

/* Of `words`, the bits of present TPCs. */
static struct qmd_mask mask_of(const struct note *note, const struct words *words)
{
	struct words bits = {{0}};
	struct qmd_mask mask;

	for (unsigned int i = 0; i < note->words; i++)
		bits.word[i] = words->word[i] & note->present.word[i];
	memcpy(&mask, &bits, sizeof mask);
	return mask;
}

static bool change_one(struct queue *queue, uint64_t turn, unsigned int ahead, queue_chooser *choose, void *data)
{
	struct note note;

	if (!read_note(queue, turn, &note))
		return false;
	const struct queued launch = {
		.function = note.function, .number = note.end.number, .ahead = ahead,
		.noted = mask_of(&note, &note.noted), .disable = mask_of(&note, &note.written),
	};
	struct qmd_mask disable = launch.disable;

	return choose(data, &launch, &disable) && write_mask(queue, turn, &note, &disable);
}

static unsigned int change_queue(struct queue *queue, queue_chooser *choose, void *data)
{
	uint64_t last = atomic_load_explicit(&queue->turns, memory_order_acquire);
	unsigned int waiting = atomic_load(&queue->stream) != 0 ? waiting_in(queue, last) : 0, changes = 0;

	for (unsigned int i = 0; i < waiting; i++)
		changes += change_one(queue, last - i, waiting - 1 - i, choose, data);
	return changes;
}

unsigned int queue_change(queue_chooser *choose, void *data)
{
	unsigned int changes = 0;

	if (atomic_exchange_explicit(&is_being_changed, true, memory_order_acquire))
		return 0;
	for (unsigned int i = 0; queues && i < STREAMS; i++)
		changes += change_queue(&queues[i], choose, data);
	atomic_store_explicit(&is_being_changed, false, memory_order_release);
	return changes;
}

/* --- forgetting
 * ----------------------------------------------------------------------------------------------------- */

/* From here on a change finds nothing in the queue. */
static void forget(struct queue *queue)
{
	atomic_store(&queue->stream, 0);
	queue->last.number = 0;
	for (unsigned int i = 0; i < LAUNCHES; i++)
		atomic_store_explicit(&queue->notes[i].turn, 0, memory_order_relaxed);
}

/* A change takes some microseconds, and never waits. */
static void wait_for_change(void)
{
	while (atomic_load(&is_being_changed))
		sched_yield();
}

void queue_forget_stream(CUstream stream, CUcontext context)
{
	uintptr_t number = streams_number(stream, context);
	struct queue *queue = queues ? place_of(number) : NULL;

	if (queue && atomic_load(&queue->stream) == number) {
		forget(queue);
		wait_for_change();
	}
}

void queue_forget_context(CUcontext context)
{
	for (unsigned int i = 0; queues && i < STREAMS; i++) {
		if (atomic_load(&queues[i].stream) != 0 && atomic_load(&queues[i].context) == context)
			forget(&queues[i]);
	}
	wait_for_change();
}

void queue_after_fork(void)
{
	for (unsigned int i = 0; queues && i < STREAMS; i++) {
		if (atomic_load(&queues[i].stream) != 0)
			forget(&queues[i]);
	}
	atomic_store(&is_being_changed, false);
}
