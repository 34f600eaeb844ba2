#include "look.h"

#include "census.h"
#include "question.h"
#include "room.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PIPE_DIRECTORY_DEFAULT "/tmp/nvidia-mps"

/* The daemon's socket, in the directory of its pipes. */
#define SOCKET "/control"

/* --- where the daemon would be ---------------------------------------------------------------------------------- */

static const char *pipe_directory(void)
{
	const char *directory = getenv(MPS_DIRECTORY_ENVIRONMENT);

	return directory && *directory ? directory : PIPE_DIRECTORY_DEFAULT;
}

/* The daemon itself does not report most of these errors, and a client then just runs without MPS. */
static int check_directory(const char *directory, struct error *error)
{
	struct stat status;
	int result = 0;

	if (strlen(directory) + strlen(SOCKET) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
		result = error_set(error, "MPS: %.100s…: too long for the path of a socket; set " MPS_DIRECTORY_ENVIRONMENT
		                          " to a shorter one",
		                   directory);
	else if (stat(directory, &status) < 0)
		result = errno == ENOENT ? 0 : error_set_errno(error, "MPS: %.100s", directory);
	else if (!S_ISDIR(status.st_mode))
		result = error_set(error, "MPS: " MPS_DIRECTORY_ENVIRONMENT " is %.100s, which keeps programs away from MPS; unset it",
		                   directory);
	else if (access(directory, X_OK) < 0)
		result = error_set(error, "MPS: %.100s, where the control daemon is found, belongs to user %u and is closed "
		                          "to you; set " MPS_DIRECTORY_ENVIRONMENT " to a directory of yours",
		                   directory, (unsigned int)status.st_uid);
	return result;
}

/* --- asking early ---------------------------------------------------------------------------------------------- */

static struct {
	bool pending;
	struct mps_control_question question;
} early;

/* Takes the answer to the early question, or asks now. */
static int ask_who_is_there(const char *control, char answer[MPS_CONTROL_ANSWER])
{
	bool asked = early.pending;

	early.pending = false;
	return asked ? mps_ask_again(mps_control_end(&early.question, mps_patience_ms, answer), control, CENSUS_QUESTION, answer)
	             : mps_ask(control, CENSUS_QUESTION, answer);
}

void mps_forget(void)
{
	static char answer[MPS_CONTROL_ANSWER];

	if (early.pending)
		mps_control_end(&early.question, mps_patience_ms, answer);
	early.pending = false;
}

void mps_ask_early(const struct mps_request *request)
{
	char control[PATH_MAX];

	early.pending = request->mode != MPS_OFF && check_directory(pipe_directory(), NULL) == 0 &&
	                mps_control_find(control, NULL) == 0;
	if (early.pending)
		mps_control_begin(&early.question, control, CENSUS_QUESTION);
}

/* --- looking ------------------------------------------------------------------------------------------------------- */

int mps_look_again(const char *control, const struct mps_request *request, struct mps_status *status,
                   struct error *error)
{
	static char answer[MPS_CONTROL_ANSWER];
	int result = ask_who_is_there(control, answer);

	status->server = 0;
	status->clients = 0;
	status->all_clients = 0;
	status->running = result == 0;
	if (mps_explain(result, control, status, error) < 0)
		return -1;
	if (!status->running && !strstr(answer, "Cannot find MPS control daemon"))
		return error_set(error, "MPS: the control daemon in %.100s cannot be asked: %.120s",
		                 status->pipe_directory, mps_first_line(answer));
	if (status->running)
		census_read(status, request, answer);
	return 0;
}

int mps_look(const struct mps_request *request, struct mps_status *status, char control[PATH_MAX], struct error *error)
{
	memset(status, 0, sizeof *status);
	snprintf(status->pipe_directory, sizeof status->pipe_directory, "%s", pipe_directory());
	status->connections = mps_connections(request);
	status->capacity = mps_capacity(status->connections);
	if (request->mode == MPS_OFF)
		return 0;
	return check_directory(status->pipe_directory, error) < 0 || mps_control_find(control, error) < 0
	               ? -1
	               : mps_look_again(control, request, status, error);
}
