#include "start.h"

#include "base/clock.h"
#include "look.h"
#include "question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_DIRECTORY "CUDA_MPS_LOG_DIRECTORY"

/* Until a new daemon answers, a program would run without MPS; also if somebody else is starting the daemon. */
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
		result = error_set(error, "MPS: the control daemon in %.100s was started and cannot be found: see its log",
		                   status->pipe_directory);
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

	/* The default log directory, under /var/log, is root's. We do not use the pipes' directory, since the log
	 * directory becomes the user's alone. */
	snprintf(log_directory, sizeof log_directory, LOG_DIRECTORY "=%s-log-%u", status->pipe_directory,
	         (unsigned int)geteuid());
	return mps_control_start(control, added, from_root, mps_patience_ms, answer);
}

int mps_start(const char *control, const struct mps_request *request, struct mps_status *status, struct error *error)
{
	static char answer[MPS_CONTROL_ANSWER];
	int result = call_daemon(control, status, answer);

	if (result == MPS_CONTROL_IMPOSSIBLE)
		return error_set_errno(error, "MPS: %.200s cannot be run", control);
	if (result == MPS_CONTROL_OVERDUE)
		return error_set(error, "MPS: the control daemon does not start: not done after %d s",
		                 mps_patience_ms / 1000);
	/* Somebody else may have started one first. */
	if (result != 0 && !strstr(answer, "already running"))
		return error_set(error, "MPS: the control daemon does not start: %.160s",
		                 mps_first_line(answer));
	status->started = result == 0;
	return await_daemon(control, request, status, error);
}
