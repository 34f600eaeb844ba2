#include "clock_fit.h"

#include "base/extremes.h"

#include <float.h>
#include <math.h>

/* The most drift between two clocks, in ns for each ns. */
#define DRIFT_MAX 100e-6
#define TIGHT_NS 10000

static double distance(uint64_t from, uint64_t to)
{
	return (double)(int64_t)(to - from);
}

/* Of two offsets. A hostile process's may be as far apart as numbers can be. */
static double difference(int64_t a, int64_t b)
{
	return (double)(int64_t)((uint64_t)a - (uint64_t)b);
}

/* --- adding ----------------------------------------------------------------------------------------------------- */

static struct clock_bounds *bounds_at(struct clock_fit *fit, uint64_t cpu)
{
	uint64_t span = cpu / CLOCK_FIT_SPAN_NS + 1;
	struct clock_bounds *bounds = &fit->spans[span % CLOCK_FIT_SPANS];

	if (bounds->span < span)
		*bounds = (struct clock_bounds){.span = span};
	return bounds->span == span ? bounds : NULL;
}

/* Whether the clock would have to drift faster than any does for both to be true. */
static bool contradicts(const struct clock_bound *upper, const struct clock_bound *lower)
{
	return upper->is_known && lower->is_known &&
	       difference(lower->offset, upper->offset) > DRIFT_MAX * fabs(distance(lower->at, upper->at));
}

bool clock_fit_add(struct clock_fit *fit, enum clock_order order, uint64_t cpu, uint64_t gpu)
{
	struct clock_bounds *bounds = bounds_at(fit, cpu);
	const struct clock_bound new = {.is_known = true, .offset = (int64_t)(gpu - cpu), .at = cpu};

	if (!bounds || (order == CLOCK_USUALLY_NOT_BEFORE && contradicts(&new, &bounds->lower)))
		return false;
	struct clock_bound *bound = order == CLOCK_NOT_BEFORE  ? &bounds->upper
	                            : order == CLOCK_NOT_AFTER ? &bounds->lower
	                                                       : &bounds->usual;
	bool is_closer = order == CLOCK_NOT_AFTER ? new.offset > bound->offset : new.offset < bound->offset;
	bool is_new = !bound->is_known || is_closer;

	if (is_new)
		*bound = new;
	if (contradicts(&bounds->usual, &bounds->lower))
		bounds->usual.is_known = false;
	return is_new;
}

/* --- fitting ---------------------------------------------------------------------------------------------------- */

/* The offset is a line over time with unknown drift: every line within all bounds may be true. A line first meets an
 * upper bound on the lower hull; lower bounds are mirrored, to be upper bounds. */
struct point {
	double time, offset; /* relative to the asked time, and to a base */
};

struct hull {
	unsigned int count;
	struct point points[2 * CLOCK_FIT_SPANS];
};

struct limits {
	int64_t base;
	struct hull upper, mirrored;
};

/* Whether the middle of three points, in the order of time, lies on or above the line through first and last. */
static bool is_above(const struct point *first, const struct point *middle, const struct point *last)
{
	return (middle->offset - first->offset) * (last->time - first->time) >=
	       (last->offset - first->offset) * (middle->time - first->time);
}

/* In the order of time. */
static void add_point(struct hull *hull, struct point point)
{
	while (hull->count > 1 && is_above(&hull->points[hull->count - 2], &hull->points[hull->count - 1], &point))
		hull->count--;
	hull->points[hull->count++] = point;
}

static void add_bound(struct hull *hull, const struct clock_bound *bound, uint64_t cpu, int64_t base, int sign)
{
	if (bound->is_known)
		add_point(hull, (struct point){distance(cpu, bound->at), sign * difference(bound->offset, base)});
}

static uint64_t last_span(const struct clock_fit *fit)
{
	uint64_t last = 0;

	for (int i = 0; i < CLOCK_FIT_SPANS; i++)
		last = fit->spans[i].span > last ? fit->spans[i].span : last;
	return last;
}

static int64_t any_offset(const struct clock_fit *fit)
{
	int64_t offset = 0;

	for (int i = 0; i < CLOCK_FIT_SPANS; i++)
		offset = fit->spans[i].lower.is_known ? fit->spans[i].lower.offset : offset;
	return offset;
}

static void collect(struct limits *limits, const struct clock_fit *fit, uint64_t cpu, const bool *is_believed)
{
	uint64_t last = last_span(fit);

	limits->base = any_offset(fit);
	limits->upper.count = limits->mirrored.count = 0;
	for (uint64_t back = CLOCK_FIT_SPANS; back-- > 0;) {
		uint64_t index = (last - back) % CLOCK_FIT_SPANS;
		const struct clock_bounds *bounds = &fit->spans[index];
		const struct clock_bound none = {.is_known = false},
		                         *usual = is_believed[index] ? &bounds->usual : &none;
		bool is_first = !usual->is_known || distance(usual->at, bounds->upper.at) < 0;

		if (bounds->span + back != last)
			continue;
		add_bound(&limits->mirrored, &bounds->lower, cpu, limits->base, -1);
		add_bound(&limits->upper, is_first ? &bounds->upper : usual, cpu, limits->base, 1);
		add_bound(&limits->upper, is_first ? usual : &bounds->upper, cpu, limits->base, 1);
	}
}

