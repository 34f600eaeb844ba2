#include "cli/actions.h"

#include "bars.h"
#include "base/clock.h"
#include "cli/tables.h"
#include "terminal/progress.h"
#include "tracks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/param.h>
#include <unistd.h>

#define FIND_MS 1000 /* between two looks for new programs */

struct trace {
	const struct options *options;
	const char *name; /* of the output */
	int file;         /* the output */
	struct topology_list gpus;
	struct activities activities;
	sigset_t ending, unblocked; /* the signals that end a recording; the mask of signals before */
	struct tracks tracks;
	struct bars bars;
};

static int take_pids(struct tracks *tracks, char *const *arguments, struct error *error)
{
	int result = 0;

	while (arguments[tracks->pid_count])
		tracks->pid_count++;
	tracks->pids = calloc(tracks->pid_count + 1, sizeof *tracks->pids);
	for (size_t i = 0; i < tracks->pid_count && tracks->pids && result == 0; i++)
		result = tables_parse_pid(&tracks->pids[i], arguments[i], error);
	return tracks->pids ? result : error_set(error, "no memory");
}

/* Without topologies the bus id names a GPU; lines need the number of TPCs. */
static int take_gpus(struct trace *trace, struct error *error)
{
	const struct gpus_given *given = &trace->options->gpus;
	struct gpu_choices *chosen = &trace->tracks.chosen;
	int result = topology_load(&trace->gpus, error);

	if (given->count > 0 || trace->options->terminal) {
		result = result < 0 ? -1 : gpus_choose(chosen, &trace->gpus, given, error);
	} else if (result < 0) {
		trace->gpus.count = 0;
		fprintf(stderr, "nvtaskset: %s; GPUs are named by their programs only\n", error->reason);
		result = 0;
	}
	return result;
}

/* --- the output --------------------------------------------------------------------------------------------------- */

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};

#define SLOW_READER_MS 2000

/* Signals are blocked; but where a pipe takes nothing for so long, a signal that ends a recording ends the command. */
static int wait_for_room(const struct trace *trace)
{
	struct pollfd output = {.fd = trace->file, .events = POLLOUT};

	return poll(&output, 1, SLOW_READER_MS) > 0 ? 1 : ppoll(&output, 1, NULL, &trace->unblocked);
}

/* A pipe with any room takes PIPE_BUF bytes. */
static ssize_t write_out(void *cookie, const char *text, size_t size)
{
	const struct trace *trace = cookie;
	ssize_t written = 1;
	size_t done = 0;

	while (done < size && written > 0) {
		written = wait_for_room(trace) < 0
		                  ? -1 : write(trace->file, text + done, MIN(size - done, PIPE_BUF));
		done += written > 0 ? (size_t)written : 0;
	}
	return (ssize_t)done;
}

static int close_out(void *cookie)
{
	return close(((const struct trace *)cookie)->file);
}

/* Waits for a pipe's reader, or for a signal, also if a shell ignores the signal for its background. Afterwards
 * pause_until takes the signals. */
static int open_output(struct trace *trace, struct error *error)
{
	const char *path = trace->options->output;

	trace->name = path ? path : "standard output";
	sigemptyset(&trace->ending);
	for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) {
		sigaddset(&trace->ending, ending[i]);
		signal(ending[i], SIG_DFL);
	}
	/* Beyond a limit of the file's size, a write is to fail, and not to end the command. */
	signal(SIGXFSZ, SIG_IGN);
	trace->file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
	                   : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	sigprocmask(SIG_BLOCK, &trace->ending, &trace->unblocked);
	if (trace->file >= 0)
		trace->tracks.file = fopencookie(
			trace, "w", (cookie_io_functions_t){.write = write_out, .close = close_out});
	return trace->tracks.file ? 0 : error_set_errno(error, "%.200s", trace->name);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static int draw(struct trace *trace, struct error *error)
{
	if (activities_look(&trace->activities, &trace->gpus, error) < 0)
		return -1;
	bars_draw(&trace->bars, &trace->activities, trace->tracks.file);
	return fflush(trace->tracks.file) == 0 ? 0 : error_set_errno(error, "%.200s", trace->name);
}

static const char *totals_of(const struct tracks *tracks)
{
	static char text[96];

	snprintf(text, sizeof text, "%" PRIu64 " events, %" PRIu64 " kernels dropped, %.1f MB", tracks->events,
	         tracks->dropped, (double)tracks->bytes / 1e6);
	return text;
}

