#include "daemon.h"

#include "base/clock.h"
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PIPE_DIRECTORY "CUDA_MPS_PIPE_DIRECTORY"
#define LOG_DIRECTORY "CUDA_MPS_LOG_DIRECTORY"
#define CONNECTIONS "CUDA_DEVICE_MAX_CONNECTIONS"
#define PIPE_DIRECTORY_DEFAULT "/tmp/nvidia-mps"

/* The daemon's socket, in the directory of its pipes. */
#define SOCKET "/control"

/* A healthy daemon answers in 2 ms and starts in 40 ms. The unit tests, on a busy machine, decide otherwise. */
#ifndef ANSWER_MS
#define ANSWER_MS 5000
#endif
#define RETRY_US 10000

/* The daemon that we start says so in its environment: no file of ours is left behind. */
#define STARTED "NVTASKSET_MPS=started"
#define ENVIRONMENT_MAX 131072

/* Where the daemon says which process it is. */
#define PID_FILE "/nvidia-cuda-mps-control.pid"
#define DAEMON_NAME "nvidia-cuda-mps" /* as much of it as a process's name holds */

/* Its servers, and their clients. */
#define WHO_IS_THERE "get_server_list\nps\n"

#define CHANNELS 127
#define CLIENTS_MAX 48

/* More GPUs than a machine has; as many letters as a UUID has. */
#define DEVICES_MAX 64
#define UUID_LENGTH 40

unsigned int mps_capacity(unsigned int connections)
{
	unsigned int capacity = CHANNELS / connections;

	return capacity < CLIENTS_MAX ? capacity : CLIENTS_MAX;
}

/* The first line of an answer, for a reason. */
static const char *first_line(char *answer)
{
	answer[strcspn(answer, "\r\n")] = '\0';
	return answer[0] ? answer : "it said nothing";
}

/* --- the state of MPS ------------------------------------------------------------------------------------------ */

/* The clients of one server, by GPU: each GPU has channels of its own. */
struct census {
	unsigned int devices;
	struct {
		char uuid[UUID_LENGTH + 1];
		unsigned int clients;
	} on[DEVICES_MAX];
};

static bool is_mine(long server)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof path, "/proc/%ld", server);
	/* A server that cannot be looked at (another PID namespace) is taken for ours: it is the only one then. */
	return stat(path, &status) < 0 || status.st_uid == getuid();
}

/* The daemon shortens UUIDs. */
static bool will_use(const struct mps_request *request, const char *uuid)
{
	bool use = request->gpu_count == 0;

	for (unsigned int i = 0; i < request->gpu_count; i++)
		use = use || strncasecmp(request->gpus[i], uuid, strlen(uuid)) == 0;
	return use;
}

/* Counts one more client on a GPU, and says how many that are. */
static unsigned int count_client(struct census *census, const char *uuid)
{
	unsigned int device = 0;

	while (device < census->devices && strcmp(census->on[device].uuid, uuid) != 0)
		device++;
	if (device == DEVICES_MAX)
		return 0;
	if (device == census->devices)
		strcpy(census->on[census->devices++].uuid, uuid);
	return ++census->on[device].clients;
}

/* One line of "get_server_list" (a number) or of "ps" (a table: PID, ID, SERVER, DEVICE, …). */
static void read_line(struct mps_status *status, struct census *census, const struct mps_request *request,
                      const char *line)
{
	long first, server;
	char id[32], uuid[UUID_LENGTH + 1];
	int words = sscanf(line, "%7ld %31s %7ld %40s", &first, id, &server, uuid);

	status->all_clients += words == 4;
	if (words == 1 && is_mine(first)) {
		status->server = (pid_t)first;
	} else if (words == 4 && status->server && server == status->server && will_use(request, uuid)) {
		unsigned int clients = count_client(census, uuid);

		status->clients = clients > status->clients ? clients : status->clients;
	}
}

