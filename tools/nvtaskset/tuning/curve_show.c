/* A curve as text, as JSON, as a picture; and read from JSON. */
#include "curve.h"

#include "base/extremes.h"
#include "show/json.h"

#include <string.h>

#define BAR "########################"

static double ms(double ns)
{
	return ns / 1e6;
}

static const struct curve_point *last_of(const struct curve *curve)
{
	return &curve->points[curve->count - 1];
}

static struct curve_bound bound_of(const struct measured_curve *measured)
{
	bool is_known = measured->options->beside == BESIDE_MEMORY && measured->beside.count > 0;

	return curve_bound(&measured->curve, is_known ? last_of(&measured->beside)->job_ns / last_of(&measured->curve)->job_ns - 1 : -1);
}

/* --- JSON ------------------------------------------------------------------------------------------------------------------- */

json_t *json_ms(double ns)
{
	return json_reading(reading_if(ns > 0, ms(ns)), false);
}

static json_t *json_of(const struct curve_point *point)
{
	return json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:f}", "tpcs", (int)point->tpcs, "jobs", (int)point->jobs, "job_ms", json_ms(point->job_ns),
	                 "longest_ms", json_ms(point->worst_ns), "kernels_ms", json_ms(point->kernels_ns), "launch_ms", json_ms(point->launch_ns),
	                 "jobs_per_second", point->jobs_per_s);
}

static json_t *points_of(const struct curve *curve)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < curve->count; i++)
		array = json_with(array, json_of(&curve->points[i]));
	return array;
}

json_t *curve_json(const struct measured_curve *measured)
{
	static const char *const neighbours[] = {[BESIDE_NOTHING] = NULL, [BESIDE_MEMORY] = "memory", [BESIDE_COMPUTE] = "compute"};
	const struct options *options = measured->options;
	const struct jobs_rule *rule = &measured->rule;
	struct curve_fit fit = curve_fit(&measured->curve);
	json_t *fitted = fit.is_known ? json_pack("{s:f, s:f, s:f, s:f}", "a_ms", ms(fit.a_ns), "b_ms", ms(fit.b_ns), "mean_error", fit.mean_error,
	                                          "worst_error", fit.worst_error) : json_null();

	return json_pack("{s:s, s:i, s:s, s:f, s:s?, s:s?, s:{s:s, s:I, s:f, s:f, s:f}, s:o, s:o, s:i, s:s, s:o}", "schema", "nvtaskset-curve/1",
	                 "pid", (int)measured->pid, "gpu", measured->gpu, "seconds", measured->seconds, "why_ended", measured->why_ended, "beside",
	                 neighbours[options->beside], "jobs", "apart", options->kernels > 0 ? "kernels" : "idle", "kernels", (json_int_t)rule->kernels,
	                 "same", rule->same, "idle_ms", ms((double)rule->idle_ns), "within_ms", ms((double)rule->within_ns), "points",
	                 points_of(&measured->curve), "points_beside", points_of(&measured->beside), "enough_tpcs", (int)curve_enough(&measured->curve),
	                 "bound", bound_of(measured).word, "fit", fitted);
}

static double number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static int read_points(struct curve *curve, json_t *array, struct error *error)
{
	size_t index;
	json_t *value;

	curve->count = 0;
	json_array_foreach(array, index, value) {
		struct curve_point point = {
			.tpcs = (unsigned int)json_integer_value(json_object_get(value, "tpcs")),
			.job_ns = number(value, "job_ms") * 1e6,
			.worst_ns = max_double(number(value, "longest_ms"), number(value, "job_ms")) * 1e6,
			.launch_ns = number(value, "launch_ms") * 1e6,
		};

		if (point.tpcs <= (curve->count > 0 ? last_of(curve)->tpcs : 0) || !(point.job_ns > 0) || curve->count == CURVE_POINTS)
			return error_set(error, "curve: point %zu: needs tpcs, more than the one before, and job_ms; there are at most %d", index, CURVE_POINTS);
		curve->points[curve->count++] = point;
	}
	return 0;
}

int curve_read(struct curve *curve, struct curve *beside, json_t *document, struct error *error)
{
	json_t *points = json_object_get(document, "points");

	if (json_array_size(points) == 0)
		return error_set(error, "curve: has no points");
	return read_points(curve, points, error) < 0 ? -1 : read_points(beside, json_object_get(document, "points_beside"), error);
}

/* --- text ------------------------------------------------------------------------------------------------------------------- */

void print_members(const json_t *object, const char *const names[])
{
	for (; *names; names++) {
		const json_t *value = json_object_get(object, *names);

		if (json_is_real(value))
			printf(" %9.3f", json_real_value(value));
		else if (json_is_integer(value))
			printf(" %9" JSON_INTEGER_FORMAT, json_integer_value(value));
		else
			printf(json_is_string(value) ? "%-16.16s" : " %9s", json_is_string(value) ? json_string_value(value) : "-");
	}
}