static int record(struct trace *trace, struct error *error)
{
	struct tracks *tracks = &trace->tracks;
	uint64_t begin = process_clock_ns();
	int result = 0;

	if (clock_ms() - trace->activities.at_ms < FIND_MS) {
		activities_keep_up(&trace->activities);
	} else {
		result = activities_look(&trace->activities, &trace->gpus, error);
		tracks_follow(tracks, &trace->activities);
	}
	tracks_write_loads(tracks, begin);
	progress_say("trace: %s", totals_of(tracks));
	return result == 0 && fflush(tracks->file) != 0 ? error_set_errno(error, "%.200s", trace->name) : result;
}

/* Until the time. False if a signal ended the wait. */
static bool pause_until(const struct trace *trace, double due_ms)
{
	double left = due_ms - clock_ms();
	struct timespec time = {0};

	if (left > 0)
		time = (struct timespec){.tv_sec = (time_t)(left / 1000), .tv_nsec = (long)(left * 1e6) % 1000000000};
	return TEMP_FAILURE_RETRY(sigtimedwait(&trace->ending, NULL, &time)) < 0;
}

static bool is_there(const struct trace *trace)
{
	bool is = trace->tracks.pid_count == 0;

	for (size_t i = 0; i < trace->tracks.pid_count && !is; i++)
		is = processes_find(&trace->activities.processes, trace->tracks.pids[i]) != NULL;
	return is;
}

/* Steps are at multiples of `every_ms`: programs with pauses, such as demo/where.c, are drawn evenly. */
static int repeat(struct trace *trace, int (*step)(struct trace *trace, struct error *error), double every_ms,
                  struct error *error)
{
	double seconds = trace->options->trace_seconds, now = clock_ms();
	double end = seconds > 0 ? now + seconds * 1e3 : 1e15;
	int result = 0;

	while (result == 0 && now < end && is_there(trace) && trace->tracks.bytes < TRACKS_BYTES) {
		double due = (double)((uint64_t)(now / every_ms) + 1) * every_ms;

		if (!pause_until(trace, due < end ? due : end))
			end = 0;
		result = step(trace, error);
		now = clock_ms();
	}
	return result;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* Named programs must be there. */
static int begin(struct trace *trace, struct error *error)
{
	int result = activities_look(&trace->activities, &trace->gpus, error);

	for (size_t i = 0; i < trace->tracks.pid_count && result == 0; i++)
		result = activities_check(&trace->activities, trace->tracks.pids[i], error);
	return result;
}

static int end_file(struct trace *trace, struct error *error)
{
	struct tracks *tracks = &trace->tracks;

	tracks_end(tracks);
	if (fflush(tracks->file) != 0 || fclose(tracks->file) != 0)
		return error_set_errno(error, "%.200s", trace->name);
	fprintf(stderr, "nvtaskset: %s: %s%s\n", trace->name, totals_of(tracks),
	        tracks->bytes < TRACKS_BYTES ? "" : "; ended here, since viewers do not open more");
	return 0;
}

static int record_all(struct trace *trace, struct error *error)
{
	struct tracks *tracks = &trace->tracks;

	if (!trace->options->output && isatty(STDOUT_FILENO))
		return error_set(error, "standard output is a terminal: add -o FILE, or --terminal");
	tracks->begin_ns = process_clock_ns();
	trace->activities.measures_times = true;
	trace->activities.watched.listener = (struct listener){tracks, tracks_want, tracks_hear};
	if (begin(trace, error) < 0 || open_output(trace, error) < 0)
		return -1;
	tracks_follow(tracks, &trace->activities);
	int result = repeat(trace, record, MONITOR_TAKE_MS, error);

	progress_end();
	return result == 0 ? end_file(trace, error) : -1;
}

static int draw_all(struct trace *trace, struct error *error)
{
	trace->bars.tracks = &trace->tracks;
	if (begin(trace, error) < 0 || open_output(trace, error) < 0)
		return -1;
	fprintf(trace->tracks.file, "A line is %.1f s: a place for every two TPCs, and kernels a second.\n",
	        BARS_MS / 1e3);
	return repeat(trace, draw, BARS_MS, error);
}

int action_trace(const struct options *options, struct error *error)
{
	static struct trace trace; /* large */

	trace.options = options;
	trace.tracks.gpus = &trace.gpus;
	int result = take_pids(&trace.tracks, options->command, error);

	if (result == 0)
		result = take_gpus(&trace, error);
	if (result == 0)
		result = options->terminal ? draw_all(&trace, error) : record_all(&trace, error);
	activities_free(&trace.activities);
	free(trace.tracks.pids);
	return result;
}
