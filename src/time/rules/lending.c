#include "lending.h"

/* --- idle ------------------------------------------------------------------------------------------------------------- */

/* Of threads that look at the same time, one may write the time and another one the number: then the first look with another
 * number begins anew. One may also have read its clock before another one wrote. */
uint64_t lending_opens_in(struct lending_owner *owner, uint64_t launches, bool wants, uint64_t now, uint64_t hold_ns)
{
	uint64_t since = atomic_load(&owner->since), passed = 0, left = LENDING_NEVER;
	bool is_as_before = since != 0 && atomic_load(&owner->launches) == launches;

	if (is_as_before)
		passed = since == LENDING_FOR_LONG ? hold_ns : now - min_u64(now, since);
	if (!wants)
		left = hold_ns - min_u64(passed, hold_ns);
	if (wants || !is_as_before)
		atomic_store(&owner->since, 0);
	if (!wants && !is_as_before)
		atomic_store(&owner->launches, launches);
	if (!wants && (left == 0 || !is_as_before))
		atomic_store(&owner->since, left == 0 ? LENDING_FOR_LONG : now);
	return left;
}

uint64_t lending_opens_early(uint64_t opens_in_ns, uint64_t hold_ns, uint64_t length_ns)
{
	bool may = opens_in_ns <= hold_ns && length_ns != 0 && length_ns < hold_ns / LENDING_EARLY_PART;
	uint64_t needs_ns = max_u64(LENDING_EARLY_NS, may ? length_ns * LENDING_EARLY_PART : 0);

	return may ? min_u64(opens_in_ns, needs_ns - min_u64(hold_ns - opens_in_ns, needs_ns)) : opens_in_ns;
}

/* --- window ----------------------------------------------------------------------------------------------------------- */

/* Whether a launch of this length ends within so much time, with all that is in flight; or nothing is. */
static bool has_room(const struct lending_view *view, uint64_t length_ns, uint64_t within_ns)
{
	bool fits = length_ns != 0 && length_ns <= within_ns && view->in_flight_ns <= within_ns - length_ns;

	return view->in_flight == 0 || (fits && !view->is_new && !view->may_wait);
}

/* Whether what is in flight in the own part would still be there when TPCs open that an owner uses now. One launch may wait for another
 * one, so that the GPU always has work; but none for those of other streams, which may always have some. */
static bool is_ahead(const struct lending_view *view)
{
	return !view->has_more && view->may_open && view->opens_in_ns == LENDING_NEVER && view->in_flight_ns != LENDING_NEVER &&
	       view->in_flight > 0 && view->is_behind && view->in_flight_ns > max_u64(view->limit_ns, view->part_ns);
}

enum lending_verdict lending_ask(const struct lending_view *view)
{
	bool fits = lending_fit(view->length_ns, view->limit_ns) > 0 && !view->may_wait;
	bool takes_more = view->has_more && (view->takes_any || fits || !view->has_part);
	bool opens_soon = !view->has_more && view->opens_in_ns != LENDING_NEVER;
	bool wants_room = takes_more || ((view->has_more || opens_soon) && fits) || (view->may_open && view->is_new) || (fits && is_ahead(view));
	uint64_t within_ns = opens_soon ? max_u64(view->batch_ns, view->opens_in_ns) : 0;
	enum lending_verdict verdict = LENDING_ROOM;

	if (takes_more && (view->takes_any || has_room(view, view->length_ns, view->batch_ns)))
		verdict = LENDING_MORE;
	else if (view->has_part && (!wants_room || !view->is_patient || has_room(view, view->part_ns, within_ns)))
		verdict = LENDING_PART;
	return verdict;
}
