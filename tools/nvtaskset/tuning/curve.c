/* curve: moves a running program through sizes, and measures its jobs. */
#include "base/clock.h"
#include "base/extremes.h"
#include "cli/actions.h"
#include "cli/tables.h"
#include "monitor/monitor.h"
#include "plan/curve.h"
#include "programs.h"
#include "show/json.h"
#include "terminal/progress.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_NS 300e6    /* the shortest measurement of a size */
#define WINDOW_JOBS 12     /* jobs in a measurement, within the bounds */
/* The longest measurement, unless a few jobs take longer. */
#define WINDOW_MOST_NS 1e9
#define JOBS_LEAST 4
#define SLOWER 1.6         /* a job's time, compared with the size before */
#define TRIES 3            /* on a busy machine, idle times may not be seen */
#define KERNELS_NS 100e6   /* the shortest measurement of a size's kernels, or a quarter of the size's */
#define TIME_NS 8e9        /* for all sizes; then the rest is left out */
#define BUSY_ALL 0.98      /* without idle times, kernels tell jobs apart */
#define NEIGHBOUR_PART 4   /* of the TPCs */
#define BAR "########################"

struct study {
	const char *neighbour; /* the work, "memory" or "compute"; NULL: no neighbour */
	struct space space;
	struct sampled program;
	struct monitor *monitor;
	double window_ns; /* for the next size */
	pid_t pid;
	double seconds;        /* the whole measurement */
	struct jobs_rule rule; /* from the largest size, or from --kernels */
	bool is_given;         /* --kernels */
	struct curve curve, beside; /* `beside` is empty without a neighbour */
	unsigned int neighbour_tpcs;
	struct curve_bound bound;
	const char *why_ended; /* why smaller sizes are missing; or NULL */
};

/* --- one size ----------------------------------------------------------------------------------------------------- */

/* The kernels of a job; 0: jobs have different numbers. */
static uint64_t kernels_of(const struct jobs_rule *rule)
{
	return rule->same >= JOBS_SAME ? rule->kernels : 0;
}

/* The jobs between idle times, as at the largest size. False if no job could be told apart. */
static bool evaluate(struct study *study, struct curve_point *point)
{
	struct sampled *program = &study->program;
	double span = (double)program->span_ns;
	struct jobs_rule rule = study->is_given ? study->rule
	                                        : jobs_rule(program->bursts, program->count, kernels_of(&study->rule));

	study->rule = study->curve.count == 0 ? rule : study->rule;
	struct jobs_times times = jobs_times(program->bursts, program->count, &rule, kernels_of(&study->rule), 0);
	double kernels = (double)kernels_of(&study->rule),
	       jobs = kernels > 0 ? (double)program->kernels / kernels : (double)times.count;

	*point = (struct curve_point){point->tpcs, .jobs = (unsigned int)times.count, .job_ns = times.median_ns,
	                              .worst_ns = times.longest_ns};
	/* A busy program: the number of kernels makes a job. */
	if (kernels > 0 && (study->is_given || (times.count < 2 && (double)program->busy_ns > BUSY_ALL * span))) {
		point->jobs = (unsigned int)jobs;
		point->job_ns = point->worst_ns = span / jobs;
	}
	point->jobs_per_s = jobs / span * 1e9;
	return point->jobs >= 2;
}

/* The time of kernels on the GPU. Measured after the jobs, since each look at times takes some milliseconds. */
static void measure_kernels(struct study *study, struct curve_point *point)
{
	double end = (double)process_clock_ns() + max_double(KERNELS_NS, study->window_ns / 4), busy_ns = 0, count = 0,
	       longest_ns = 0;
	struct monitor_times times;
	bool is_known = study->monitor && monitor_take(study->monitor, &times, NULL, NULL) == 0;

	while (is_known && (double)process_clock_ns() < end && !programs_restorer_must_end()) {
		clock_pause_us(MONITOR_TAKE_MS * 1000);
		is_known = monitor_take(study->monitor, &times, NULL, NULL) == 0;
		const struct monitor_gpu *gpu = is_known ? pci_address_find(study->program.pci, times.gpus,
		                                                            times.gpu_count, sizeof *gpu)
		                                         : NULL;

		if (gpu) {
			busy_ns += (double)gpu->busy_ns;
			count += (double)gpu->kernels;
			is_known = gpu->is_time_known && gpu->lost == 0;
		}
		for (unsigned int i = 0; i < times.function_count && is_known; i++)
			longest_ns = max_double(longest_ns, (double)times.functions[i].durations.max_ns);
	}
	if (is_known && count > 0 && busy_ns > 0) {
		point->kernels_ns = busy_ns / count * (double)study->program.kernels * 1e9 /
		                    ((double)study->program.span_ns * point->jobs_per_s);
		point->launch_ns = longest_ns;
	}
}

