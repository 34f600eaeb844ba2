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
	return curve->count > 0 ? &curve->points[curve->count - 1] : NULL;
}

/* Of the largest size, by a neighbour that copies; negative: it was not measured. */
static double slowdown(const struct measured_curve *measured)
{
	const struct curve_point *alone = last_of(&measured->curve), *beside = last_of(&measured->beside);

	return measured->neighbour == BESIDE_MEMORY && alone && beside && alone->tpcs == beside->tpcs ? beside->job_ns / alone->job_ns - 1 : -1;
}

static const struct curve_point *find(const struct curve *curve, unsigned int tpcs)
{
	const struct curve_point *found = NULL;

	for (unsigned int i = 0; i < curve->count && !found; i++)
		found = curve->points[i].tpcs == tpcs ? &curve->points[i] : NULL;
	return found;
}

/* --- text ------------------------------------------------------------------------------------------------------------------- */

static void print_number(FILE *page, double number)
{
	if (number > 0)
		fprintf(page, " %9.3f", number);
	else
		fprintf(page, " %9s", "-");
}

static void print_points(const struct measured_curve *measured, FILE *page)
{
	double most = measured->curve.points[0].job_ns;

	fprintf(page, "\n%5s %9s %9s %9s %9s%s\n", "TPCS", "JOB ms", "LONGEST", "KERNELS", "JOBS/s", measured->beside.count > 0 ? "    BESIDE" : "");
	for (unsigned int i = measured->curve.count; i-- > 0;) {
		const struct curve_point *point = &measured->curve.points[i], *beside = find(&measured->beside, point->tpcs);
		int length = (int)(point->job_ns / most * BAR + 0.5);

		fprintf(page, "%5u", point->tpcs);
		print_number(page, ms(point->job_ns));
		print_number(page, ms(point->worst_ns));
		print_number(page, ms(point->kernels_ns));
		print_number(page, point->jobs_per_s);
		if (measured->beside.count > 0)
			print_number(page, beside ? ms(beside->job_ns) : 0);
		fprintf(page, "  %.*s\n", length < 1 ? 1 : length > BAR ? BAR : length, "########################");
	}
}

static void print_rule(const struct measured_curve *measured, FILE *page)
{
	const struct jobs_rule *rule = &measured->rule;

	if (measured->is_given)
		fprintf(page, "A job: %llu kernels, as --kernels says.\n", (unsigned long long)rule->kernels);
	else if (rule->same >= JOBS_SAME)
		fprintf(page, "A job: %llu kernels between two idle times, as %.0f%% of them have; idle for %.3f ms or more, and within a job for "
		              "%.3f ms at most.\n", (unsigned long long)rule->kernels, rule->same * 100, ms((double)rule->idle_ns), ms((double)rule->within_ns));
	else
		fprintf(page, "A job: what is between two idle times, however short; they have different numbers of kernels.\n");
}

void curve_print(const struct measured_curve *measured, FILE *page)
{
	struct curve_fit fit = curve_fit(&measured->curve);

	fprintf(page, "pid %d on GPU %s, measured for %.1f s\n", (int)measured->pid, measured->gpu, measured->seconds);
	print_rule(measured, page);
	print_points(measured, page);
	fputs("\n", page);
	if (measured->why_ended)
		fprintf(page, "Not all sizes: %s.\n", measured->why_ended);
	if (measured->why_no_kernels)
		fprintf(page, "KERNELS: %s.\n", measured->why_no_kernels);
	if (measured->beside.count > 0)
		fprintf(page, "BESIDE: a neighbour on %u TPCs that %s.\n", measured->neighbour_tpcs,
		        measured->neighbour == BESIDE_MEMORY ? "copies" : "computes");
	if (fit.is_known)
		fprintf(page, "Fit: %.3f ms / TPCs + %.3f ms; wrong by %.1f%% on average, at most by %.1f%%, with %u.\n", ms(fit.a_ns), ms(fit.b_ns),
		        fit.mean_error * 100, fit.worst_error * 100, fit.worst_tpcs);
	fprintf(page, "Enough: %u TPCs; more gain less than %.0f%%.\n", curve_enough(&measured->curve), CURVE_NOTHING * 100);
	fprintf(page, "Bound by: %s.\n", curve_bound_text(curve_bound(&measured->curve, slowdown(measured))));
}

/* --- JSON ------------------------------------------------------------------------------------------------------------------- */

static json_t *number_or_null(double number)
{
	return number > 0 ? json_real(number) : json_null();
}