static void read_answer(struct mps_status *status, const struct mps_request *request, char *answer)
{
	struct census census = {.devices = 0};
	char *rest = NULL;

	for (char *line = strtok_r(answer, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		read_line(status, &census, request, line);
}

/* Why the control program has no answer, as far as that is always a failure. */
static int explain(int result, const char *control, const struct mps_status *status, struct error *error)
{
	if (result == MPS_CONTROL_IMPOSSIBLE)
		return error_set_errno(error, "MPS: %.200s cannot be run", control);
	if (result == MPS_CONTROL_OVERDUE)
		return error_set(error, "MPS: the control daemon in %.100s does not answer: end it with 'echo "
		                        "quit | " MPS_CONTROL "' or kill it, or use --mps off",
		                 status->pipe_directory);
	if (result == MPS_CONTROL_DIED)
		return error_set(error, "MPS: the control daemon in %.100s does not answer: " MPS_CONTROL " died when it was "
		                        "asked; --mps off runs without it",
		                 status->pipe_directory);
	return 0;
}

static int ask_once(const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER])
{
	struct mps_control_question question;

	mps_control_begin(&question, control, commands);
	return mps_control_end(&question, ANSWER_MS, answer);
}

/* The daemon takes one question at a time, and the control program does not wait for its turn (docs/hardware.md):
 * `result` and `answer` are of a first try. */
static int ask_in_turn(int result, const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER])
{
	double end = clock_ms() + ANSWER_MS;

	while (result > 0 && strstr(answer, "Cannot send command") && clock_ms() < end) {
		clock_pause_us(RETRY_US);
		result = ask_once(control, commands, answer);
	}
	return result;
}

/* --- asked early ----------------------------------------------------------------------------------------------- */

static struct {
	bool pending;
	struct mps_control_question question;
} early;

/* The answer to what was asked early; else to what is asked now. */
static int ask_who_is_there(const char *control, char answer[MPS_CONTROL_ANSWER])
{
	int result = early.pending ? mps_control_end(&early.question, ANSWER_MS, answer)
	                           : ask_once(control, WHO_IS_THERE, answer);

	early.pending = false;
	return ask_in_turn(result, control, WHO_IS_THERE, answer);
}

void mps_forget(void)
{
	static char answer[MPS_CONTROL_ANSWER];

	if (early.pending)
		mps_control_end(&early.question, ANSWER_MS, answer);
	early.pending = false;
}

/* Asks the control daemon for its servers and their clients. No daemon is not a failure. */
static int ask(const char *control, const struct mps_request *request, struct mps_status *status,
               struct error *error)
{
	static char answer[MPS_CONTROL_ANSWER];
	int result = ask_who_is_there(control, answer);

	status->server = 0;
	status->clients = 0;
	status->all_clients = 0;
	status->running = result == 0;
	if (explain(result, control, status, error) < 0)
		return -1;
	if (!status->running && !strstr(answer, "Cannot find MPS control daemon"))
		return error_set(error, "MPS: the control daemon in %.100s cannot be asked: %.120s",
		                 status->pipe_directory, first_line(answer));
	if (status->running)
		read_answer(status, request, answer);
	return 0;
}

/* --- starting it ------------------------------------------------------------------------------------------------ */

/* Until a new daemon answers, a program would run without MPS: also one whose daemon somebody else is starting. */
static int await_daemon(const char *control, const struct mps_request *request, struct mps_status *status,
                        struct error *error)
{
	double end = clock_ms() + ANSWER_MS;
	int result = ask(control, request, status, error);

	while (result == 0 && !status->running && clock_ms() < end) {
		clock_pause_us(RETRY_US);
		result = ask(control, request, status, error);
	}
	if (result == 0 && !status->running)
		result = error_set(error, "MPS: the control daemon in %.100s was started and cannot be found: see its log, "
		                          "or use --mps off",
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
	const char *const added[] = {STARTED, needs_log ? log_directory : NULL, NULL};
	bool from_root = is_absolute(control) && is_absolute(status->pipe_directory) &&
	                 is_absolute(getenv(LOG_DIRECTORY));

	/* Its default, under /var/log, is root's. Not where the pipes are: it becomes the user's alone. */
	snprintf(log_directory, sizeof log_directory, LOG_DIRECTORY "=%s-log-%u", status->pipe_directory,
	         (unsigned int)geteuid());
	return mps_control_start(control, added, from_root, ANSWER_MS, answer);
}

static int start(const char *control, const struct mps_request *request, struct mps_status *status,
                 struct error *error)
{
	static char answer[MPS_CONTROL_ANSWER];
	int result = call_daemon(control, status, answer);

