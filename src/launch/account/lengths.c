#include "lengths.h"

#include "base/clock.h"
#include "base/extremes.h"

#include <string.h>

#define LENGTHS 1024
#define NEAR 4 /* places where a key may be */
#define TURNS 8 /* until launches wait again after a miss */
#define TRIES 3 /* what is too long once more is tried again after twice as many turns, so often */

/* It was seen in time when it went and ended if it was within this, or this part of the length; and a measurement is given up after
 * so long. */
#define CLOSE_NS UINT64_C(20000)
#define PART 8
#define PATIENCE_NS UINT64_C(200000000)

static struct length lengths[LENGTHS];
_Atomic uint32_t lengths_turn;
static _Atomic uint32_t missed_until; /* a turn */

/* --- the table -------------------------------------------------------------------------------------------------------- */

static uint32_t age(const struct length *length, enum length_place place)
{
	return atomic_load(&lengths_turn) - atomic_load(&length->places[place].turn);
}

static uint64_t rests(const struct length *length)
{
	return min_u64(age(length, LENGTH_PART), age(length, LENGTH_MORE));
}

static void forget(struct length_there *there)
{
	for (int i = 0; i < LENGTH_MEASURED; i++)
		atomic_store(&there->ns[i], 0);
	atomic_store(&there->tries, 0);
}

/* In a place near that is free, or was to be measured longest ago. */
static __attribute__((noinline)) struct length *add(struct length *near, uint64_t key, const struct launched_work *work)
{
	uint32_t turn = atomic_load(&lengths_turn);
	struct length *found = near;

	for (int i = 1; i < NEAR && atomic_load(&found->key) != 0; i++) {
		if (atomic_load(&near[i].key) == 0 || rests(&near[i]) > rests(found))
			found = &near[i];
	}
	atomic_store(&found->key, 0);
	for (int place = LENGTH_PART; place <= LENGTH_MORE; place++)
		forget(&found->places[place]);
	atomic_store(&found->places[LENGTH_PART].turn, turn);
	atomic_store(&found->places[LENGTH_MORE].turn, turn - 1);
	atomic_store(&found->waits_for_others, work->waits_for_others);
	atomic_store(&found->until, 0);
	atomic_store(&found->key, key);
	return found;
}

static uint64_t key_of(const struct launched_work *work)
{
	uint64_t mixed = (uintptr_t)work->what ^ work->waits_for_others ^ work->grid[0] * UINT64_C(0x9e3779b97f4a7c15) ^
	                 work->grid[1] * UINT64_C(0xc2b2ae3d27d4eb4f) ^ work->grid[2] * UINT64_C(0x165667b19e3779f9);

	mixed *= UINT64_C(0xbf58476d1ce4e5b9);
	return (mixed ^ mixed >> 29) | 1;
}

struct length *lengths_find(const struct launched_work *work)
{
	uint64_t key = key_of(work);
	struct length *near = &lengths[(key >> 32) % (LENGTHS / NEAR) * NEAR], *found = NULL;

	for (int i = 0; i < NEAR && !found; i++)
		found = atomic_load_explicit(&near[i].key, memory_order_acquire) == key ? &near[i] : NULL;
	return found ? found : add(near, key, work);
}

void lengths_forget(void)
{
	memset(lengths, 0, sizeof lengths);
	atomic_store(&missed_until, atomic_load(&lengths_turn));
}

/* --- a length --------------------------------------------------------------------------------------------------------- */

uint64_t lengths_longest(const struct length *length, enum length_place place)
{
	const struct length_there *there = &length->places[place];
	uint64_t longest = 0;

	for (int i = 0; i < LENGTH_MEASURED; i++)
		longest = max_u64(longest, atomic_load_explicit(&there->ns[i], memory_order_relaxed));
	return longest;
}

/* What it may take: other programs may have disturbed the longer ones. */
static uint64_t shortest(const struct length *length, enum length_place place)
{
	uint64_t least = UINT64_MAX, ns;

	for (int i = 0; i < LENGTH_MEASURED; i++) {
		ns = atomic_load_explicit(&length->places[place].ns[i], memory_order_relaxed);
		least = ns != 0 ? min_u64(least, ns) : least;
	}
	return least == UINT64_MAX ? 0 : least;
}

/* What was seen to be too long once may have been seen late, or slow for once. */
static bool may_be_tried(const struct length *length)
{
	return age(length, LENGTH_MORE) >= UINT32_C(1) << atomic_load_explicit(&length->places[LENGTH_MORE].tries, memory_order_relaxed);
}

