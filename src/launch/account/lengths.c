#include "lengths.h"

#include "base/clock.h"
#include "base/extremes.h"

#include <string.h>

#define LENGTHS 1024
#define NEAR 4 /* places where a key may be */
#define FIRST_LAUNCHES 8 /* are all measured, if they are alone; of what is not known, each that is twice as late has to be */
#define FORGETS 4 /* what is no longer so: by this part, with each measurement */
#define TURNS 8 /* until what was too long is tried again */

/* The end was seen in time if it was within this, or this part of the length; and a measurement is given up after so long. */
#define CLOSE_NS UINT64_C(10000)
#define PART 8
#define PATIENCE_NS UINT64_C(200000000)

static struct length lengths[LENGTHS];
_Atomic uint32_t lengths_turn;

/* --- the table -------------------------------------------------------------------------------------------------------- */

/* In a place near that is free, or was to be measured longest ago. */
static __attribute__((noinline)) struct length *add(struct length *near, uint64_t key, const struct launched_work *work)
{
	uint32_t turn = atomic_load(&lengths_turn);
	struct length *found = near;

	for (int i = 1; i < NEAR && atomic_load(&found->key) != 0; i++) {
		if (atomic_load(&near[i].key) == 0 || turn - atomic_load(&near[i].turn) > turn - atomic_load(&found->turn))
			found = &near[i];
	}
	atomic_store(&found->key, 0);
	for (int place = LENGTH_PART; place <= LENGTH_MORE; place++)
		atomic_store(&found->longest[place], 0);
	atomic_store(&found->launches, 0);
	atomic_store(&found->turn, turn);
	atomic_store(&found->noted, turn);
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
	found = found ? found : add(near, key, work);
	atomic_store(&found->launches, atomic_load(&found->launches) + 1);
	return found;
}

void lengths_forget(void)
{
	memset(lengths, 0, sizeof lengths);
}

/* --- a length --------------------------------------------------------------------------------------------------------- */

static bool is_old(const struct length *length)
{
	return atomic_load(&lengths_turn) - atomic_load(&length->noted) >= TURNS;
}

uint64_t lengths_of(const struct length *length, unsigned int part, unsigned int more, uint64_t limit)
{
	uint64_t in_part = atomic_load(&length->longest[LENGTH_PART]);
	uint64_t ns = atomic_load(&length->longest[LENGTH_MORE]);

	if (atomic_load_explicit(&length->waits_for_others, memory_order_relaxed))
		ns = LENGTH_NONE;
	else if ((ns == 0 || (ns > limit && is_old(length))) && more > 0)
		ns = part > 0 ? in_part * part / more : in_part;
	return ns;
}

bool lengths_is_new(const struct length *length, uint64_t ns, uint64_t limit)
{
	uint32_t launches = atomic_load(&length->launches);
	uint64_t more = atomic_load(&length->longest[LENGTH_MORE]);
	bool is_new = ns > limit ? is_old(length) : more == 0 || more > limit;

	if (ns == 0)
		is_new = launches >= FIRST_LAUNCHES / 2 && (launches & (launches - 1)) == 0;
	return is_new && ns != LENGTH_NONE;
}

/* --- measuring -------------------------------------------------------------------------------------------------------- */

/* One that is tried again is tried once. */
static bool is_due(struct length *length, bool is_new)
{
	uint32_t turn = atomic_load(&lengths_turn), before = atomic_exchange(&length->turn, turn);
	bool is_first = atomic_load(&length->launches) <= FIRST_LAUNCHES;

	if (is_new)
		atomic_store(&length->noted, turn);
	return !atomic_load(&length->waits_for_others) && (before != turn || is_first || is_new);
}

static void note(struct length *length, enum length_place place, uint64_t ns)
{
	uint64_t longest = atomic_load(&length->longest[place]), shortest = atomic_load(&length->shortest[place]);

	if (longest == 0)
		shortest = ns;
	atomic_store(&length->longest[place], ns > longest ? ns : longest - (longest - ns) / FORGETS);
	atomic_store(&length->shortest[place], ns < shortest ? ns : shortest + (ns - shortest) / FORGETS);
	if (place == LENGTH_MORE || atomic_load(&length->longest[LENGTH_MORE]) == 0)
		atomic_store(&length->noted, atomic_load(&lengths_turn));
}

bool measure_begin(struct measure *measure, const struct measured *launch, uint64_t ended)
{
	bool may_be = is_due(launch->length, launch->is_new) && !atomic_load(&measure->is_on);

	if (!may_be || atomic_flag_test_and_set(&measure->is_looked_at))
		return false;
	measure->launch = *launch;
	atomic_store(&measure->stream, launch->stream);
	measure->key = atomic_load(&launch->length->key);
	measure->ended = ended;
	measure->looked = process_clock_ns();
		atomic_store(&measure->began, measure->looked);
	atomic_store(&measure->is_on, true);
	atomic_flag_clear(&measure->is_looked_at);
	return true;
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

/* It took as long as `most`, at most, and longer than `least`. An end that nobody has seen in time says less: only what is not
 * known at all, or is seen to be longer, is learnt from it. */
static void end(const struct measure *measure, uint64_t least, uint64_t most)
{
	uint64_t known = atomic_load(&measure->launch.length->longest[measure->launch.place]);
	bool is_close = known == 0 || most - least <= max_u64(CLOSE_NS, most / PART);

	if (atomic_load(&measure->launch.length->key) == measure->key && (is_close || least > known))
		note(measure->launch.length, measure->launch.place, is_close ? most : least);
}

uint64_t measure_look(struct measure *measure, uint64_t ended, uint64_t in_flight)
{
	uint64_t least = 0;

	if (!atomic_load_explicit(&measure->is_on, memory_order_relaxed) || atomic_flag_test_and_set(&measure->is_looked_at))
		return 0;
	bool has_ended = ended > measure->ended && (measure->launch.stream != 0 || in_flight == 0);
	uint64_t now = process_clock_ns(), began = atomic_load(&measure->began);

	if (has_ended && atomic_load(&measure->is_on)) {
		least = measure->launch.place == LENGTH_MORE ? measure->looked - began : 0;
		end(measure, measure->looked - began, now - began);
	}
	if (has_ended || now - began > PATIENCE_NS)
		measure_drop(measure);
	measure->looked = now;
	atomic_flag_clear(&measure->is_looked_at);
	return least;
}
