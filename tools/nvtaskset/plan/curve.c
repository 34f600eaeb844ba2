#include "curve.h"

#define PART 0.667          /* of a size is the next smaller one */
#define RANGE 24            /* smaller sizes than this part of the largest take too long */
#define BUSY_LITTLE 0.5     /* of a job's time: the GPU waits for the program for the rest */
#define GAINS_ALL 0.8       /* of what TPCs could bring */
#define GAINS_NOTHING 0.3
#define SLOWED 0.05         /* by a neighbour: it is more than from one run to the next */

static double distance(double a, double b)
{
	return a > b ? a - b : b - a;
}

unsigned int curve_sizes(unsigned int sizes[CURVE_SIZES], unsigned int largest)
{
	unsigned int count = 0, size = largest;

	while (count < CURVE_SIZES && size > 0 && size * RANGE >= largest) {
		unsigned int next = (unsigned int)(size * PART + 0.5);

		sizes[count++] = size;
		size = next < size ? next : size - 1;
	}
	return count;
}

/* --- between the points --------------------------------------------------------------------------------------------------- */

/* Of a point and all that have fewer TPCs. */
static double at_most(const struct curve *curve, unsigned int place, enum curve_time time)
{
	double least = 0;

	for (unsigned int i = 0; i <= place; i++) {
		const struct curve_point *point = &curve->points[i];
		double ns = time == CURVE_JOB ? point->job_ns : time == CURVE_LONGEST ? point->worst_ns : point->launch_ns;

		least = i == 0 || ns < least ? ns : least;
	}
	return least;
}

double curve_ns(const struct curve *curve, unsigned int tpcs, enum curve_time time)
{
	unsigned int above = 0;
	double ns = 0;

	while (above < curve->count && curve->points[above].tpcs < tpcs)
		above++;
	if (above == curve->count && above > 0) {
		ns = at_most(curve, above - 1, time);
	} else if (above < curve->count && curve->points[above].tpcs == tpcs) {
		ns = at_most(curve, above, time);
	} else if (above > 0) {
		double low = 1.0 / curve->points[above - 1].tpcs, high = 1.0 / curve->points[above].tpcs;
		double part = (1.0 / tpcs - high) / (low - high);

		ns = at_most(curve, above, time) * (1 - part) + at_most(curve, above - 1, time) * part;
	}
	return ns;
}

/* --- a / m + b -------------------------------------------------------------------------------------------------------------- */

/* With x = 1 / (m C) and y = 1 / C, the relative errors are 1 - a x - b y. */
static void solve(struct curve_fit *fit, const struct curve *curve)
{
	double xx = 0, xy = 0, yy = 0, sx = 0, sy = 0;

	for (unsigned int i = 0; i < curve->count; i++) {
		double y = 1 / curve->points[i].job_ns, x = y / curve->points[i].tpcs;

		xx += x * x;
		xy += x * y;
		yy += y * y;
		sx += x;
		sy += y;
	}
	double determinant = xx * yy - xy * xy;

	fit->a_ns = determinant > 0 ? (sx * yy - sy * xy) / determinant : 0;
	fit->b_ns = determinant > 0 ? (sy * xx - sx * xy) / determinant : sy / yy;
	if (fit->b_ns < 0) {
		fit->a_ns = sx / xx;
		fit->b_ns = 0;
	} else if (fit->a_ns < 0) {
		fit->a_ns = 0;
		fit->b_ns = sy / yy;
	}
}

struct curve_fit curve_fit(const struct curve *curve)
{
	struct curve_fit fit = {.is_known = curve->count >= 3};

	if (!fit.is_known)
		return fit;
	solve(&fit, curve);
	for (unsigned int i = 0; i < curve->count; i++) {
		const struct curve_point *point = &curve->points[i];
		double error = distance(fit.a_ns / point->tpcs + fit.b_ns, point->job_ns) / point->job_ns;

		fit.mean_error += error / curve->count;
		if (error > fit.worst_error) {
			fit.worst_error = error;
			fit.worst_tpcs = point->tpcs;
		}
	}
	return fit;
}

/* --- what it says ----------------------------------------------------------------------------------------------------------- */

unsigned int curve_enough(const struct curve *curve)
{
	double shortest = 0;
	unsigned int enough = 0;

	for (unsigned int i = 0; i < curve->count; i++)
		shortest = i == 0 || curve->points[i].job_ns < shortest ? curve->points[i].job_ns : shortest;
	for (unsigned int i = curve->count; i-- > 0;)
		enough = curve->points[i].job_ns <= shortest * (1 + CURVE_NOTHING) ? curve->points[i].tpcs : enough;
	return enough;
}

/* (C(p) / C(q) - 1) / (q / p - 1) for sizes p < q. */
static double gain_between(const struct curve_point *small, const struct curve_point *large)
{
	return large->tpcs > small->tpcs ? (small->job_ns / large->job_ns - 1) / ((double)large->tpcs / small->tpcs - 1) : -1;
}

struct curve_gain curve_gain(const struct curve *curve)
{
	unsigned int last = curve->count - 1, half = 0;
	struct curve_gain gain = {-1, -1};

	if (curve->count >= 3) {
		while (half + 1 < last && curve->points[half].tpcs * 2 < curve->points[last].tpcs)
			half++;
		gain.low = gain_between(&curve->points[0], &curve->points[half]);
		gain.high = gain_between(&curve->points[half], &curve->points[last]);
	}
	return gain;
}

static const struct {
	const char *word, *text;
} bounds[] = {
#define CURVE_BOUND_ROW(identifier, word, text) {word, text},
	CURVE_BOUNDS(CURVE_BOUND_ROW)
#undef CURVE_BOUND_ROW
};

const char *curve_bound_word(enum curve_bound bound)
{
	return bounds[bound].word;
}

const char *curve_bound_text(enum curve_bound bound)
{
	return bounds[bound].text;
}

enum curve_bound curve_bound(const struct curve *curve, double slowdown)
{
	struct curve_gain gain = curve_gain(curve);
	const struct curve_point *last = curve->count > 0 ? &curve->points[curve->count - 1] : NULL;
	enum curve_bound bound = CURVE_SHARED;

	if (!last || gain.high < -0.5)
		bound = CURVE_UNKNOWN;
	else if (last->kernels_ns > 0 && last->kernels_ns < BUSY_LITTLE * last->job_ns && gain.high < GAINS_NOTHING)
		bound = CURVE_LAUNCHES;
	else if (gain.high >= GAINS_ALL)
		bound = CURVE_TPCS;
	else if (gain.high >= GAINS_NOTHING)
		bound = CURVE_PARTLY;
	else if (slowdown >= 0)
		bound = slowdown > SLOWED ? CURVE_MEMORY : CURVE_BLOCKS;
	return bound;
}
