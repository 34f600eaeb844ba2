/*
 * The time of a job by the size of its partition and which kernels are a job (tools/nvtaskset/plan/curve.h).
 */
#include "../cases.h"

#include "plan/curve.h"

#define MS 1e6

static struct curve made(double a_ms, double b_ms, unsigned int saturated)
{
	struct curve curve = {.count = 0};
	unsigned int sizes[CURVE_SIZES], count = curve_sizes(sizes, 66);

	while (count-- > 0) {
		unsigned int tpcs = sizes[count], used = tpcs < saturated ? tpcs : saturated;
		double ns = (a_ms / used + b_ms) * MS;

		curve.points[curve.count++] = (struct curve_point){.tpcs = tpcs, .job_ns = ns, .worst_ns = 1.5 * ns, .kernels_ns = ns};
	}
	return curve;
}

static bool is_near(double a, double b, double relative)
{
	return a > b * (1 - relative) && a < b * (1 + relative);
}

TEST(sizes_fall_and_are_some_ten)
{
	unsigned int sizes[CURVE_SIZES];

	for (unsigned int largest = 1; largest < 200; largest++) {
		unsigned int count = curve_sizes(sizes, largest);

		ROW("of %u", largest);
		assert_in_range(count, largest < 8 ? 1 : 5, CURVE_SIZES);
		assert_int_equal(sizes[0], largest);
		for (unsigned int i = 1; i < count; i++)
			assert_true(sizes[i] > 0 && sizes[i] < sizes[i - 1] && sizes[i] * 24 >= largest);
	}
	assert_int_equal(curve_sizes(sizes, 66), 9);
}

TEST(sizes_between_follow_the_model)
{
	struct curve curve = made(100, 2, 1000);

	for (unsigned int tpcs = 3; tpcs <= 66; tpcs++)
		assert_true(is_near(curve_ns(&curve, tpcs, CURVE_JOB), (100.0 / tpcs + 2) * MS, 1e-9));
	assert_true(is_near(curve_ns(&curve, 66, CURVE_LONGEST), 1.5 * curve_ns(&curve, 66, CURVE_JOB), 1e-9));
	assert_true(is_near(curve_ns(&curve, 70, CURVE_JOB), curve_ns(&curve, 66, CURVE_JOB), 1e-9));
	assert_true(curve_ns(&curve, 2, CURVE_JOB) == 0);
	assert_true(curve_ns(&curve, 9, CURVE_LAUNCH) == 0);
	/* One that was disturbed: no more than with fewer. */
	curve.points[curve.count - 1].job_ns = 20 * MS;
	assert_true(is_near(curve_ns(&curve, 66, CURVE_JOB), curve_ns(&curve, 44, CURVE_JOB), 1e-9));
	for (unsigned int tpcs = 4; tpcs <= 70; tpcs++)
		assert_true(curve_ns(&curve, tpcs, CURVE_JOB) <= curve_ns(&curve, tpcs - 1, CURVE_JOB) * 1.000001);
	curve.count = 0;
	assert_true(curve_ns(&curve, 5, CURVE_JOB) == 0);
}

/* --- the fit ---------------------------------------------------------------------------------------------------------------- */

TEST(the_fit_finds_what_is_there)
{
	static const struct {
		double a_ms, b_ms;
	} rows[] = {{100, 2}, {100, 0}, {0, 5}, {1, 10}};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct curve curve = made(rows[i].a_ms, rows[i].b_ms, 1000);
		struct curve_fit fit = curve_fit(&curve);

		ROW("%g / m + %g", rows[i].a_ms, rows[i].b_ms);
		assert_true(fit.is_known && fit.worst_error < 1e-6);
		assert_true(fit.a_ns > rows[i].a_ms * MS - 1000 && fit.a_ns < rows[i].a_ms * MS + 1000);
		assert_true(fit.b_ns > rows[i].b_ms * MS - 1000 && fit.b_ns < rows[i].b_ms * MS + 1000);
	}
}