static int explain_no_jobs(const struct study *study, struct error *error)
{
	return study->is_given ? error_set(error, "pid %d: fewer than two jobs of %llu kernels in %.1f s; take a "
	                                          "smaller --kernels", (int)study->pid,
	                                   (unsigned long long)study->rule.kernels, study->window_ns / 1e9)
	                       : error_set(error, "pid %d: no jobs can be told apart; --kernels N if it is never "
	                                          "idle, or launches nothing", (int)study->pid);
}

static int measure_size(struct study *study, struct curve_point point, struct curve *curve, struct error *error)
{
	struct segment_revision wanted = {.count = 1};
	bool has_jobs = false;

	if (programs_space_choose(&study->space, point.tpcs, &wanted.partitions[0], error) < 0 ||
	    programs_restorer_change(&study->program.editor, &wanted, error) < 0)
		return -1;
	for (unsigned int i = 0; i < TRIES && !has_jobs && !programs_restorer_must_end(); i++) {
		sampler_watch(&study->program, 1, study->window_ns);
		has_jobs = evaluate(study, &point);
	}
	if (has_jobs)
		measure_kernels(study, &point);
	if (editor_has_ended(&study->program.editor))
		return error_set(error, "pid %d: has ended", (int)study->pid);
	study->why_ended = has_jobs ? NULL : "with fewer TPCs, too few jobs came to an end";
	if (!has_jobs)
		return curve->count > 0 ? 0 : explain_no_jobs(study, error);
	double next = SLOWER * point.job_ns, most = max_double(WINDOW_MOST_NS, JOBS_LEAST * next);

	study->window_ns = max_double(WINDOW_NS,
	                              min_double(most, WINDOW_JOBS * max_double(1e9 / point.jobs_per_s, next)));
	memmove(curve->points + 1, curve->points, curve->count++ * sizeof point);
	curve->points[0] = point;
	return 0;
}

static int measure_sizes(struct study *study, struct curve *curve, struct error *error)
{
	unsigned int sizes[CURVE_SIZES], count = curve_sizes(sizes, programs_space_count(&study->space));
	double begin = (double)process_clock_ns();
	int result = count > 0 ? 0 : error_set(error, "no TPC is free");

	study->why_ended = NULL;
	for (unsigned int i = 0; i < count && result == 0 && !study->why_ended; i++) {
		const char *where = curve == &study->beside ? "beside a neighbour: " : "";

		progress_say("%s%u TPCs, size %u of %u", where, sizes[i], i + 1, count);
		if (i > 2 && (double)process_clock_ns() - begin > TIME_NS)
			study->why_ended = "smaller sizes would have taken too long";
		else
			result = measure_size(study, (struct curve_point){.tpcs = sizes[i]}, curve, error);
	}
	return result;
}

/* --- all sizes ---------------------------------------------------------------------------------------------------- */

