/* curve: moves a running program through sizes, and measures its jobs. */
#include "curve.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "cli/actions.h"
#include "cli/tables.h"
#include "keeper.h"
#include "monitor/monitor.h"
#include "room.h"
#include "sampler.h"
#include "select/targets.h"
#include "show/json.h"
#include "start.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_NS 300e6    /* a size is measured for so long at least, */
#define WINDOW_JOBS 12     /* and until there are so many jobs, */
#define WINDOW_MOST_NS 1e9 /* but no longer than this, */
#define JOBS_LEAST 4       /* or than so many jobs take */
#define TIME_NS 8e9        /* for all; the sizes that remain are left out then */
#define BUSY_ALL 0.98      /* without idle times, jobs are told apart by their kernels */
#define NEIGHBOUR_PART 4   /* of the TPCs */

struct study {
	const struct options *options;
	FILE *picture; /* NULL: none is wanted */
	struct room room;
	struct keeper keeper;
	struct sampled program;
	struct sampler sampler;
	struct monitor *monitor;
	struct measured_curve measured;
	double last_ns; /* a job at the last size */
	struct {
		double busy_ns, launch_ns;
		uint64_t count;
		bool is_known;
	} kernels; /* of the window, as the monitor saw it */
};

/* --- one size ------------------------------------------------------------------------------------------------------------------ */

static void take_times(struct study *study)
{
	struct monitor_times times;

	if (!study->monitor || monitor_take(study->monitor, &times, NULL) < 0) {
		study->kernels.is_known = false;
		return;
	}
	for (unsigned int i = 0; i < times.gpu_count; i++) {
		const struct monitor_gpu *gpu = &times.gpus[i];

		if (pci_address_equal(gpu->pci, study->program.pci)) {
			study->kernels.busy_ns += (double)gpu->busy_ns;
			study->kernels.count += gpu->kernels;
			study->kernels.is_known = study->kernels.is_known && gpu->is_time_known && gpu->lost == 0;
		}
	}
	for (unsigned int i = 0; i < times.function_count; i++)
		study->kernels.launch_ns = max_double(study->kernels.launch_ns, (double)times.functions[i].durations.max_ns);
}

/* Whether it was looked at for long enough, by what is known of its jobs. */
static bool is_enough(struct study *study, double so_far_ns)
{
	bool has_jobs = atomic_load(&study->sampler.bursts) > WINDOW_JOBS;
	uint64_t kernels = study->measured.rule.kernels;

	if (kernels > 0)
		has_jobs = study->program.kernels > kernels * WINDOW_JOBS;
	return so_far_ns >= (has_jobs ? WINDOW_NS : max_double(WINDOW_MOST_NS, JOBS_LEAST * 1.6 * study->last_ns));
}

static int watch_window(struct study *study, struct error *error)
{
	double begin = (double)process_clock_ns();

	take_times(study);
	memset(&study->kernels, 0, sizeof study->kernels);
	study->kernels.is_known = study->monitor != NULL;
	if (sampler_start(&study->sampler, error) < 0)
		return -1;
	do {
		clock_pause_us(MONITOR_TAKE_MS * 1000);
		take_times(study);
	} while (!is_enough(study, (double)process_clock_ns() - begin));
	sampler_stop(&study->sampler);
	return editor_has_ended(&study->program.editor) ? error_set(error, "pid %d: has ended", (int)study->measured.pid) : 0;
}

/* The jobs between idle times, if they are like those of the largest size. */
static void by_idle_times(struct study *study, struct curve_point *point)
{
	struct sampled *program = &study->program;
	struct jobs_rule *first = &study->measured.rule, rule = jobs_rule(program->bursts, program->count);

	if (study->measured.curve.count == 0)
		*first = rule;
	else
		rule = jobs_rule_like(first, program->bursts, program->count);
	size_t jobs = jobs_split(program->bursts, program->count, &rule);

	if (first->same >= JOBS_SAME)
		jobs = jobs_keep(program->bursts, jobs, first->kernels);
	struct jobs_times times = jobs_times(program->bursts, jobs, 0);

	point->jobs = (unsigned int)times.count;
	point->job_ns = times.median_ns;
	point->worst_ns = times.longest_ns;
}

