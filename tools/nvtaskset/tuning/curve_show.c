/* A curve as text, as JSON, as a picture; and read from JSON. */
#include "curve.h"

#include "show/json.h"

#include <string.h>

#define BAR 24

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
	bool is_known = measured->neighbour == BESIDE_MEMORY && measured->beside.count > 0;

	return curve_bound(&measured->curve, is_known ? last_of(&measured->beside)->job_ns / last_of(&measured->curve)->job_ns - 1 : -1);
}

/* --- text ------------------------------------------------------------------------------------------------------------------- */

void print_ms(double ns)
{
	if (ns > 0)
		printf(" %9.3f", ms(ns));
	else
		printf(" %9s", "-");
}

static void print_points(const struct measured_curve *measured)
{
	const struct curve *curve = &measured->curve, *beside = &measured->beside;

	printf("\n%5s %9s %9s %9s %9s%s\n", "TPCS", "JOB ms", "LONGEST", "KERNELS", "JOBS/s", beside->count > 0 ? "    BESIDE" : "");
	/* From the largest size on, both have the same ones. */
	for (unsigned int i = 1; i <= curve->count; i++) {
		const struct curve_point *point = &curve->points[curve->count - i];
		int length = (int)(point->job_ns / curve->points[0].job_ns * BAR + 0.5);

		printf("%5u", point->tpcs);
		print_ms(point->job_ns);
		print_ms(point->worst_ns);
		print_ms(point->kernels_ns);
		printf(" %9.3f", point->jobs_per_s);
		if (beside->count > 0)
			print_ms(i <= beside->count ? beside->points[beside->count - i].job_ns : 0);
		printf("  %.*s\n", length < 1 ? 1 : length, "########################");
	}
}

static void print_rule(const struct measured_curve *measured)
{
	const struct jobs_rule *rule = &measured->rule;

	if (measured->is_given)
		printf("A job: %llu kernels, as --kernels says.\n", (unsigned long long)rule->kernels);
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
	print_points(measured);
	putchar('\n');
	if (measured->why_ended)
		printf("Not all sizes: %s.\n", measured->why_ended);
	if (!(measured->curve.points[0].kernels_ns > 0))
		printf("KERNELS: the times of its kernels are not known.\n");
	if (measured->beside.count > 0)
		printf("BESIDE: a neighbour on %u TPCs that %s.\n", measured->neighbour_tpcs,
		        measured->neighbour == BESIDE_MEMORY ? "copies" : "computes");
	if (fit.is_known)
		printf("Fit: %.3f ms / TPCs + %.3f ms; wrong by %.1f%% on average, at most by %.1f%%, with %u.\n", ms(fit.a_ns), ms(fit.b_ns),
		        fit.mean_error * 100, fit.worst_error * 100, fit.worst_tpcs);
	printf("Enough: %u TPCs; more gain less than %.0f%%.\n", curve_enough(&measured->curve), CURVE_NOTHING * 100);
	printf("Bound by: %s.\n", bound_of(measured).text);
}

/* --- JSON ------------------------------------------------------------------------------------------------------------------- */

json_t *json_ms(double ns)
{
	return json_reading(reading_if(ns > 0, ms(ns)), false);
}

static json_t *points_of(const struct curve *curve)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < curve->count; i++) {
		const struct curve_point *point = &curve->points[i];

		array = json_with(array, json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:f}", "tpcs", (int)point->tpcs, "jobs", (int)point->jobs, "job_ms",
		                                   json_ms(point->job_ns), "longest_ms", json_ms(point->worst_ns), "kernels_ms", json_ms(point->kernels_ns),
		                                   "launch_ms", json_ms(point->launch_ns), "jobs_per_second", point->jobs_per_s));
	}
	return array;
}