TEST(the_fit_says_where_it_is_late)
{
	struct curve curve = made(100, 1, 1000);

	curve.points[2].job_ns *= 1.5;
	struct curve_fit fit = curve_fit(&curve);

	assert_true(fit.worst_error > 0.2 && fit.worst_error < 0.35 && fit.mean_error > 0.04 && fit.mean_error < fit.worst_error);
	curve.count = 2;
	assert_false(curve_fit(&curve).is_known);
}

TEST(neither_part_is_negative)
{
	struct curve curve = made(100, 0, 1000);

	curve.points[0].job_ns *= 1.2; /* steeper than 1 / m */
	assert_true(curve_fit(&curve).b_ns == 0 && curve_fit(&curve).a_ns > 0);
	curve = made(0, 10, 1000);
	curve.points[0].job_ns *= 0.8; /* it rises */
	assert_true(curve_fit(&curve).a_ns == 0 && curve_fit(&curve).b_ns > 0);
}

TEST(what_was_seen_takes_the_place_of_what_is_too_short)
{
	static const struct {
		double job, longest, predicted; /* of what the curve says */
		size_t late;
		bool is_late;
	} rows[] = {{1.05, 1.05, 1, 0, false}, {0.95, 1.3, 1, 0, false}, {1.2, 1.1, 1, 0, true}, {0.8, 0.9, 1, 0, false}, {1.05, 1.5, 1, 1, true},
	            {1.2, 1.1, 1.15, 0, false}, {1.3, 1.1, 1.15, 0, true}};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct curve curve = made(100, 2, 1000);
		double job = curve_ns(&curve, 13, CURVE_JOB), other = curve_ns(&curve, 40, CURVE_JOB), longest = curve_ns(&curve, 13, CURVE_LONGEST);
		struct jobs_times seen = {.count = 9, .late = rows[i].late, .median_ns = rows[i].job * job, .longest_ns = rows[i].longest * longest};
		double factor = rows[i].is_late ? rows[i].job : 1, most = rows[i].longest > rows[i].job ? rows[i].longest : rows[i].job;

		ROW("row %zu", i);
		assert_true(curve_learn(&curve, 13, rows[i].predicted * job, &seen) == rows[i].is_late);
		assert_true(is_near(curve_ns(&curve, 13, CURVE_JOB), factor * job, 1e-9));
		assert_true(is_near(curve_ns(&curve, 40, CURVE_JOB), factor * other, 1e-9));
		assert_true(is_near(curve_ns(&curve, 13, CURVE_LONGEST), (rows[i].is_late ? most : 1) * longest, 1e-9));
		seen.count = 0;
		assert_false(curve_learn(&curve, 13, job, &seen));
	}
}

TEST(enough_is_where_nothing_is_gained)
{
	struct curve curve = made(100, 1, 19);

	assert_int_equal(curve_enough(&curve), 19);
	curve = made(100, 0, 1000);
	assert_int_equal(curve_enough(&curve), 66);
	curve = made(0, 1, 1000);
	assert_int_equal(curve_enough(&curve), 3);
}

TEST(what_binds_is_said_only_where_it_is_known)
{
	struct curve curve = made(100, 0, 1000), beside;

	assert_string_equal(curve_bound(&curve, NULL).word, "arithmetic");
	curve = made(100, 1, 19);
	assert_string_equal(curve_bound(&curve, NULL).word, "saturated");
	beside = made(130, 1.3, 19);
	assert_string_equal(curve_bound(&curve, &beside).word, "memory");
	beside = made(101, 1.01, 19);
	assert_string_equal(curve_bound(&curve, &beside).word, "blocks");
	curve = made(100, 1, 1000); /* between the two */
	assert_string_equal(curve_bound(&curve, &beside).word, "partly");
	curve = made(1, 10, 1000);
	for (unsigned int i = 0; i < curve.count; i++)
		curve.points[i].kernels_ns = 0.2 * curve.points[i].job_ns;
	assert_string_equal(curve_bound(&curve, NULL).word, "launches");
	curve.count = 2;
	assert_string_equal(curve_bound(&curve, NULL).word, "unknown");
	curve.count = 0;
	assert_string_equal(curve_bound(&curve, NULL).word, "unknown");
}