/* Of the lines with the drift below the hull, the highest: the value at the asked time. */
static double highest_below(const struct hull *hull, double drift)
{
	double highest = DBL_MAX;

	for (unsigned int i = 0; i < hull->count; i++) {
		double offset = hull->points[i].offset - drift * hull->points[i].time;

		highest = offset < highest ? offset : highest;
	}
	return highest;
}

static double highest(const struct limits *limits, double drift)
{
	return highest_below(&limits->upper, drift);
}

static double mirrored_lowest(const struct limits *limits, double drift)
{
	return highest_below(&limits->mirrored, -drift);
}

/* Between the lines with the drift; below 0 there is no line. */
static double room(const struct limits *limits, double drift)
{
	return highest(limits, drift) + mirrored_lowest(limits, drift);
}

/* Of the drift: 0.1 ns over all spans. */
#define STEP 1e-11

/* The drift for which a concave function is the largest. */
static double drift_of_most(const struct limits *limits, double from, double to,
                            double (*of)(const struct limits *, double))
{
	while (to - from > STEP) {
		double third = (to - from) / 3;

		if (of(limits, from + third) < of(limits, to - third))
			from += third;
		else
			to -= third;
	}
	return (from + to) / 2;
}

/* The last drift from `inside` to `outside` with a line. */
static double drift_at_edge(const struct limits *limits, double inside, double outside)
{
	if (room(limits, outside) >= 0)
		inside = outside;
	while (fabs(outside - inside) > STEP) {
		double middle = (inside + outside) / 2;

		if (room(limits, middle) >= 0)
			inside = middle;
		else
			outside = middle;
	}
	return inside;
}

/* Of the usual bounds, drops the bound that leaves the least room. False if no bound is left. */
static bool disbelieve_one(const struct clock_fit *fit, const struct limits *limits, uint64_t cpu, double drift,
                           bool *is_believed)
{
	double least = DBL_MAX;
	int worst = -1;

	for (int i = 0; i < CLOCK_FIT_SPANS; i++) {
		const struct clock_bound *usual = &fit->spans[i].usual;
		double offset = difference(usual->offset, limits->base) - drift * distance(cpu, usual->at);

		if (usual->is_known && is_believed[i] && offset < least) {
			least = offset;
			worst = i;
		}
	}
	if (worst >= 0)
		is_believed[worst] = false;
	return worst >= 0;
}

/* Returns the drift that leaves the most room. */
static double collect_consistent(struct limits *limits, const struct clock_fit *fit, uint64_t cpu)
{
	bool is_believed[CLOCK_FIT_SPANS];
	bool is_left = true;
	double drift;

	for (int i = 0; i < CLOCK_FIT_SPANS; i++)
		is_believed[i] = true;
	do {
		collect(limits, fit, cpu, is_believed);
		drift = drift_of_most(limits, -DRIFT_MAX, DRIFT_MAX, room);
		is_left = room(limits, drift) < 0 && disbelieve_one(fit, limits, cpu, drift, is_believed);
	} while (is_left);
	return drift;
}

/* A hostile process may lead to any number. */
static int64_t rounded(double value)
{
	const double limit = 9e18;

	value = value > limit ? limit : value;
	return (int64_t)(value < -limit ? -limit : value);
}

bool clock_fit_offset(const struct clock_fit *fit, uint64_t cpu, struct clock_offset *offset)
{
	struct limits limits;
	double drift = collect_consistent(&limits, fit, cpu);
	double from = drift_at_edge(&limits, drift, -DRIFT_MAX), to = drift_at_edge(&limits, drift, DRIFT_MAX);
	double upper = highest(&limits, drift_of_most(&limits, from, to, highest));
	double lower = -mirrored_lowest(&limits, drift_of_most(&limits, from, to, mirrored_lowest));
	bool is_tight = fabs(upper - lower) < TIGHT_NS;

	/* With little knowledge, clocks that hardly drift apart are likelier. */
	drift = is_tight ? (from + to) / 2 : max_double(from, min_double(0, to));
	double best = is_tight ? (upper + lower) / 2 : (highest(&limits, drift) - mirrored_lowest(&limits, drift)) / 2;

	*offset = (struct clock_offset){
		.at = cpu,
		.offset = (int64_t)((uint64_t)limits.base + (uint64_t)rounded(best)),
		.error_ns = (uint64_t)rounded(max_double(fabs(upper - best), fabs(best - lower))),
		.drift = drift,
		.drift_error = max_double(to - drift, drift - from),
	};
	return limits.upper.count > 0 && limits.mirrored.count > 0;
}
