#include "queue.h"

#include "base/extremes.h"
#include "notes.h"
#include "swap.h"

#include <string.h>

static atomic_bool is_being_changed;
static uint64_t walks; /* the number of the present walk */

/* A copy of the note of this turn. False if a later launch has the note. */
static bool read_note(const struct queue *queue, uint64_t turn, struct note *copy)
{
	const struct note *note = &queue->notes[turn % LAUNCHES];
	bool is_whole = atomic_load_explicit(&note->turn, memory_order_acquire) == turn;

	if (is_whole) {
		copy->cookie = note->cookie;
		copy->end = note->end;
		copy->mask = note->mask;
		copy->words = note->words;
		copy->written = note->written;
		copy->is_behind_foreign = note->is_behind_foreign;
		atomic_thread_fence(memory_order_acquire);
		is_whole = atomic_load_explicit(&note->turn, memory_order_relaxed) == turn;
	}
	return is_whole;
}

/* --- finding ---------------------------------------------------------------------------------------------------- */

static bool is_in_flight(const struct queue *queue, uint64_t turn)
{
	struct note note;

	return read_note(queue, turn, &note) && !notes_has_ended(note.end);
}

/* Launches of a stream end in their order. The search begins with the oldest launch of the last time, goes on in steps
 * that double, and then halves the rest. `last` + 1 if no launch is in flight. */
