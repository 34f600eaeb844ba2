#include "weight.h"

#include "base/extremes.h"
#include "state/revisions.h"

/* The most that counts at once: a thread that did not run for longer has not seen the changes meanwhile. */
#define UNSEEN_NS UINT64_C(1000000000)

static uint64_t served_by(const struct weight *weight, uint64_t own_ns)
{
	return own_ns * SEGMENT_WEIGHT_USUAL / weight->weight;
}

uint64_t weight_served(const struct weight *weight)
{
	return weight->served ? atomic_load(weight->served) : 0;
}

void weight_use(struct weight *weight, uint32_t wanted, _Atomic uint64_t *served, uint64_t now)
{
	if (!weight->served || weight->served != served)
		*weight = (struct weight){.accounted = now};
	weight->weight = wanted;
	weight->served = served;
}

/* --- keeping account --------------------------------------------------------------------------------------------- */

/* Members of the group change the number meanwhile. */
static void keep_within(_Atomic uint64_t *served, uint64_t least_ns, uint64_t most_ns)
{
	uint64_t before = atomic_load(served);

	while ((before < least_ns || before > most_ns) &&
	       !atomic_compare_exchange_weak(served, &before, before < least_ns ? least_ns : most_ns))
		;
}

/* The time since the last look without a suspension. */
static uint64_t time_present(const struct weight *weight, uint64_t now, const struct suspension *suspension)
{
	uint64_t changed = min_u64(max_u64(suspension->since, weight->accounted), now);

	return suspension->is_on ? changed - weight->accounted : now - changed;
}

/* Each of two looks stands for half of the time between. */
static void account(struct weight *weight, uint64_t now, const struct rules_view *view,
                    const struct suspension *suspension, const struct rivals *rivals)
{
	uint64_t passed = now > weight->accounted ? min_u64(now - weight->accounted, UNSEEN_NS) : 0;
	uint64_t present = passed > 0 ? min_u64(time_present(weight, now, suspension), passed) : 0;

	if (view->is_present && weight->was_present)
		atomic_fetch_add(weight->served,
		                 served_by(weight, 2 * present / (2 + weight->others + rivals->equals_present)));
	if (weight->is_ahead)
		weight->waited_ns += passed - present;
	weight->accounted = max_u64(now, weight->accounted);
	weight->others = rivals->equals_present;
}

/* Without present peers there is no number to be even with. */
static void settle(struct weight *weight, const struct rules_view *view, bool is_held, const struct rivals *rivals)
{
	bool comes = view->is_present && !weight->was_present && !rivals->group_is_present;
	uint64_t even_ns = rivals->least_served_ns;
	uint64_t lead_ns = weight->waited_ns < WEIGHT_WAIT_NS ? served_by(weight, 2 * WEIGHT_LEAD_NS) : 0;

	if (even_ns == UINT64_MAX)
		return;
	keep_within(weight->served, comes || is_held || weight_served(weight) == 0 ? even_ns : 0, even_ns + lead_ns);
	if (weight_served(weight) <= even_ns)
		weight->waited_ns = 0;
}

/* --- deciding ---------------------------------------------------------------------------------------------------- */

/* The wait needs no bound: peers that have gone are not in `least_ns`. */
static bool is_ahead(const struct weight *weight, uint64_t least_ns)
{
	uint64_t lead = weight->is_ahead ? 0 : served_by(weight, WEIGHT_LEAD_NS), served = weight_served(weight);

	return least_ns != UINT64_MAX && served > least_ns && served - least_ns > lead;
}

struct rules_verdict weight_ask(struct weight *weight, uint64_t now, const struct rules_view *view, bool is_held,
                                const struct suspension *suspension, const struct rivals *rivals)
{
	bool is_long = rivals->equals_wanting > 0 && !view->pauses && !rivals->equals_pause;

	account(weight, now, view, suspension, rivals);
	settle(weight, view, is_held, rivals);
	weight->was_present = view->is_present;
	weight->is_ahead = view->wants && is_ahead(weight, rivals->least_served_ns);
	return (struct rules_verdict){
		.suspends = weight->is_ahead,
		.slice_us = is_long ? WEIGHT_SLICE_US : 0,
		.until = UINT64_MAX,
	};
}
