#include "curve.h"

#include "base/extremes.h"

#include <limits.h>
#include <math.h>

#define PART 0.667          /* the next smaller size, of a size */
#define RANGE 24            /* below this part of the largest size, sizes take too long */
#define BUSY_LITTLE 0.5     /* of a job's time: otherwise the GPU waits for the program */
#define GAINS_ALL 0.8       /* of the possible gain */
#define GAINS_NOTHING 0.3
#define GAINS_NEVER -0.5   /* more TPCs take longer: the measurement was disturbed */
#define SLOWED 0.05         /* by a neighbour: more than between two runs */

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

double curve_ns(const struct curve *curve, unsigned int tpcs, enum curve_time time)
{
	double below = 0, least = INFINITY;

	for (unsigned int i = 0; i < curve->count; i++) {
		const struct curve_point *point = &curve->points[i];
		double part = 1;

		least = min_double(least, time == CURVE_JOB ? point->job_ns
		                          : time == CURVE_LONGEST ? point->worst_ns : point->launch_ns);
		if (point->tpcs > tpcs)
			part = i > 0 ? (1.0 / point[-1].tpcs - 1.0 / tpcs) / (1.0 / point[-1].tpcs - 1.0 / point->tpcs)
			             : 0;
		below += (least - below) * part;
		if (point->tpcs >= tpcs)
			break;
	}
	return below;
}

bool curve_learn(struct curve *curve, unsigned int tpcs, double predicted_ns, const struct jobs_times *seen)
{
	double job = seen->median_ns / curve_ns(curve, tpcs, CURVE_JOB),
	       longest = max_double(job, seen->longest_ns / curve_ns(curve, tpcs, CURVE_LONGEST));
	bool is_late = seen->count > 0 && (seen->late > 0 || seen->median_ns > predicted_ns * (1 + CURVE_LATE));

	for (unsigned int i = 0; i < curve->count && is_late; i++) {
		curve->points[i].job_ns *= job;
		curve->points[i].worst_ns *= longest;
		curve->points[i].launch_ns *= longest;
	}
	return is_late;
}

/* With x = 1 / (m C) and y = 1 / C, the relative errors are 1 - a x - b y. */
struct curve_fit curve_fit(const struct curve *curve)
{
	struct curve_fit fit = {.is_known = curve->count >= 3};
	double xx = 0, xy = 0, yy = 0, sx = 0, sy = 0;

	for (unsigned int i = 0; i < curve->count; i++) {
		double y = 1 / curve->points[i].job_ns, x = y / curve->points[i].tpcs;

		xx += x * x;
		xy += x * y;
		yy += y * y;
		sx += x;
		sy += y;
	}
	double a = sx * yy - sy * xy, b = sy * xx - sx * xy; /* times the determinant, which is positive */

	fit.a_ns = b < 0 ? sx / xx : a < 0 ? 0 : a / (xx * yy - xy * xy);
	fit.b_ns = b < 0 ? 0 : a < 0 ? sy / yy : b / (xx * yy - xy * xy);
	for (unsigned int i = 0; i < curve->count && fit.is_known; i++) {
		double error = fabs((fit.a_ns / curve->points[i].tpcs + fit.b_ns) / curve->points[i].job_ns - 1);

		fit.mean_error += error / curve->count;
		fit.worst_error = max_double(fit.worst_error, error);
	}
	return fit;
}

unsigned int curve_enough(const struct curve *curve)
{
	double shortest = curve_ns(curve, UINT_MAX, CURVE_JOB);
	unsigned int i = 0;

	while (curve->points[i].job_ns > shortest * (1 + CURVE_NOTHING))
		i++;
	return curve->points[i].tpcs;
}

/* The part of the possible gain from more TPCs, from half of the largest size on: (C(p) / C(q) - 1) / (q / p - 1) for
 * sizes p < q. 1: twice as many TPCs are twice as fast; 0: no gain. */
struct curve_bound curve_bound(const struct curve *curve, const struct curve *memory)
{
	static const struct curve_bound
		unknown = {"unknown", "too few sizes were measured to tell"},
		launches = {"launches", "launches and the processor: for most of a job, the GPU is idle"},
		all = {"arithmetic", "its TPCs: arithmetic, or what else each of them has of its own"},
		partly = {"partly", "its TPCs in part: more still help, but less than in proportion"},
		saturated = {"saturated",
		             "not its TPCs: memory, or too few blocks to fill more. --beside memory tells"},
		slowed = {"memory", "memory: a neighbour that copies slows it down, and more TPCs bring little"},
		blocks = {"blocks", "too few blocks to fill more TPCs: a neighbour that copies does not slow it down"};

	if (curve->count < 3)
		return unknown;
	const struct curve_point *last = &curve->points[curve->count - 1], *half = curve->points;

	while (half + 1 < last && half->tpcs * 2 < last->tpcs)
		half++;
	double gain = (half->job_ns / last->job_ns - 1) / ((double)last->tpcs / half->tpcs - 1);

	if (gain < GAINS_NEVER)
		return unknown;
	if (gain >= GAINS_NOTHING)
		return gain >= GAINS_ALL ? all : partly;
	if (last->kernels_ns > 0 && last->kernels_ns < BUSY_LITTLE * last->job_ns)
		return launches;
	if (!memory || memory->count == 0)
		return saturated;
	return memory->points[memory->count - 1].job_ns > last->job_ns * (1 + SLOWED) ? slowed : blocks;
}