/* Where nothing is known, it asks for it once in each turn, but for the one in which it came. */
uint64_t lengths_of(const struct length *length, unsigned int part, unsigned int more, uint64_t limit, bool *is_new)
{
	uint64_t in_part = lengths_longest(length, LENGTH_PART), ns = lengths_longest(length, LENGTH_MORE);
	bool is_tried = more > 0 && (ns == 0 ? age(length, LENGTH_MORE) > 0 : ns > limit && may_be_tried(length));
	bool is_known = atomic_load_explicit(&length->waits_for_others, memory_order_relaxed);

	if (is_tried)
		ns = shortest(length, LENGTH_PART) * (part > 0 ? part : more) / more;
	bool may_wait = (int32_t)(atomic_load(&lengths_turn) - atomic_load_explicit(&missed_until, memory_order_relaxed)) >= 0;

	*is_new = !is_known && may_wait && (ns == 0 ? in_part == 0 && age(length, LENGTH_PART) > 0 : is_tried && ns <= limit);
	return is_known ? LENGTH_NONE : ns;
}

void lengths_miss(void)
{
	atomic_store(&missed_until, atomic_load(&lengths_turn) + TURNS);
}

/* --- measuring -------------------------------------------------------------------------------------------------------- */

/* What was tried again is as it is now. So is the second one where it is shorter than the first, which is due in the same turn. */
static void note(const struct measured *launch, uint64_t ns, bool is_certain)
{
	struct length_there *there = &launch->length->places[launch->place];
	bool is_first = atomic_load(&there->ns[0]) == 0, is_second = atomic_load(&there->ns[1]) == 0;
	uint64_t tries = launch->is_new && !is_first ? min_u64(atomic_load(&there->tries) + UINT64_C(1), TRIES) : 0;

	if (is_first)
		atomic_store(&there->turn, atomic_load(&lengths_turn) - 1);
	if (launch->is_new)
		forget(there);
	else if (is_second && is_certain && ns < atomic_load(&there->ns[0]))
		atomic_store(&there->ns[0], ns);
	for (int i = LENGTH_MEASURED - 1; i > 0; i--)
		atomic_store(&there->ns[i], atomic_load(&there->ns[i - 1]));
	atomic_store(&there->ns[0], ns);
	atomic_store(&there->tries, (uint32_t)tries);
}

bool measure_begin(struct measure *measure, const struct measured *launch, uint64_t ended)
{
	struct length *length = launch->length;
	uint32_t turn = atomic_load(&lengths_turn), before = atomic_exchange(&length->places[launch->place].turn, turn);
	bool is_due = !atomic_load(&length->waits_for_others) && (before != turn || lengths_longest(length, launch->place) == 0);

	if (!is_due || atomic_load(&measure->is_on) || atomic_flag_test_and_set(&measure->is_looked_at))
		return false;
	measure->launch = *launch;
	atomic_store(&measure->stream, launch->stream);
	measure->key = atomic_load(&length->key);
	measure->ended = ended;
	measure->looked = process_clock_ns();
	atomic_store(&measure->began, measure->looked);
	atomic_store(&measure->delay, 0);
	atomic_store(&measure->is_on, true);
	atomic_flag_clear(&measure->is_looked_at);
	return true;
}

void measure_called(struct measure *measure)
{
	atomic_store(&measure->delay, process_clock_ns() - atomic_load(&measure->began));
}

void measure_drop(struct measure *measure)
{
	atomic_store(&measure->is_on, false);
}

void measure_disturb(struct measure *measure, uintptr_t stream)
{
	if (atomic_load_explicit(&measure->is_on, memory_order_relaxed) && (stream == 0 || stream != atomic_load(&measure->stream)))
		measure_drop(measure);
}

/* It took longer than until the look before, which is more than is known; or as long as until now, if that look was close enough or
 * nothing is known. */
uint64_t measure_look(struct measure *measure, uint64_t ended, uint64_t in_flight, uint64_t open)
{
	const struct measured *launch = &measure->launch;
	uint64_t least = 0;

	if (!atomic_load_explicit(&measure->is_on, memory_order_relaxed) || atomic_flag_test_and_set(&measure->is_looked_at))
		return 0;
	bool has_ended = ended > measure->ended && (launch->stream != 0 || in_flight == 0);
	bool is_shared = launch->place == LENGTH_MORE && ((launch->open & ~open) != 0 || launch->open >> 32 != open >> 32);
	uint64_t now = process_clock_ns(), ns = now - atomic_load(&measure->began);
	uint64_t late = min_u64(now - measure->looked + atomic_load(&measure->delay), ns);

	if (has_ended && !is_shared && atomic_load(&measure->is_on) && atomic_load(&launch->length->key) == measure->key) {
		uint64_t known = launch->is_new ? 0 : lengths_longest(launch->length, launch->place);
		bool is_close = known == 0 || late <= max_u64(CLOSE_NS, ns / PART);

		least = launch->place == LENGTH_MORE ? ns - late : 0;
		if (is_close || ns - late > known)
			note(launch, is_close ? ns : ns - late, in_flight == 0);
	}
	if (has_ended || is_shared || ns > PATIENCE_NS)
		measure_drop(measure);
	measure->looked = now;
	atomic_flag_clear(&measure->is_looked_at);
	return least;
}
