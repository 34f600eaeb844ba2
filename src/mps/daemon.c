#include "daemon.h"

#include "base/clock.h"
#include "base/proc.h"
#include "control.h"
#include "processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENVIRONMENT_MAX 131072

/* --- starting ----------------------------------------------------------------------------------------------------- */

#define LOG_DIRECTORY "CUDA_MPS_LOG_DIRECTORY"

/* Until the new daemon answers, a program would run without MPS; also if another process starts the daemon. */
static int await_daemon(const char *control, const struct mps_request *request, struct mps_status *status,
                        struct error *error)
{
	double end = clock_ms() + mps_patience_ms;
	int result = mps_look_again(control, request, status, error);

	while (result == 0 && !status->running && clock_ms() < end) {
		clock_pause_us(MPS_RETRY_US);
		result = mps_look_again(control, request, status, error);
	}
	if (result == 0 && !status->running)
		result = error_set(error, "MPS: the control daemon in %.100s was started and cannot be found: see its "
		                          "log", status->pipe_directory);
	return result;
}

static bool is_absolute(const char *path)
{
	return !path || !*path || *path == '/';
}

static int call_daemon(const char *control, const struct mps_status *status, char answer[MPS_CONTROL_ANSWER])
{
	char log_directory[sizeof LOG_DIRECTORY + sizeof status->pipe_directory + 32];
	bool needs_log = geteuid() != 0 && !getenv(LOG_DIRECTORY);
	const char *const added[] = {START_SIGN, needs_log ? log_directory : NULL, NULL};
	bool from_root = is_absolute(control) && is_absolute(status->pipe_directory) &&
	                 is_absolute(getenv(LOG_DIRECTORY));

	/* The default log directory, under /var/log, is root's. The directory of the pipes does not serve, since the
	 * log directory becomes the user's alone. */
	snprintf(log_directory, sizeof log_directory, LOG_DIRECTORY "=%s-log-%u", status->pipe_directory,
	         (unsigned int)geteuid());
	return mps_control_start(control, added, from_root, answer);
}

int mps_start(const char *control, const struct mps_request *request, struct mps_status *status, struct error *error)
{
	static char answer[MPS_CONTROL_ANSWER];
	int result = call_daemon(control, status, answer);

	if (result == MPS_CONTROL_IMPOSSIBLE)
		return mps_explain(result, control, status, error);
	if (result == MPS_CONTROL_OVERDUE)
		return error_set(error, "MPS: the control daemon does not start: not done after %d s",
		                 mps_patience_ms / 1000);
	if (result != 0 && !strstr(answer, "already running")) /* by another process */
		return error_set(error, "MPS: the control daemon does not start: %.160s",
		                 mps_first_line(answer));
	status->started = result == 0;
	return await_daemon(control, request, status, error);
}

/* --- the starter -------------------------------------------------------------------------------------------------- */

static enum mps_starter find_starter(pid_t daemon)
{
	static char content[ENVIRONMENT_MAX];
	enum mps_starter starter = MPS_STARTER_UNKNOWN;
	ssize_t length =
		daemon > 0 ? proc_read(content, sizeof content, "/proc/%d/environ", (int)proc_thread(daemon)) : 0;

	if (length > 0)
		starter = memmem(content, (size_t)length, START_SIGN, sizeof START_SIGN) ? MPS_STARTED_BY_US
		                                                                         : MPS_STARTED_BY_OTHERS;
	return starter;
}

static int find_or_report(const struct mps_request *request, struct mps_status *status, char control[PATH_MAX],
                          struct error *error)
{
	if (mps_look(request, status, control, error) < 0)
		return -1;
	if (!status->running)
		return error_set(error, "MPS: no control daemon runs in %.100s", status->pipe_directory);
	status->daemon = mps_find_daemon(status->pipe_directory);
	status->starter = find_starter(status->daemon);
	if (status->daemon > 0)
		proc_owner(status->daemon, &status->owner);
	return 0;
}

int mps_inspect(const struct mps_request *request, struct mps_status *status, struct error *error)
{
	char control[PATH_MAX];

	return find_or_report(request, status, control, error);
}

/* --- stopping ----------------------------------------------------------------------------------------------------- */

static int may_stop(const struct mps_status *status, bool force, struct error *error)
{
	if (!force && status->starter == MPS_STARTED_BY_OTHERS)
		return error_set(error, "MPS: nvtaskset did not start the control daemon in %.100s (pid %d); --force "
		                        "stops it", status->pipe_directory, (int)status->daemon);
	if (!force && status->starter == MPS_STARTER_UNKNOWN)
		return error_set(error, "MPS: who started the control daemon in %.100s cannot be seen; --force stops "
		                        "it", status->pipe_directory);
	if (!force && status->all_clients > 0)
		return error_set(error, "MPS: %u programs use it; end them first, or stop it and them with --force",
		                 status->all_clients);
	return 0;
}

/* With a time, the daemon then ends the clients: their next call fails. Without a time, the daemon would wait for the
 * end of all clients. */
static int quit(const char *control, const struct mps_status *status, struct error *error)
{
	static char answer[MPS_CONTROL_ANSWER];
	const char *commands = status->all_clients > 0 ? "quit -t 1\n" : "quit\n";
	static char *const words[] = {MPS_CONTROL, "-q", NULL};
	int result =
		status->has_namespaces ? mps_ask_words(control, words, answer) : mps_ask(control, commands, answer);

	if (mps_explain(result, control, status, error) < 0)
		return -1;
	if (strstr(answer, "Not enough privilege")) /* with exit status 0 */
		return error_set(error, "MPS: the control daemon in %.100s belongs to another user: ask that user, or "
		                        "root", status->pipe_directory);
	if (result != 0)
		return error_set(error, "MPS: the control daemon in %.100s does not stop: %.120s",
		                 status->pipe_directory, mps_first_line(answer));
	return 0;
}

int mps_stop(bool force, struct mps_status *status, struct error *error)
{
	const struct mps_request request = {.mode = MPS_ON};
	char control[PATH_MAX];

	if (find_or_report(&request, status, control, error) < 0)
		return -1;
	return may_stop(status, force, error) < 0 ? -1 : quit(control, status, error);
}