static uint64_t oldest_in_flight(struct queue *queue, uint64_t last)
{
	uint64_t first = max_u64(queue->oldest, atomic_load(&queue->begin) + 1), high = last + 1, step = 0;

	if (last >= LAUNCHES)
		first = max_u64(first, last - LAUNCHES + 1);
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

/* --- changing --------------------------------------------------------------------------------------------------- */

/* A launch that waits. */
struct waiting {
	struct queue *queue;
	uint64_t life; /* of the queue */
	uint64_t turn;
	uint64_t cookie_ahead;
	struct launch_end ahead;
	struct note note;
	struct words words; /* its mask now */
};

static uint32_t word_of(const struct words *words, unsigned int i)
{
	return (uint32_t)(words->half[i / 2] >> i % 2 * 32);
}

static void set_word(struct words *words, unsigned int i, uint32_t word)
{
	words->half[i / 2] ^= (uint64_t)(word ^ word_of(words, i)) << i % 2 * 32;
}

/* False once the launch ahead or the life of the stream has ended, or if the word is not the written one: then no
 * further word of the launch is written. */
static bool replace_word(struct waiting *waiting, unsigned int i, uint32_t new)
{
	struct swap swap = {
		.life = (const volatile uint64_t *)&waiting->queue->life, .alive = waiting->life,
		.guard = waiting->ahead.at,
		.word = &waiting->note.mask[i], .old = word_of(&waiting->words, i), .new = new,
	};
	enum swap_outcome outcome = SWAP_LOOK_DIFFERS;

	while (outcome == SWAP_LOOK_DIFFERS && atomic_load(&waiting->queue->life) == waiting->life &&
	       (swap.unchanged = notes_read_end(waiting->ahead)) < waiting->ahead.number)
		outcome = swap_while(&swap);
	if (outcome == SWAP_DONE)
		set_word(&waiting->words, i, new);
	return outcome == SWAP_DONE;
}

static bool write_mask(struct waiting *waiting, const struct qmd_mask *disable)
{
	struct queue *queue = waiting->queue;
	struct words wanted;
	bool goes_on = true;

	memcpy(&wanted, disable, sizeof wanted);
	wanted = notes_tagged(queue, waiting->turn, &wanted);
	for (unsigned int i = 0; i < waiting->note.words && goes_on; i++) {
		uint32_t new = word_of(&wanted, i);

		goes_on = new == word_of(&waiting->words, i) || replace_word(waiting, i, new);
	}
	queue->furthest = max_u64(queue->furthest, waiting->turn);
	queue->changes[waiting->turn % LAUNCHES] = (struct changed){waiting->turn, walks, waiting->words};
	return goes_on;
}

/* --- visiting --------------------------------------------------------------------------------------------------- */

/* Of `words`, the bits of present TPCs. */
static struct qmd_mask mask_of(const struct queue *queue, const struct words *words)
{
	return (struct qmd_mask){
		{words->half[0] & notes_present(queue, 0), words->half[1] & notes_present(queue, 1)}};
}

/* The GPU may see words of both masks. With a common TPC, each mix has a TPC. */
static bool have_common_tpc(const struct queue *queue, const struct qmd_mask *one, const struct qmd_mask *other)
{
	bool have = false;

	for (unsigned int i = 0; i < sizeof one->words / sizeof one->words[0]; i++)
		have |= (~(one->words[i] | other->words[i]) & notes_present(queue, i)) != 0;
	return have;
}

struct walk {
	queue_visitor *visit;
	void *data;
	bool again;
	int changes;
};

/* False: the launches behind are not visited. */
static bool visit(struct walk *walk, struct waiting *waiting, unsigned int ahead)
{
	const struct note *note = &waiting->note;
	const struct changed *changed = &waiting->queue->changes[waiting->turn % LAUNCHES];

	bool is_changed = changed->turn == waiting->turn, was_changed = is_changed && changed->walk + 1 == walks;

	waiting->words = is_changed ? changed->written : note->written;
	const struct queued launch = {
		.turn = waiting->turn, .cookie = note->cookie, .ahead = ahead,
		.front_cookie = waiting->cookie_ahead, .front = waiting->ahead, .end = note->end,
		.noted = mask_of(waiting->queue, &note->written), .disable = mask_of(waiting->queue, &waiting->words),
		.keeps_mask = !note->mask, .was_changed = was_changed,
		.is_behind_changes = waiting->turn > waiting->queue->furthest,
		.is_behind_foreign = note->is_behind_foreign,
	};
	struct qmd_mask disable = launch.disable;
	enum queue_answer answer = walk->visit(walk->data, &launch, &disable);

	if (answer == QUEUE_CHANGE && note->mask && have_common_tpc(waiting->queue, &launch.disable, &disable))
		walk->changes += write_mask(waiting, &disable);
	return answer != QUEUE_STOP;
}

/* With the note of the turn before. False: the launches behind are not visited. */
static bool pass(struct walk *walk, struct waiting *waiting, uint64_t turn, uint64_t oldest)
{
	waiting->turn = turn;
	waiting->cookie_ahead = waiting->note.cookie;
	waiting->ahead = waiting->note.end;
	return read_note(waiting->queue, turn, &waiting->note) && visit(walk, waiting, (unsigned int)(turn - oldest));
}

/* The oldest launch in flight may have started. */
static void walk_queue(struct walk *walk, struct queue *queue)
{
	struct waiting waiting = {.queue = queue, .life = atomic_load(&queue->life)};
	uint64_t last = atomic_load_explicit(&queue->turns, memory_order_acquire);
	uint64_t oldest = oldest_in_flight(queue, last);
	uint64_t before = walk->again ? oldest : max_u64(oldest, atomic_load(&queue->answered));
	bool goes_on = waiting.life % 2 == 1 && read_note(queue, before, &waiting.note);

	for (uint64_t turn = before + 1; goes_on && turn <= last; turn++) {
		goes_on = pass(walk, &waiting, turn, oldest);
		before += goes_on;
	}
	atomic_store(&queue->answered, walk->again ? oldest : before);
}

int queue_walk(bool again, queue_visitor *visitor, void *data)
{
	struct queue *queues = atomic_load(&notes_queues);
	struct walk walk = {.visit = visitor, .data = data, .again = again};

	if (queues && atomic_exchange_explicit(&is_being_changed, true, memory_order_acquire)) {
		walk.changes = -1;
	} else if (queues) {
		walks++;
		for (uint64_t left = atomic_load(&notes_living); left != 0; left &= left - 1)
			walk_queue(&walk, &queues[__builtin_ctzll(left)]);
		atomic_store_explicit(&is_being_changed, false, memory_order_release);
	}
	return walk.changes;
}

/* A thread that was changing masks does not exist in the child. */
void queue_after_fork(void)
{
	queue_forget_context(NULL);
	atomic_store(&is_being_changed, false);
}