/* The neighbour's TPCs are taken from the begin on: both curves have the same sizes. */
static int measure(struct study *study, struct error *error)
{
	struct segment_partition neighbours;
	pid_t neighbour = 0;

	if (!study->neighbour)
		return measure_sizes(study, &study->curve, error);
	if (gpus_number(study->space.gpu, &study->space.list) < 0)
		return error_set(error, "--beside: CUDA hides GPU %s from a neighbour (CUDA_VISIBLE_DEVICES)",
		                 study->space.name);
	study->neighbour_tpcs = programs_space_count(&study->space) / NEIGHBOUR_PART;
	if (study->neighbour_tpcs == 0)
		return error_set(error, "--beside: too few TPCs are free for a neighbour");
	if (programs_space_choose(&study->space, study->neighbour_tpcs, &neighbours, error) < 0)
		return -1;
	study->space.taken = tpcset_or(&study->space.taken, &neighbours.set);
	bool is_done = measure_sizes(study, &study->curve, error) == 0 &&
	               neighbour_start(&neighbour, study->neighbour, &study->space, &neighbours.set, error) == 0 &&
	               measure_sizes(study, &study->beside, error) == 0;

	program_end(neighbour, SIGKILL);
	return is_done ? 0 : -1;
}

/* A new program is watched until its jobs look alike: at first, programs prepare their work. */
static int prepare_study(struct study *study, bool is_new, struct error *error)
{
	struct sampled *program = &study->program;
	struct segment_revision in_force;
	const struct pids ours = {1, &study->pid};
	double end = clock_ms() + PROGRAM_SECONDS * 1000;
	struct jobs_rule rule = study->rule;

	progress_say("waiting for the program");
	if (program_open(&program->editor, study->pid, is_new, error) < 0 ||
	    editor_read(&program->editor, &in_force, error) < 0 ||
	    programs_space_open(&study->space, &in_force, &ours, error) < 0 ||
	    sampler_open(program, study->space.gpu->pci, error) < 0)
		return -1;
	study->monitor = monitor_begin(study->pid, NULL, NULL);
	while (is_new && kernels_of(&rule) == 0 && clock_ms() < end && !editor_has_ended(&program->editor) &&
	       !programs_restorer_must_end()) {
		sampler_watch(program, 1, study->window_ns);
		rule = jobs_rule(program->bursts, program->count, 0);
	}
	return 0;
}

/* --- as JSON ------------------------------------------------------------------------------------------------------ */

static json_t *points_of(const struct curve *curve)
{
	json_t *array = json_array();

	for (const struct curve_point *point = curve->points; point < curve->points + curve->count; point++)
		array = json_with(array, json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:f}", "tpcs", (int)point->tpcs,
		                                   "jobs", (int)point->jobs, "job_ms", json_ms(point->job_ns),
		                                   "longest_ms", json_ms(point->worst_ns), "kernels_ms",
		                                   json_ms(point->kernels_ns), "launch_ms", json_ms(point->launch_ns),
		                                   "jobs_per_second", point->jobs_per_s));
	return array;
}

static json_t *document_of(const struct study *study)
{
	const struct jobs_rule *rule = &study->rule;
	struct curve_fit fit = curve_fit(&study->curve);
	json_t *fitted = fit.is_known ? json_pack("{s:f, s:f, s:f, s:f}", "a_ms", fit.a_ns / 1e6,
	                                          "b_ms", fit.b_ns / 1e6, "mean_error", fit.mean_error,
	                                          "worst_error", fit.worst_error)
	                              : json_null();

	return json_pack("{s:s, s:i, s:s, s:f, s:s?, s:s?, s:{s:s, s:I, s:f, s:f, s:f}, s:o, s:o, s:i, s:s, s:o}",
	                 "schema", "nvtaskset-curve/1", "pid", (int)study->pid, "gpu", study->space.name, "seconds",
	                 study->seconds, "why_ended", study->why_ended, "beside", study->neighbour, "jobs", "apart",
	                 study->is_given ? "kernels" : "idle", "kernels", (json_int_t)rule->kernels, "same",
	                 rule->same, "idle_ms", (double)rule->idle_ns / 1e6, "within_ms", (double)rule->within_ns / 1e6,
	                 "points", points_of(&study->curve), "points_beside", points_of(&study->beside), "enough_tpcs",
	                 (int)curve_enough(&study->curve), "bound", study->bound.word, "fit", fitted);
}

/* --- as text ------------------------------------------------------------------------------------------------------ */