static void print_points(const struct curve *curve)
{
	static const char *const members[] = {"tpcs", "job_ms", "longest_ms", "kernels_ms", "jobs_per_second", NULL};

	printf("\n %9s %9s %9s %9s %9s\n", "TPCS", "JOB ms", "LONGEST", "KERNELS", "JOBS/s");
	for (const struct curve_point *point = last_of(curve); point >= curve->points; point--) {
		int length = (int)(point->job_ns / curve->points[0].job_ns * (sizeof BAR - 1) + 0.5);
		json_t *object = json_of(point);

		print_members(object, members);
		printf("  %.*s\n", length < 1 ? 1 : length, BAR);
		json_decref(object);
	}
}

static void print_rule(const struct measured_curve *measured)
{
	const struct jobs_rule *rule = &measured->rule;

	if (measured->options->kernels > 0)
		printf("A job: %u kernels, as --kernels says.\n", measured->options->kernels);
	else if (rule->same >= JOBS_SAME)
		printf("A job: %llu kernels between two idle times, as %.0f%% of them have; idle for %.3f ms or more, and within a job for "
		       "%.3f ms at most.\n", (unsigned long long)rule->kernels, rule->same * 100, ms((double)rule->idle_ns), ms((double)rule->within_ns));
	else
		printf("A job: what is between two idle times, however short; they have different numbers of kernels.\n");
}

void curve_print(const struct measured_curve *measured)
{
	struct curve_fit fit = curve_fit(&measured->curve);

	printf("pid %d on GPU %s, measured for %.1f s\n", (int)measured->pid, measured->gpu, measured->seconds);
	print_rule(measured);
	print_points(&measured->curve);
	if (measured->beside.count > 0) {
		printf("\nBeside a neighbour on %u TPCs that %s:\n", measured->neighbour_tpcs, measured->options->beside == BESIDE_MEMORY ? "copies" : "computes");
		print_points(&measured->beside);
	}
	putchar('\n');
	if (measured->why_ended)
		printf("Not all sizes: %s.\n", measured->why_ended);
	if (fit.is_known)
		printf("Fit: %.3f ms / TPCs + %.3f ms; wrong by %.1f%% on average, at most by %.1f%%, with %u.\n", ms(fit.a_ns), ms(fit.b_ns),
		       fit.mean_error * 100, fit.worst_error * 100, fit.worst_tpcs);
	printf("Enough: %u TPCs; more gain less than %.0f%%.\n", curve_enough(&measured->curve), CURVE_NOTHING * 100);
	printf("Bound by: %s.\n", bound_of(measured).text);
}

/* --- a picture -------------------------------------------------------------------------------------------------------------- */

#define WIDTH 640
#define HEIGHT 400
#define EDGE 60

struct scale {
	double tpcs, ns; /* at the right, and at the top */
};

static void draw_point(FILE *file, const struct scale *scale, const char *format, unsigned int tpcs, double ns)
{
	fprintf(file, format, EDGE + (WIDTH - 2.0 * EDGE) * tpcs / scale->tpcs, HEIGHT - EDGE - (HEIGHT - 2.0 * EDGE) * ns / scale->ns, tpcs);
}

static void draw_points(FILE *file, const struct scale *scale, const char *format, const struct curve *curve)
{
	for (unsigned int i = 0; i < curve->count; i++)
		draw_point(file, scale, format, curve->points[i].tpcs, curve->points[i].job_ns);
}

void curve_draw(const struct measured_curve *measured, FILE *file)
{
	const struct curve *curve = &measured->curve, *beside = &measured->beside;
	struct curve_fit fit = curve_fit(curve);
	struct scale scale = {last_of(curve)->tpcs, max_double(curve->points[0].job_ns, beside->count > 0 ? beside->points[0].job_ns : 0)};

	fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n"
	              "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"black\"/>\n"
	              "<text x=\"%d\" y=\"%d\">TPCs</text>\n<text x=\"%d\" y=\"%d\">%.3f ms for a job</text>\n<polyline fill=\"none\" stroke=\"gray\" points=\"",
	        WIDTH, HEIGHT, EDGE, EDGE, HEIGHT - EDGE, WIDTH - EDGE, WIDTH / 2, HEIGHT - 15, EDGE - 20, EDGE - 15, ms(scale.ns));
	for (unsigned int tpcs = curve->points[0].tpcs; fit.is_known && tpcs <= last_of(curve)->tpcs; tpcs++)
		draw_point(file, &scale, "%.1f,%.1f ", tpcs, fit.a_ns / tpcs + fit.b_ns);
	fputs("\"/>\n", file);
	draw_points(file, &scale, "<circle cx=\"%1$.1f\" cy=\"%2$.1f\" r=\"4\"/><text x=\"%1$.1f\" y=\"358\" text-anchor=\"middle\">%3$u</text>\n", curve);
	draw_points(file, &scale, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"firebrick\"/>\n", beside);
	fputs("</svg>\n", file);
}