	if (result == MPS_CONTROL_IMPOSSIBLE)
		return error_set_errno(error, "MPS: %.200s cannot be run", control);
	if (result == MPS_CONTROL_OVERDUE)
		return error_set(error, "MPS: the control daemon does not start: not done after %d s; --mps off runs "
		                        "without it",
		                 ANSWER_MS / 1000);
	/* Somebody else may have been faster. */
	if (result != 0 && !strstr(answer, "already running"))
		return error_set(error, "MPS: the control daemon does not start: %.160s; --mps off runs without it",
		                 first_line(answer));
	status->started = result == 0;
	return await_daemon(control, request, status, error);
}

/* --- what cannot work ------------------------------------------------------------------------------------------- */

/* The daemon itself is silent about most of these, and a client then just runs without MPS. */
static int check_directory(const char *directory, struct error *error)
{
	struct stat status;
	int result = 0;

	if (strlen(directory) + strlen(SOCKET) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
		result = error_set(error, "MPS: %.100s…: too long for the path of a socket; set " PIPE_DIRECTORY
		                          " to a shorter one",
		                   directory);
	else if (stat(directory, &status) < 0)
		result = errno == ENOENT ? 0 : error_set_errno(error, "MPS: %.100s", directory);
	else if (!S_ISDIR(status.st_mode))
		result = error_set(error, "MPS: " PIPE_DIRECTORY " is %.100s, which keeps programs away from MPS; unset it, "
		                          "or use --mps off",
		                   directory);
	else if (access(directory, X_OK) < 0)
		result = error_set(error, "MPS: %.100s, where the control daemon is found, belongs to user %u and is closed "
		                          "to you; set " PIPE_DIRECTORY " to a directory of yours, or use --mps off",
		                   directory, (unsigned int)status.st_uid);
	return result;
}

static int check_room(const struct mps_status *status, struct error *error)
{
	if (status->clients < status->capacity)
		return 0;
	return error_set(error, "MPS: the server (pid %d) is full: %u clients, and %u fit at %u connections each; "
	                        "end one%s",
	                 (int)status->server, status->clients, status->capacity, status->connections,
	                 status->connections > 2 ? ", or use --connections 2" : "");
}

/* --- what the client needs ------------------------------------------------------------------------------------- */

/* What the user set for all programs holds, where it is a number that CUDA would take. */
static unsigned int connections_of(const struct mps_request *request)
{
	const char *text = getenv(CONNECTIONS);
	unsigned int connections = request->connections;

	if (!connections && text) {
		char *end;
		unsigned long number = strtoul(text, &end, 10);

		if (*text >= '0' && *text <= '9' && *end == '\0' && number <= MPS_CONNECTIONS_MAX)
			connections = (unsigned int)number;
	}
	return connections ? connections : MPS_CONNECTIONS_DEFAULT;
}

static int set_variable(const char *name, const char *value, struct error *error)
{
	return setenv(name, value, 1) < 0 ? error_set(error, "MPS: no memory") : 0;
}

/* A program is no client where the directory of the daemon's pipes cannot be one (the paper, footnote 20). */
static int stay_away(struct error *error)
{
	return set_variable(PIPE_DIRECTORY, "/dev/null", error);
}

static const char *pipe_directory(void)
{
	const char *directory = getenv(PIPE_DIRECTORY);

	return directory && *directory ? directory : PIPE_DIRECTORY_DEFAULT;
}

void mps_ask_early(const struct mps_request *request)
{
	char control[PATH_MAX];

	early.pending = request->mode != MPS_OFF && check_directory(pipe_directory(), NULL) == 0 &&
	                mps_control_find(control, NULL) == 0;
	if (early.pending)
		mps_control_begin(&early.question, control, WHO_IS_THERE);
}

/* Finds the daemon, where there is one, and who uses it. */
static int look(const struct mps_request *request, struct mps_status *status, char control[PATH_MAX],
                struct error *error)
{
	memset(status, 0, sizeof *status);
	snprintf(status->pipe_directory, sizeof status->pipe_directory, "%s", pipe_directory());
	status->connections = connections_of(request);
	status->capacity = mps_capacity(status->connections);
	if (request->mode == MPS_OFF)
		return 0;
	return check_directory(status->pipe_directory, error) < 0 || mps_control_find(control, error) < 0
	               ? -1
	               : ask(control, request, status, error);
}

static int none_runs(const struct mps_status *status, struct error *error)
{
	return error_set(error, "MPS: no control daemon runs in %.100s; start it with '" MPS_CONTROL
	                        " -d', or use --mps auto",
	                 status->pipe_directory);
}

static int join_server(const char *control, const struct mps_request *request, struct mps_status *status,
                       struct error *error)
{
	char number[16];

	if (!status->running && request->mode == MPS_ON)
		return none_runs(status, error);
	if (!status->running && start(control, request, status, error) < 0)
		return -1;
	snprintf(number, sizeof number, "%u", status->connections);
	return check_room(status, error) < 0 ? -1 : set_variable(CONNECTIONS, number, error);
}

int mps_prepare(const struct mps_request *request, struct mps_status *status, struct error *error)
{
	char control[PATH_MAX];

	if (look(request, status, control, error) < 0)
		return -1;
	return request->mode == MPS_OFF ? stay_away(error) : join_server(control, request, status, error);
}

/* --- whose it is ------------------------------------------------------------------------------------------------- */

/* A whole small file; its length, 0 where it cannot be read. */
static size_t read_file(const char *path, char *content, size_t size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file >= 0 ? read(file, content, size - 1) : 0;

	if (file >= 0)
		close(file);
	content[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

/* The daemon's process, 0 where that cannot be known: it may be in another PID namespace, and the file be an old one. */
static pid_t find_daemon(const struct mps_status *status)
{
	char path[sizeof status->pipe_directory + sizeof PID_FILE], text[64];

	snprintf(path, sizeof path, "%s" PID_FILE, status->pipe_directory);
	long pid = read_file(path, text, sizeof text) > 0 ? strtol(text, NULL, 10) : 0;

	snprintf(path, sizeof path, "/proc/%ld/comm", pid);
	if (pid <= 0 || read_file(path, text, sizeof text) == 0 ||
	    strncmp(text, DAEMON_NAME, strlen(DAEMON_NAME)) != 0)
		pid = 0;
	return (pid_t)pid;
}

static enum mps_starter find_starter(pid_t daemon)
{
	static char content[ENVIRONMENT_MAX];
	char path[64];
	enum mps_starter starter = MPS_STARTER_UNKNOWN;

	snprintf(path, sizeof path, "/proc/%d/environ", (int)daemon);
	size_t length = daemon > 0 ? read_file(path, content, sizeof content) : 0;

	if (length > 0)
		starter = memmem(content, length, STARTED, sizeof STARTED) ? MPS_STARTED_BY_US : MPS_STARTED_BY_OTHERS;
	return starter;
}

static void identify(struct mps_status *status)
{
	char path[64];
	struct stat owner;

	status->daemon = find_daemon(status);
	status->starter = find_starter(status->daemon);
	snprintf(path, sizeof path, "/proc/%d", (int)status->daemon);
	if (status->daemon > 0 && stat(path, &owner) == 0)
		status->owner = owner.st_uid;
}

int mps_inspect(const struct mps_request *request, struct mps_status *status, struct error *error)
{
	char control[PATH_MAX];

	if (look(request, status, control, error) < 0)
		return -1;
	if (!status->running)
		return error_set(error, "MPS: no control daemon runs in %.100s", status->pipe_directory);
	identify(status);
	return 0;
}

/* --- ending it ---------------------------------------------------------------------------------------------------- */

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

/* The daemon's word to a client is an error of its next call; without a time it would wait for all to end. */
static int quit(const char *control, const struct mps_status *status, struct error *error)
{
	static char answer[MPS_CONTROL_ANSWER];
	const char *commands = status->all_clients > 0 ? "quit -t 1\n" : "quit\n";
	int result = ask_in_turn(ask_once(control, commands, answer), control, commands, answer);

	if (explain(result, control, status, error) < 0)
		return -1;
	/* It refuses with status 0. */
	if (strstr(answer, "Not enough privilege"))
		return error_set(error, "MPS: the control daemon in %.100s belongs to another user: ask that user, or root",
		                 status->pipe_directory);
	if (result != 0)
		return error_set(error, "MPS: the control daemon in %.100s does not stop: %.120s", status->pipe_directory,
		                 first_line(answer));
	return 0;
}

int mps_stop(bool force, struct mps_status *status, struct error *error)
{
	const struct mps_request request = {.mode = MPS_ON};
	char control[PATH_MAX];

	if (look(&request, status, control, error) < 0)
		return -1;
	if (!status->running)
		return error_set(error, "MPS: no control daemon runs in %.100s", status->pipe_directory);
	identify(status);
	return may_stop(status, force, error) < 0 ? -1 : quit(control, status, error);
}

