#include "weight.h"

#include "base/extremes.h"
#include "lag.h"

/* A thread that did not run for longer has not seen what happened meanwhile. */
#define UNSEEN_NS UINT64_C(1000000000)

/* --- accounting ------------------------------------------------------------------------------------------------------ */

/* The time of a program of this weight as what it has been served, and back. */
static uint64_t served_by(const struct weight *weight, uint64_t own_ns)
{
	return own_ns * SEGMENT_WEIGHT_USUAL / weight->weight;
}

/* What somebody who is new has been served is known when others are there. */
static void serve(struct weight *weight, uint64_t served_ns)
{
	if (weight->served_ns != UINT64_MAX)
		weight->served_ns += served_ns;
}

static void meet(struct weight *weight, const struct neighbours *neighbours)
{
	if (weight->served_ns == UINT64_MAX && neighbours->equals_present > 0)
		weight->served_ns = neighbours->least_served_ns != UINT64_MAX ? neighbours->least_served_ns : 0;
}

/* Between two looks, the half of the time is as at either of them. */
static void account(struct weight *weight, uint64_t now, bool wants, unsigned int sharing)
{
	uint64_t passed = now > weight->accounted ? min_u64(now - weight->accounted, UNSEEN_NS) : 0;
	uint64_t looks = (uint64_t)weight->wants + wants;

	if (weight->is_aside && weight->is_ahead)
		weight->waited_ns += passed;
	if (!weight->is_aside)
		serve(weight, passed * SEGMENT_WEIGHT_USUAL * looks * (weight->sharing + sharing) /
		                      (UINT64_C(4) * weight->sharing * sharing * weight->weight));
	if (now > weight->accounted)
		weight->accounted = now;
	weight->wants = wants;
	weight->sharing = sharing;
}

static void keep_distance(struct weight *weight, uint64_t least_ns)
{
	if (weight->least_ns != UINT64_MAX && least_ns != UINT64_MAX && least_ns > weight->least_ns)
		serve(weight, least_ns - weight->least_ns);
}

static void bound(struct weight *weight, uint64_t least_ns)
{
	if (least_ns != UINT64_MAX)
		weight->served_ns = min_u64(weight->served_ns, least_ns + served_by(weight, 2 * WEIGHT_LEAD_NS));
}

/* Others that it does not see for a moment have not been caught up with. */
static void end_wait(struct weight *weight, uint64_t least_ns)
{
	bool is_too_long = weight->waited_ns >= WEIGHT_WAIT_NS;

	if (least_ns == UINT64_MAX)
		return;
	if (is_too_long)
		weight->served_ns = min_u64(weight->served_ns, least_ns);
	if (is_too_long || weight->served_ns <= least_ns)
		weight->waited_ns = 0;
}

/* --- deciding --------------------------------------------------------------------------------------------------------- */

/* Without a bound, since one that is there no more cannot be caught up with. */
static bool is_ahead(const struct weight *weight, uint64_t least_ns)
{
	uint64_t lead = weight->is_ahead ? 0 : served_by(weight, WEIGHT_LEAD_NS);

	return least_ns != UINT64_MAX && weight->served_ns > least_ns && weight->served_ns - least_ns > lead;
}

void weight_begin(struct weight *weight, uint32_t wanted, uint64_t now)
{
	*weight = (struct weight){
		.served_ns = UINT64_MAX,
		.weight = wanted,
		.accounted = now,
		.sharing = 1,
		.least_ns = UINT64_MAX,
	};
}

void weight_change(struct weight *weight, uint32_t wanted)
{
	weight->weight = wanted;
}

bool weight_step(struct weight *weight, uint64_t now, bool wants, bool is_held, const struct neighbours *neighbours)
{
	uint64_t least_ns = neighbours->least_served_ns;

	meet(weight, neighbours);
	account(weight, now, wants, 1 + neighbours->equals_present);
	if (!wants || (is_held && weight->is_aside && !weight->is_ahead))
		keep_distance(weight, least_ns);
	bound(weight, least_ns);
	end_wait(weight, least_ns);
	weight->least_ns = least_ns;
	weight->is_ahead = wants && is_ahead(weight, least_ns);
	return weight->is_ahead;
}

void weight_was_put_aside(struct weight *weight, uint64_t begin, uint64_t end)
{
	account(weight, begin + lag_of_call(begin, end), weight->wants, weight->sharing);
	weight->is_aside = true;
	account(weight, end, weight->wants, weight->sharing);
}

void weight_was_taken_back(struct weight *weight, uint64_t end)
{
	account(weight, end, weight->wants, weight->sharing);
	weight->is_aside = false;
}