static void print_points(const struct curve *curve, const json_t *points)
{
	static const char *const members[] = {"tpcs", "job_ms", "longest_ms", "kernels_ms", "jobs_per_second", NULL};

	printf("\n %9s %9s %9s %9s %9s\n", "TPCS", "JOB ms", "LONGEST", "KERNELS", "JOBS/s");
	for (unsigned int i = curve->count; i-- > 0;) {
		int length = (int)(curve->points[i].job_ns / curve->points[0].job_ns * (sizeof BAR - 1) + 0.5);

		json_print_row(json_array_get(points, i), members);
		printf("  %.*s\n", length < 1 ? 1 : length, BAR);
	}
}

static void print_rule(const struct study *study)
{
	const struct jobs_rule *rule = &study->rule;

	if (study->is_given)
		printf("A job: %llu kernels, as --kernels says.\n", (unsigned long long)rule->kernels);
	else if (kernels_of(rule) > 0)
		printf("A job: %llu kernels between two idle times, as %.0f%% of them have; idle for %.3f ms or more, "
		       "and within a job for %.3f ms at most.\n", (unsigned long long)rule->kernels, rule->same * 100,
		       (double)rule->idle_ns / 1e6, (double)rule->within_ns / 1e6);
	else
		printf("A job: what is between two idle times, however short; they have different numbers of "
		       "kernels.\n");
}

static void print(const struct study *study, const json_t *document)
{
	struct curve_fit fit = curve_fit(&study->curve);

	printf("pid %d on GPU %s, measured for %.1f s\n", (int)study->pid, study->space.name, study->seconds);
	print_rule(study);
	print_points(&study->curve, json_object_get(document, "points"));
	if (study->beside.count > 0) {
		printf("\nBeside a neighbour on %u TPCs that %s:\n", study->neighbour_tpcs,
		       strcmp(study->neighbour, "memory") == 0 ? "copies" : "computes");
		print_points(&study->beside, json_object_get(document, "points_beside"));
	}
	putchar('\n');
	if (study->why_ended)
		printf("Not all sizes: %s.\n", study->why_ended);
	if (fit.is_known)
		printf("Fit: %.3f ms / TPCs + %.3f ms; wrong by %.1f%% on average, at most by %.1f%%.\n",
		       fit.a_ns / 1e6, fit.b_ns / 1e6, fit.mean_error * 100, fit.worst_error * 100);
	printf("Enough: %u TPCs; more gain less than %.0f%%.\n", curve_enough(&study->curve), CURVE_NOTHING * 100);
	printf("Bound by: %s.\n", study->bound.text);
}

/* --- a picture ---------------------------------------------------------------------------------------------------- */

/* Of the axes, which meet in the point 0 0. */
#define WIDTH 520.0
#define HEIGHT 280.0

static void draw_points(FILE *file, const struct curve *curve, const char *colour, double tpcs, double ns)
{
	for (const struct curve_point *point = curve->points; point < curve->points + curve->count; point++)
		fprintf(file,
		        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/><text x=\"%.1f\" "
		        "y=\"18\">%u</text>\n",
		        WIDTH * point->tpcs / tpcs, -HEIGHT * point->job_ns / ns, colour, WIDTH * point->tpcs / tpcs,
		        point->tpcs);
}

/* Numbers of ms, in at most five round steps. */
static void draw_scale(FILE *file, double most_ms)
{
	double step = 1e-6;

	for (int i = 0; most_ms / step > 5; i++)
		step *= i % 3 == 1 ? 2.5 : 2; /* 1, 2, 5, 10 */
	for (int i = 0; i * step <= most_ms; i++)
		fprintf(file, "<text x=\"-8\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
		        4 - HEIGHT * i * step / most_ms, i * step);
}