/* False if no job could be told apart. */
static bool evaluate(struct study *study, struct curve_point *point)
{
	const struct sampled *program = &study->program;
	const struct jobs_rule *rule = &study->measured.rule;
	double span = (double)(study->sampler.end_ns - study->sampler.begin_ns);

	if (!study->measured.is_given)
		by_idle_times(study, point);
	bool is_uniform = rule->kernels > 0 && rule->same >= JOBS_SAME;
	double jobs = is_uniform ? (double)program->kernels / (double)rule->kernels : point->jobs;

	/* A program that is busy all the time: so many kernels are a job. */
	if (point->jobs < 2 && is_uniform && (study->measured.is_given || (double)program->busy_ns > BUSY_ALL * span)) {
		point->jobs = (unsigned int)jobs;
		point->job_ns = point->worst_ns = span / jobs;
	}
	point->jobs_per_s = jobs / span * 1e9;
	if (study->kernels.is_known && study->kernels.count > 0 && jobs > 0) {
		point->kernels_ns = study->kernels.busy_ns / (double)study->kernels.count * (double)program->kernels / jobs;
		point->launch_ns = study->kernels.launch_ns;
	}
	study->last_ns = point->jobs >= 2 ? point->job_ns : 0;
	return study->last_ns > 0;
}

static int measure_size(struct study *study, unsigned int tpcs, struct curve *curve, struct error *error)
{
	struct segment_revision wanted;
	struct curve_point point = {.tpcs = tpcs};

	if (room_choose(&study->room, tpcs, &wanted, error) < 0 ||
	    keeper_change(&study->keeper, &study->program.editor, &study->room.whole, &wanted, error) < 0 || watch_window(study, error) < 0)
		return -1;
	if (evaluate(study, &point)) {
		memmove(curve->points + 1, curve->points, curve->count++ * sizeof point);
		curve->points[0] = point;
	} else if (curve->count == 0) {
		return error_set(error, "pid %d: no jobs can be told apart: %s; --kernels N says how many kernels a job has", (int)study->measured.pid,
		                 study->program.count > 0 ? "its idle times are not between equal numbers of kernels"
		                                          : "it is never idle, or launches nothing");
	} else {
		study->measured.why_ended = "with fewer TPCs, too few jobs came to an end";
	}
	return 0;
}

static int measure_sizes(struct study *study, unsigned int largest, struct curve *curve, struct error *error)
{
	unsigned int sizes[CURVE_SIZES], count = curve_sizes(sizes, largest);
	double begin = (double)process_clock_ns();
	int result = 0;

	for (unsigned int i = 0; i < count && result == 0 && !study->measured.why_ended; i++) {
		if (i > 2 && (double)process_clock_ns() - begin > TIME_NS)
			study->measured.why_ended = "smaller sizes would have taken too long";
		else
			result = measure_size(study, sizes[i], curve, error);
	}
	return result;
}

/* --- all ------------------------------------------------------------------------------------------------------------------------ */

static int measure(struct study *study, struct error *error)
{
	struct measured_curve *measured = &study->measured;
	unsigned int largest = room_count(&study->room, error);
	pid_t neighbour = 0;
	char tpcs[TPCSET_TEXT];

	if (largest > 0 && measured->neighbour != BESIDE_NOTHING) {
		measured->neighbour_tpcs = largest / NEIGHBOUR_PART;
		largest -= measured->neighbour_tpcs;
		if (measured->neighbour_tpcs == 0)
			return error_set(error, "--beside: too few TPCs are free for a neighbour");
		if (room_choose(&study->room, measured->neighbour_tpcs, &study->room.taken, error) < 0)
			return -1;
	}
	int result = largest == 0 ? -1 : measure_sizes(study, largest, &measured->curve, error);

	if (result == 0 && measured->neighbour_tpcs > 0) {
		measured->why_ended = NULL;
		result = neighbour_start(&neighbour, study->options, study->room.gpu,
		                         tpcset_format_list(&study->room.taken.partitions[0].set, tpcs), error);
		if (result == 0)
			result = measure_sizes(study, largest, &measured->beside, error);
		start_kill(neighbour, SIGKILL);
	}
	return result;
}