json_t *curve_json(const struct measured_curve *measured)
{
	static const char *const neighbours[] = {[BESIDE_NOTHING] = NULL, [BESIDE_MEMORY] = "memory", [BESIDE_COMPUTE] = "compute"};
	const struct jobs_rule *rule = &measured->rule;
	struct curve_fit fit = curve_fit(&measured->curve);
	json_t *fitted = fit.is_known ? json_pack("{s:f, s:f, s:f, s:f}", "a_ms", ms(fit.a_ns), "b_ms", ms(fit.b_ns), "mean_error", fit.mean_error,
	                                          "worst_error", fit.worst_error) : json_null();

	return json_pack("{s:s, s:i, s:s, s:f, s:s?, s:s?, s:{s:s, s:I, s:f, s:f, s:f}, s:o, s:o, s:i, s:s, s:o}", "schema", "nvtaskset-curve/1",
	                 "pid", (int)measured->pid, "gpu", measured->gpu, "seconds", measured->seconds, "why_ended", measured->why_ended, "beside",
	                 neighbours[measured->neighbour], "jobs", "apart", measured->is_given ? "kernels" : "idle", "kernels", (json_int_t)rule->kernels,
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
			.worst_ns = number(value, "longest_ms") * 1e6,
			.launch_ns = number(value, "launch_ms") * 1e6,
		};
		bool rises = curve->count == 0 || point.tpcs > curve->points[curve->count - 1].tpcs;

		if (point.tpcs == 0 || !(point.job_ns > 0) || !rises || curve->count == CURVE_POINTS)
			return error_set(error, "curve: point %zu: needs tpcs, more than the one before, and job_ms; there are at most %d", index, CURVE_POINTS);
		point.worst_ns = point.worst_ns > point.job_ns ? point.worst_ns : point.job_ns;
		curve->points[curve->count++] = point;
	}
	return 0;
}

int curve_read(struct curve *curve, struct curve *beside, json_t *document, struct error *error)
{
	json_t *points = json_object_get(document, "points");

	if (!json_is_array(points) || json_array_size(points) == 0)
		return error_set(error, "curve: has no points");
	return read_points(curve, points, error) < 0 || read_points(beside, json_object_get(document, "points_beside"), error) < 0 ? -1 : 0;
}

/* --- a picture -------------------------------------------------------------------------------------------------------------- */

#define WIDTH 640
#define HEIGHT 400
#define EDGE 60

static double across(const struct curve *curve, unsigned int tpcs)
{
	return EDGE + (WIDTH - 2.0 * EDGE) * tpcs / last_of(curve)->tpcs;
}

static double down(double part)
{
	return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * part;
}

void curve_draw(const struct measured_curve *measured, FILE *file)
{
	const struct curve *curve = &measured->curve, *beside = &measured->beside;
	struct curve_fit fit = curve_fit(curve);
	double most = curve->points[0].job_ns;

	for (unsigned int i = 0; i < beside->count; i++)
		most = beside->points[i].job_ns > most ? beside->points[i].job_ns : most;
	fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n"
	              "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"black\"/>\n",
	        WIDTH, HEIGHT, EDGE, EDGE, HEIGHT - EDGE, WIDTH - EDGE);
	fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">TPCs</text>\n<text x=\"%d\" y=\"%d\">%.3f ms for a job</text>\n", WIDTH / 2, HEIGHT - 15,
	        EDGE - 20, EDGE - 15, ms(most));
	fputs("<polyline fill=\"none\" stroke=\"gray\" points=\"", file);
	for (unsigned int tpcs = curve->points[0].tpcs; fit.is_known && tpcs <= last_of(curve)->tpcs; tpcs++)
		fprintf(file, "%.1f,%.1f ", across(curve, tpcs), down((fit.a_ns / tpcs + fit.b_ns) / most));
	fputs("\"/>\n", file);
	for (unsigned int i = 0; i < curve->count + beside->count; i++) {
		bool is_alone = i < curve->count;
		const struct curve_point *point = is_alone ? &curve->points[i] : &beside->points[i - curve->count];
		double x = across(curve, point->tpcs);

		fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", x, down(point->job_ns / most), is_alone ? "black" : "firebrick");
		if (is_alone)
			fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%u</text>\n", x, HEIGHT - EDGE + 18, point->tpcs);
	}
	fputs("</svg>\n", file);
}
