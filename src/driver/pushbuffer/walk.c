#include "queue.h"

#include "notes.h"
#include "swap.h"

#include <string.h>

static atomic_bool is_being_changed;

/* A copy of the note of this turn, with the mask that it has now. False if a later launch has its place. */
static bool read_note(const struct queue *queue, uint64_t turn, struct note *copy)
{
	const struct note *note = &queue->notes[turn % LAUNCHES];
	bool is_whole = atomic_load_explicit(&note->turn, memory_order_acquire) == turn;

	if (is_whole) {
		copy->cookie = note->cookie;
		copy->ahead = note->ahead;
		copy->end = note->end;
		copy->mask = note->mask;
		copy->words = note->words;
		copy->written = note->written;
		atomic_thread_fence(memory_order_acquire);
		is_whole = atomic_load_explicit(&note->turn, memory_order_relaxed) == turn;
	}
	return is_whole;
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

static bool is_in_flight(const struct queue *queue, uint64_t turn)
{
	struct note note;

	return read_note(queue, turn, &note) && !notes_has_ended(note.end);
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Launches of a stream end in their order. So this looks at the one that was the oldest last time, then at newer ones in
 * steps that double, and then halves what is left. `last` + 1 if none is in flight. */
static uint64_t oldest_in_flight(struct queue *queue, uint64_t last)
{
	uint64_t first = greater(queue->oldest, atomic_load(&queue->begin) + 1), high = last + 1, step = 0;

	if (last >= LAUNCHES)
		first = greater(first, last - LAUNCHES + 1);
	while (first < high) {
		uint64_t half = (high - first) / 2, turn = first + (step < half ? step : half);

		if (is_in_flight(queue, turn))
			high = turn;
		else
			first = turn + 1;
		step = step * 2 + 1;
	}
	queue->oldest = first;
	return first;
}

/* --- changing ----------------------------------------------------------------------------------------------------- */

/* False once the launch ahead has ended, the stream's life has, or the word is not what was written: nothing of the
 * launch is written any more. */
static bool replace_word(const struct queue *queue, uint64_t life, const struct note *note, unsigned int i,
                         struct words *words, uint32_t new)
{
	struct swap swap = {
		.life = (const volatile uint64_t *)&queue->life, .alive = life, .guard = note->ahead.at,
		.word = &note->mask[i], .old = words->word[i], .new = new,
	};
	enum swap_outcome outcome = SWAP_LOOK_DIFFERS;

	while (outcome == SWAP_LOOK_DIFFERS && atomic_load(&queue->life) == life &&
	       (swap.unchanged = notes_read_end(note->ahead)) < note->ahead.number)
		outcome = swap_while(&swap);
	if (outcome == SWAP_DONE)
		words->word[i] = new;
	return outcome == SWAP_DONE;
}

static bool write_mask(struct queue *queue, uint64_t life, uint64_t turn, const struct note *note, struct words *words,
                       const struct qmd_mask *disable)
{
	struct words wanted;
	bool goes_on = true;

	memcpy(&wanted, disable, sizeof wanted);
	for (unsigned int i = 0; i < note->words && goes_on; i++) {
		uint32_t new = notes_tagged(queue, turn, wanted.word[i], i);

		goes_on = new == words->word[i] || replace_word(queue, life, note, i, words, new);
	}
	queue->changes[turn % LAUNCHES] = (struct changed){turn, *words};
	return goes_on;
}

/* Of `words`, the bits of present TPCs. */
static struct qmd_mask mask_of(const struct queue *queue, const struct note *note, const struct words *words)
{
	struct words bits = {{0}};
	struct qmd_mask mask;

	for (unsigned int i = 0; i < note->words; i++)
		bits.word[i] = words->word[i] & queue->present.word[i];
	memcpy(&mask, &bits, sizeof mask);
	return mask;
}

/* --- visiting ----------------------------------------------------------------------------------------------------- */

struct walk {
	queue_visitor *visit;
	void *data;
	bool again;
	struct queue *queue;
	uint64_t life; /* of the queue */
	uint64_t oldest;
	unsigned int changes;
};

/* False: the launches behind it are not visited. */
static bool visit_noted(struct walk *walk, uint64_t turn, const struct note *note)
{
	const struct changed *changed = &walk->queue->changes[turn % LAUNCHES];
	struct words words = changed->turn == turn ? changed->written : note->written;
	const struct queued launch = {
		.turn = turn, .cookie = note->cookie, .ahead = (unsigned int)(turn - walk->oldest),
		.front = note->ahead, .end = note->end,
		.noted = mask_of(walk->queue, note, &note->written), .disable = mask_of(walk->queue, note, &words),
	};
	struct qmd_mask disable = launch.disable;
	enum queue_answer answer = walk->visit(walk->data, &launch, &disable);

	if (answer == QUEUE_CHANGE)
		walk->changes += write_mask(walk->queue, walk->life, turn, note, &words, &disable);
	return answer != QUEUE_STOP;
}

static bool visit(struct walk *walk, uint64_t turn)
{
	struct note note;
	bool is_there = read_note(walk->queue, turn, &note);

	return is_there && (!note.mask || visit_noted(walk, turn, &note));
}

/* The oldest launch in flight may have started. */
static void walk_queue(struct walk *walk)
{
	uint64_t last;
	bool goes_on;

	walk->life = atomic_load(&walk->queue->life);
	last = atomic_load_explicit(&walk->queue->turns, memory_order_acquire);
	goes_on = walk->life % 2 == 1;
	if (goes_on)
		walk->oldest = oldest_in_flight(walk->queue, last);
	if (walk->again)
		walk->queue->answered = walk->oldest;
	for (uint64_t turn = greater(walk->oldest, walk->queue->answered) + 1; goes_on && turn <= last; turn++) {
		goes_on = visit(walk, turn);
		if (goes_on && !walk->again)
			walk->queue->answered = turn;
	}
}

static unsigned int walk_all(bool again, queue_visitor *visitor, void *data)
{
	struct queue *queues = atomic_load(&notes_queues);
	struct walk walk = {.visit = visitor, .data = data, .again = again};

	if (queues && !atomic_exchange_explicit(&is_being_changed, true, memory_order_acquire)) {
		for (uint64_t left = atomic_load(&notes_living); left != 0; left &= left - 1) {
			walk.queue = &queues[__builtin_ctzll(left)];
			walk_queue(&walk);
		}
		atomic_store_explicit(&is_being_changed, false, memory_order_release);
	}
	return walk.changes;
}

unsigned int queue_walk(queue_visitor *visitor, void *data)
{
	return walk_all(true, visitor, data);
}

unsigned int queue_walk_on(queue_visitor *visitor, void *data)
{
	return walk_all(false, visitor, data);
}

/* A thread that was changing masks does not exist in the child. */
void queue_after_fork(void)
{
	queue_forget_all();
	atomic_store(&is_being_changed, false);
}
