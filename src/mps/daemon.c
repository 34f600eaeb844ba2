#include "daemon.h"

#include "base/proc.h"
#include "look.h"
#include "question.h"
#include "start.h"

#include <stdlib.h>
#include <string.h>

#define ENVIRONMENT_MAX 131072

/* The file with the daemon's pid. */
#define PID_FILE "/nvidia-cuda-mps-control.pid"
#define DAEMON_NAME "nvidia-cuda-mps" /* cut to the length of a process's name */

/* --- who started it ---------------------------------------------------------------------------------------------- */

/* The daemon's process; 0 if it cannot be known: it may be in another PID namespace, or the file may be old. */
static pid_t find_daemon(const struct mps_status *status)
{
	char text[64];

	proc_read_text(text, sizeof text, "%s" PID_FILE, status->pipe_directory);
	long pid = strtol(text, NULL, 10);

	if (pid > 0)
		proc_read_text(text, sizeof text, "/proc/%ld/comm", pid);
	if (pid <= 0 || strncmp(text, DAEMON_NAME, strlen(DAEMON_NAME)) != 0)
		pid = 0;
	return (pid_t)pid;
}

static enum mps_starter find_starter(pid_t daemon)
{
	static char content[ENVIRONMENT_MAX];
	enum mps_starter starter = MPS_STARTER_UNKNOWN;
	ssize_t length = daemon > 0 ? proc_read(content, sizeof content, "/proc/%d/environ", (int)daemon) : 0;

	if (length > 0)
		starter = memmem(content, (size_t)length, START_SIGN, sizeof START_SIGN) ? MPS_STARTED_BY_US : MPS_STARTED_BY_OTHERS;
	return starter;
}

static void identify(struct mps_status *status)
{
	status->daemon = find_daemon(status);
	status->starter = find_starter(status->daemon);
	if (status->daemon > 0)
		proc_owner(status->daemon, &status->owner);
}

static int find(const struct mps_request *request, struct mps_status *status, char control[PATH_MAX], struct error *error)
{
	if (mps_look(request, status, control, error) < 0)
		return -1;
	if (!status->running)
		return error_set(error, "MPS: no control daemon runs in %.100s", status->pipe_directory);
	identify(status);
	return 0;
}

int mps_inspect(const struct mps_request *request, struct mps_status *status, struct error *error)
{
	char control[PATH_MAX];

	return find(request, status, control, error);
}

/* --- stopping it -------------------------------------------------------------------------------------------------- */

static int may_stop(const struct mps_status *status, bool force, struct error *error)
{
	if (!force && status->starter == MPS_STARTED_BY_OTHERS)
		return error_set(error, "MPS: nvtaskset did not start the control daemon in %.100s (pid %d); --force stops it",
		                 status->pipe_directory, (int)status->daemon);
	if (!force && status->starter == MPS_STARTER_UNKNOWN)
		return error_set(error, "MPS: who started the control daemon in %.100s cannot be seen; --force stops it",
		                 status->pipe_directory);
	if (!force && status->all_clients > 0)
		return error_set(error, "MPS: %u programs use it; end them first, or stop it and them with --force",
		                 status->all_clients);
	return 0;
}

/* With a time, the daemon then ends its clients, whose next call fails. Without one, it would wait until all have
 * ended. */
static int quit(const char *control, const struct mps_status *status, struct error *error)
{
	static char answer[MPS_CONTROL_ANSWER];
	const char *commands = status->all_clients > 0 ? "quit -t 1\n" : "quit\n";
	int result = mps_ask(control, commands, answer);

	if (mps_explain(result, control, status, error) < 0)
		return -1;
	/* A refusal has exit status 0. */
	if (strstr(answer, "Not enough privilege"))
		return error_set(error, "MPS: the control daemon in %.100s belongs to another user: ask that user, or root",
		                 status->pipe_directory);
	if (result != 0)
		return error_set(error, "MPS: the control daemon in %.100s does not stop: %.120s", status->pipe_directory,
		                 mps_first_line(answer));
	return 0;
}

int mps_stop(bool force, struct mps_status *status, struct error *error)
{
	const struct mps_request request = {.mode = MPS_ON};
	char control[PATH_MAX];

	if (find(&request, status, control, error) < 0)
		return -1;
	return may_stop(status, force, error) < 0 ? -1 : quit(control, status, error);
}