/* --- jobs ------------------------------------------------------------------------------------------------------------------- */

static struct burst bursts[1000];

/* So many jobs of `parts` bursts with 5 kernels each; idle for `within` µs inside a job, and `between` from one to the next. */
static size_t make_bursts(size_t jobs, size_t parts, uint64_t within, uint64_t between)
{
	uint64_t now = 1000000;
	size_t count = 0;

	for (size_t job = 0; job < jobs; job++) {
		for (size_t part = 0; part < parts; part++) {
			bursts[count++] = (struct burst){now, now + 100000, 5};
			now += 100000 + (part < parts - 1 ? within : between + job % 3 * between / 10) * 1000;
		}
	}
	return count;
}

TEST(jobs_are_what_is_between_long_idle_times)
{
	static const struct {
		size_t parts;
		uint64_t within, between, kernels;
	} rows[] = {{1, 0, 1000, 5}, {3, 20, 1000, 15}, {4, 200, 1000, 20}, {1, 0, 5, 5}};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		size_t count = make_bursts(40, rows[i].parts, rows[i].within, rows[i].between);
		struct jobs_rule rule = jobs_rule(bursts, count, 0);

		ROW("row %zu", i);
		assert_int_equal(rule.kernels, rows[i].kernels);
		assert_true(rule.same > 0.99);
		uint64_t length = rows[i].parts * 100000 + (rows[i].parts - 1) * rows[i].within * 1000;

		for (int all = 0; all < 2; all++) {
			struct jobs_times times = jobs_times(bursts, count, &rule, all ? 0 : rows[i].kernels, length - 1 + (uint64_t)all);

			assert_int_equal(times.count, 38);
			assert_int_equal(times.late, all ? 0 : 38);
			assert_true(times.median_ns == (double)length && times.longest_ns == (double)length);
		}
	}
}

TEST(idle_times_that_make_no_equal_jobs_are_no_border)
{
	size_t count = make_bursts(60, 1, 0, 100);

	/* Three of them by chance: what is between them is not the same. */
	for (size_t i = 7; i < count; i++) {
		uint64_t late = (i >= 7 ? 5000000u : 0) + (i >= 20 ? 5000000u : 0) + (i >= 47 ? 5000000u : 0);

		bursts[i].begin_ns += late;
		bursts[i].end_ns += late;
	}
	struct jobs_rule rule = jobs_rule(bursts, count, 0);

	assert_int_equal(rule.kernels, 5);
	assert_int_equal(jobs_times(bursts, count, &rule, 0, 0).count, 58);
}

/* With fewer TPCs a job is longer, and what is left until the next one is shorter. */
TEST(a_rule_is_found_again_with_other_idle_times)
{
	size_t count = make_bursts(40, 3, 20, 5000);
	struct jobs_rule rule = jobs_rule(bursts, count, 0);

	for (uint64_t between = 5000; between > 60; between /= 3) {
		ROW("idle for %u us", (unsigned int)between);
		count = make_bursts(40, 3, 20, between);
		struct jobs_rule again = jobs_rule(bursts, count, rule.kernels);

		assert_int_equal(jobs_times(bursts, count, &again, rule.kernels, 0).count, 38);
		assert_int_equal(jobs_times(bursts, count, &again, rule.kernels + 1, 0).count, 0);
	}
}

TEST(a_few_bursts_are_no_jobs)
{
	for (size_t count = 0; count < 3; count++) {
		make_bursts(3, 1, 0, 100);
		struct jobs_rule rule = jobs_rule(bursts, count, 0);

		assert_int_equal(rule.kernels, 0);
		assert_int_equal(jobs_times(bursts, count, &rule, 0, 0).count, 0);
	}
}

RUN_TESTS(NULL, NULL)
