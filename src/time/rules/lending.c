#include "lending.h"

#include "base/extremes.h"

/* --- idle ------------------------------------------------------------------------------------------------------------- */

/* Of threads that look at the same time, one may write the time and another one the number: then the first look with another number
 * begins anew. */
static bool note_idle(struct lending_owner *owner, uint64_t launches, uint64_t now, uint64_t hold_ns)
{
	uint64_t since = atomic_load(&owner->since);
	bool is_as_before = since != 0 && atomic_load(&owner->launches) == launches;
	bool is_open = hold_ns == 0 || (is_as_before && (since == LENDING_OPEN || now - since >= hold_ns));

	if (!is_as_before) {
		atomic_store(&owner->since, 0);
		atomic_store(&owner->launches, launches);
	}
	if (is_open || !is_as_before)
		atomic_store(&owner->since, is_open ? LENDING_OPEN : now);
	return is_open;
}

bool lending_opens(struct lending_owner *owner, uint64_t launches, bool wants, uint64_t now, uint64_t hold_ns)
{
	bool is_open = !wants && note_idle(owner, launches, now, hold_ns);

	if (wants)
		atomic_store(&owner->since, 0);
	return is_open;
}

/* --- window ----------------------------------------------------------------------------------------------------------- */

static bool is_alone(const struct lending_view *view)
{
	bool is_short = view->length_ns > 0 && view->length_ns <= view->limit_ns && !view->may_wait;

	return view->in_flight == 0 && (is_short || !view->has_part);
}

bool lending_ends_within(const struct lending_view *view, uint64_t ns)
{
	uint64_t longest = max_u64(view->longest_ns, view->length_ns);

	return view->length_ns > 0 && !view->may_wait && longest <= ns && view->in_flight < ns / longest;
}

enum lending_verdict lending_ask(const struct lending_view *view)
{
	bool is_too_long = view->length_ns > view->limit_ns;
	enum lending_verdict verdict = LENDING_ROOM;

	if (view->has_more && (view->takes_any || is_alone(view) || lending_ends_within(view, view->batch_ns)))
		verdict = LENDING_MORE;
	else if (view->has_part && (!view->has_more || is_too_long || view->in_flight == 0 || !view->may_drain))
		verdict = LENDING_PART;
	else if (!view->has_more)
		verdict = LENDING_CLOSED;
	return verdict;
}

/* --- lengths ---------------------------------------------------------------------------------------------------------- */

#define UNIT_NS 2000
#define BITS 16
#define LONGEST UINT64_C(0xffff)

uint64_t lending_add_length(uint64_t lengths, uint64_t ns)
{
	return lengths << BITS | min_u64(ns / UNIT_NS + 1, LONGEST);
}

uint64_t lending_longest(uint64_t lengths)
{
	uint64_t longest = 0;

	for (; lengths != 0; lengths >>= BITS)
		longest = max_u64(longest, lengths & LONGEST);
	return longest * UNIT_NS;
}

/* --- episode ---------------------------------------------------------------------------------------------------------- */

bool lending_waits(struct lending_episode *episode, uint64_t now)
{
	uint64_t since = 0;
	bool is_first = atomic_compare_exchange_strong(&episode->since, &since, now);
	bool is_over = !is_first && now > since && now - since >= LENDING_EPISODE_NS;

	if (is_over) {
		atomic_store(&episode->since, 0);
		atomic_store(&episode->until, now + LENDING_FREE_NS);
	}
	return is_over;
}

bool lending_is_free(struct lending_episode *episode, uint64_t now, bool is_idle)
{
	bool is_free = now < atomic_load(&episode->until) && !is_idle;

	if (!is_free)
		atomic_store(&episode->until, 0);
	return is_free;
}