static json_t *points_of(const struct curve *curve)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < curve->count; i++) {
		const struct curve_point *point = &curve->points[i];

		array = json_with(array, json_pack("{s:i, s:i, s:f, s:f, s:o, s:o, s:f}", "tpcs", (int)point->tpcs, "jobs", (int)point->jobs,
		                                   "job_ms", ms(point->job_ns), "longest_ms", ms(point->worst_ns),
		                                   "kernels_ms", number_or_null(ms(point->kernels_ns)), "launch_ms",
		                                   number_or_null(ms(point->launch_ns)), "jobs_per_second", point->jobs_per_s));
	}
	return array;
}

json_t *curve_json(const struct measured_curve *measured)
{
	static const char *const neighbours[] = {[BESIDE_NOTHING] = NULL, [BESIDE_MEMORY] = "memory", [BESIDE_COMPUTE] = "compute"};
	struct curve_fit fit = curve_fit(&measured->curve);
	enum curve_bound bound = curve_bound(&measured->curve, slowdown(measured));
	const struct jobs_rule *rule = &measured->rule;
	json_t *object = json_pack("{s:s, s:i, s:s, s:f, s:s?, s:s?}", "schema", "nvtaskset-curve/1", "pid", (int)measured->pid, "gpu",
	                           measured->gpu, "seconds", measured->seconds, "why_ended", measured->why_ended, "beside",
	                           neighbours[measured->neighbour]);

	object = json_joined(object, json_pack("{s:{s:s, s:I, s:f, s:f, s:f}}", "jobs", "apart", measured->is_given ? "kernels" : "idle",
	                                       "kernels", (json_int_t)rule->kernels, "same", rule->same, "idle_ms", ms((double)rule->idle_ns),
	                                       "within_ms", ms((double)rule->within_ns)));
	object = json_joined(object, json_pack("{s:o, s:o, s:i, s:s}", "points", points_of(&measured->curve), "points_beside",
	                                       points_of(&measured->beside), "enough_tpcs", (int)curve_enough(&measured->curve), "bound",
	                                       curve_bound_word(bound)));
	return json_joined(object, json_pack("{s:o}", "fit", !fit.is_known ? json_null() :
	                                     json_pack("{s:f, s:f, s:f, s:f}", "a_ms", ms(fit.a_ns), "b_ms", ms(fit.b_ns), "mean_error",
	                                               fit.mean_error, "worst_error", fit.worst_error)));
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

static double across(const struct curve *curve, double tpcs)
{
	return EDGE + (WIDTH - 2 * EDGE) * tpcs / last_of(curve)->tpcs;
}

static double down(double part)
{
	return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * part;
}

static void draw_points(const struct measured_curve *measured, const struct curve *curve, const char *colour, double most, FILE *file)
{
	for (unsigned int i = 0; i < curve->count; i++)
		fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", across(&measured->curve, curve->points[i].tpcs),
		        down(curve->points[i].job_ns / most), colour);
}

int curve_draw(const struct measured_curve *measured, const char *path, struct error *error)
{
	FILE *file = fopen(path, "w");
	const struct curve *curve = &measured->curve;
	struct curve_fit fit = curve_fit(curve);
	double most = curve->points[0].job_ns;

	if (!file)
		return error_set_errno(error, "%.200s", path);
	for (unsigned int i = 0; i < measured->beside.count; i++)
		most = measured->beside.points[i].job_ns > most ? measured->beside.points[i].job_ns : most;
	fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"13\">\n"
	              "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"black\"/>\n",
	        WIDTH, HEIGHT, EDGE, EDGE, HEIGHT - EDGE, WIDTH - EDGE);
	for (unsigned int i = 0; i < curve->count; i++)
		fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%u</text>\n", across(curve, curve->points[i].tpcs), HEIGHT - EDGE + 18,
		        curve->points[i].tpcs);
	fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">TPCs</text>\n<text x=\"%d\" y=\"%d\">%.3f ms for a job</text>\n", WIDTH / 2, HEIGHT - 15,
	        EDGE - 20, EDGE - 15, ms(most));
	fputs("<polyline fill=\"none\" stroke=\"gray\" points=\"", file);
	for (unsigned int tpcs = curve->points[0].tpcs; fit.is_known && tpcs <= last_of(curve)->tpcs; tpcs++)
		fprintf(file, "%.1f,%.1f ", across(curve, tpcs), down((fit.a_ns / tpcs + fit.b_ns) / most));
	fputs("\"/>\n", file);
	draw_points(measured, curve, "black", most, file);
	draw_points(measured, &measured->beside, "firebrick", most, file);
	fputs("</svg>\n", file);
	bool is_written = !ferror(file);

	return fclose(file) == 0 && is_written ? 0 : error_set_errno(error, "%.200s", path);
}