static void draw_curve(const struct study *study, FILE *file)
{
	const struct curve *curve = &study->curve, *beside = &study->beside;
	struct curve_fit fit = curve_fit(curve);
	struct curve fitted = {.count = fit.is_known ? curve->count : 0};
	unsigned int most_tpcs = curve->points[curve->count - 1].tpcs;
	double most = max_double(curve->points[0].job_ns, beside->points[0].job_ns);

	for (unsigned int i = 0; i < fitted.count; i++)
		fitted.points[i] = (struct curve_point){curve->points[i].tpcs,
		                                        .job_ns = fit.a_ns / curve->points[i].tpcs + fit.b_ns};
	fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"400\" viewBox=\"-60 -340 640 "
	              "400\" font-family=\"sans-serif\" font-size=\"13\" text-anchor=\"middle\">\n<rect x=\"-60\" "
	              "y=\"-340\" width=\"640\" height=\"400\" fill=\"white\"/>\n<path d=\"M0 %.0fV0H%.0f\" "
	              "fill=\"none\" stroke=\"black\"/>\n<text x=\"260\" y=\"45\">TPCs</text>\n<text x=\"260\" "
	              "y=\"-295\">ms for a job (black); gray: the fit%s</text>\n",
	        -HEIGHT, WIDTH, beside->count > 0 ? "; red: beside the neighbour" : "");
	draw_scale(file, most / 1e6);
	draw_points(file, &fitted, "silver", most_tpcs, most);
	draw_points(file, beside, "firebrick", most_tpcs, most);
	draw_points(file, curve, "black", most_tpcs, most);
	fputs("</svg>\n", file);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static int report(struct study *study, bool json, const char *svg, struct error *error)
{
	bool is_memory = study->neighbour && strcmp(study->neighbour, "memory") == 0;

	study->bound = curve_bound(&study->curve, is_memory ? &study->beside : NULL);
	json_t *document = document_of(study);
	int result = json ? json_write(json_incref(document), false, stdout, error) : 0;

	if (!json)
		print(study, document);
	json_decref(document);
	fflush(stdout);
	if (result < 0 || !svg)
		return result;
	FILE *file = fopen(svg, "we");

	if (file)
		draw_curve(study, file);
	return file && !ferror(file) && fclose(file) == 0 ? 0 : error_set_errno(error, "%.200s", svg);
}

/* An old picture stays until the end, and a new one is made at the end: a failure in between leaves no empty file. */
static int check_picture(const char *path, struct error *error)
{
	struct stat status;
	bool is_new = lstat(path, &status) < 0;
	FILE *file = fopen(path, "ae");

	if (!file || fclose(file) != 0)
		return error_set_errno(error, "%.200s", path);
	if (is_new)
		unlink(path);
	return 0;
}

/* COMMAND has all TPCs at first. Its output must not mix with ours. Afterwards COMMAND goes on, and we wait. */
int action_curve(const struct options *options, struct error *error)
{
	static struct study study; /* large */
	char line[PROGRAM_LINE];
	bool is_new = options->command != NULL, is_given = options->kernels > 0;

	study = (struct study){.neighbour = options->beside, .window_ns = WINDOW_MOST_NS, .is_given = is_given,
	                       .rule = {.kernels = options->kernels, .same = is_given},
	                       .space = {.given = &options->gpus, .mps = options->mps.mode}};
	if (options->svg && check_picture(options->svg, error) < 0)
		return -1;
	snprintf(line, sizeof line, "nvtaskset --mps %s -G %.60s all", program_mps(options->mps.mode),
	         options->gpus.count > 0 ? options->gpus.texts[0] : "0");
	int result = is_new ? 0 : tables_parse_pid(&study.pid, options->pid, error);

	if (result == 0)
		result = programs_restorer_start(error);
	if (result == 0 && is_new)
		result = program_start(&study.pid, line, options->command, true, error);
	double begin = clock_ms();
	bool is_done = result == 0 && prepare_study(&study, is_new, error) == 0 && measure(&study, error) == 0;

	study.seconds = (clock_ms() - begin) / 1000;
	progress_end();
	is_done = programs_restorer_end(RESTORER_GIVES_BACK, error) == 0 && is_done;
	result = is_done ? report(&study, options->json, options->svg, error) : -1;
	monitor_end(study.monitor);
	program_end(is_new ? study.pid : 0, result < 0 ? SIGTERM : 0);
	return result;
}
