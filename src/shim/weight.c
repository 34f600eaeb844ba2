#include "weight.h"

#include "base/extremes.h"
#include "lag.h"

/* A thread that did not run for longer has not seen what happened meanwhile. */
#define UNSEEN_NS UINT64_C(1000000000)

#define ALL_PPM 1000000

/* --- who is there ----------------------------------------------------------------------------------------------------- */

/* The others that are present: so many, of whom the least served one has been served this. */
struct company {
	unsigned int present;
	uint64_t least_ns;
};

/* One that wants no more, but did so in most looks, is still there as it was; but not one that is stopped, or has died. Those that
 * are aside always want. */
static struct company see_company(struct weight *weight, uint64_t now, const struct neighbours *neighbours)
{
	struct company company = {.present = neighbours->equals_present, .least_ns = neighbours->least_served_ns};
	unsigned int wanting = neighbours->equals_wanting;
	bool are_all = wanting > 0 && wanting >= weight->others;

	if (habit_look(&weight->habit_of_others, now, are_all) && !are_all && neighbours->equals_speaking >= weight->others) {
		company.present += weight->others - wanting;
		company.least_ns = min_u64(company.least_ns, weight->least_ns);
	} else {
		weight->others = wanting;
	}
	return company;
}

/* How much of the time is its own at this moment. `wants` is what the look saw, `is_here` what that means. By itself, what
 * it does not use is nobody's; in company, others have it, and it has theirs afterwards. */
static uint32_t own_ppm(bool wants, bool is_here, const struct company *company)
{
	uint32_t own = 0;

	if (company->present == 0)
		own = wants ? ALL_PPM : 0;
	else if (is_here)
		own = (ALL_PPM - WEIGHT_LOSS_PPM) / (1 + company->present);
	return own;
}

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

static void meet(struct weight *weight, const struct company *company)
{
	if (weight->served_ns == UINT64_MAX && company->present > 0)
		weight->served_ns = company->least_ns != UINT64_MAX ? company->least_ns : 0;
}

/* Up to now, since when `own` of the time is its own. Between two looks, the half of the time is as at either of them. */
static void account(struct weight *weight, uint64_t now, uint32_t own)
{
	uint64_t passed = now > weight->accounted ? min_u64(now - weight->accounted, UNSEEN_NS) : 0;

	if (weight->is_aside && weight->is_ahead)
		weight->waited_ns += passed;
	if (!weight->is_aside)
		serve(weight, served_by(weight, passed * (weight->own_ppm + own) / (2 * ALL_PPM)));
	if (now > weight->accounted)
		weight->accounted = now;
	weight->own_ppm = own;
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
		.least_ns = UINT64_MAX,
	};
}

void weight_change(struct weight *weight, uint32_t wanted)
{
	weight->weight = wanted;
}

bool weight_step(struct weight *weight, uint64_t now, bool wants, bool is_held, const struct neighbours *neighbours)
{
	struct company company = see_company(weight, now, neighbours);
	bool is_here = habit_look(&weight->habit, now, wants);

	meet(weight, &company);
	account(weight, now, own_ppm(wants, is_here, &company));
	if (!is_here || (is_held && weight->is_aside && !weight->is_ahead))
		keep_distance(weight, company.least_ns);
	bound(weight, company.least_ns);
	end_wait(weight, company.least_ns);
	weight->least_ns = company.least_ns;
	weight->is_ahead = wants && is_ahead(weight, company.least_ns);
	return weight->is_ahead;
}

void weight_was_put_aside(struct weight *weight, uint64_t begin, uint64_t end)
{
	account(weight, begin + lag_of_call(begin, end), weight->own_ppm);
	weight->is_aside = true;
	account(weight, end, weight->own_ppm);
}

void weight_was_taken_back(struct weight *weight, uint64_t end)
{
	account(weight, end, weight->own_ppm);
	weight->is_aside = false;
}