/* Until its jobs look alike: at first, programs prepare their work. */
static int await_jobs(struct study *study, struct error *error)
{
	double end = clock_ms() + START_SECONDS * 1000;
	struct jobs_rule rule;
	int result;

	do {
		result = watch_window(study, error);
		rule = jobs_rule(study->program.bursts, study->program.count);
	} while (result == 0 && (rule.kernels == 0 || rule.same < JOBS_SAME) && !study->measured.is_given && clock_ms() < end);
	return result;
}

static int prepare(struct study *study, bool is_new, struct error *error)
{
	struct editor *editor = &study->program.editor;
	struct segment_revision in_force;
	pid_t pid = study->measured.pid;
	struct error why;

	if (start_await(editor, pid, is_new, error) < 0)
		return -1;
	const char *obstacle = target_obstacle(editor);

	if (obstacle)
		return error_set(error, "pid %d: %s", (int)pid, obstacle);
	if (editor_read(editor, &in_force, error) < 0 || room_open(&study->room, study->options, &in_force, error) < 0 ||
	    pids_add(&study->room.pids, pid, error) < 0 || sampled_open(&study->program, study->room.chosen.choices[0].gpu->pci, error) < 0)
		return -1;
	study->sampler = (struct sampler){.count = 1, .programs = &study->program};
	study->monitor = monitor_begin(pid, &why);
	return is_new ? await_jobs(study, error) : 0;
}

static int report(struct study *study, struct error *error)
{
	const struct options *options = study->options;
	int result = 0;

	if (options->json)
		result = json_write(curve_json(&study->measured), false, stdout, error);
	else
		curve_print(&study->measured);
	fflush(stdout);
	if (study->picture) {
		/* What was there before is kept until now. */
		bool is_written = ftruncate(fileno(study->picture), 0) == 0 || errno == EINVAL;

		curve_draw(&study->measured, study->picture);
		is_written = fflush(study->picture) == 0 && !ferror(study->picture) && is_written;
		if (!is_written && result == 0)
			result = error_set_errno(error, "%.200s", options->svg);
	}
	return result;
}

static int act(struct study *study, bool is_new, struct error *error)
{
	double begin = clock_ms();
	int result = keeper_start(&study->keeper, error);

	if (result == 0)
		result = prepare(study, is_new, error);
	if (result == 0)
		result = measure(study, error);
	if (keeper_end(&study->keeper, true) < 0 && result == 0)
		result = error_set(error, "pid %d: its partition could not be given back", (int)study->measured.pid);
	study->measured.seconds = (clock_ms() - begin) / 1000;
	if (result == 0)
		result = report(study, error);
	monitor_end(study->monitor);
	if (study->program.editor.pid > 0)
		sampled_close(&study->program);
	free(study->room.pids.list);
	return result;
}

/* COMMAND has all TPCs at first. Its output must not be mixed with ours. When all is measured, it goes on, and we wait for it. */
static int start_command(const struct options *options, pid_t *pid, struct error *error)
{
	char *gpu = options->gpu_count > 0 ? (char *)options->gpus[0] : "0";
	char *words[] = {"nvtaskset", "--mps", start_mps(options), "-G", gpu, "all", NULL};

	return start_program(pid, words, options->command, STDERR_FILENO, NULL, error);
}

int action_curve(const struct options *options, struct error *error)
{
	static struct study study; /* large */
	bool is_new = options->command != NULL;
	pid_t pid = 0;

	study = (struct study){.options = options, .measured = {.gpu = study.room.gpu, .neighbour = options->beside, .is_given = options->kernels > 0}};
	if (options->kernels > 0)
		study.measured.rule = (struct jobs_rule){.kernels = options->kernels, .same = 1};
	if (options->svg && !(study.picture = fopen(options->svg, "ae")))
		return error_set_errno(error, "%.200s", options->svg);
	int result = is_new ? start_command(options, &pid, error) : parse_pid(&pid, options->pid, error);

	study.measured.pid = pid;
	if (result == 0)
		result = act(&study, is_new, error);
	if (is_new)
		start_kill(pid, result < 0 ? SIGTERM : 0);
	return result;
}
