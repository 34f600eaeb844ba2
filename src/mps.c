#include "mps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONTROL "nvidia-cuda-mps-control"
#define PIPE_DIRECTORY "CUDA_MPS_PIPE_DIRECTORY"
#define LOG_DIRECTORY "CUDA_MPS_LOG_DIRECTORY"
#define CONNECTIONS "CUDA_DEVICE_MAX_CONNECTIONS"
#define PIPE_DIRECTORY_DEFAULT "/tmp/nvidia-mps"

/* A healthy daemon answers in 2 ms and starts in 40 ms. */
#define ANSWER_MS 5000

/* Room for the list of clients that a server can have, several times over. */
#define ANSWER_MAX 65536

#define CHANNELS 127
#define CLIENTS_MAX 48

extern char **environ;

/* Where NVIDIA's packages and container images put the control program when PATH does not name it. */
static const char *const usual_directories[] = {
	"/usr/bin", "/usr/local/nvidia/bin", "/usr/local/cuda/bin", "/run/opengl-driver/bin", "/opt/bin",
};

unsigned int mps_capacity(unsigned int connections)
{
	unsigned int capacity = CHANNELS / connections;

	return capacity < CLIENTS_MAX ? capacity : CLIENTS_MAX;
}

/* --- the control program ---------------------------------------------------------------------------------- */

static bool join(char path[PATH_MAX], const char *directory, size_t length)
{
	int written = snprintf(path, PATH_MAX, "%.*s/" CONTROL, (int)length, directory);

	return written > 0 && written < PATH_MAX && access(path, X_OK) == 0;
}

static int find_control(char path[PATH_MAX], struct error *error)
{
	const char *directories = getenv("PATH");
	bool found = false;

	while (directories && *directories && !found) {
		size_t length = strcspn(directories, ":");

		found = length > 0 && length < PATH_MAX && join(path, directories, length);
		directories += length + (directories[length] == ':');
	}
	for (size_t i = 0; !found && i < sizeof usual_directories / sizeof usual_directories[0]; i++)
		found = join(path, usual_directories[i], strlen(usual_directories[i]));
	return found ? 0
	             : error_set(error, "MPS: " CONTROL " is neither on PATH nor where NVIDIA installs it; "
	                                "put it on PATH, or use --mps off");
}

/* What the control daemon must not inherit from whoever happens to start it: it would rule for all clients. */
static bool is_private(const char *variable)
{
	static const char *const private[] = {
		"CUDA_VISIBLE_DEVICES=",
		"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=",
		CONNECTIONS "=",
	};
	bool found = false;

	for (size_t i = 0; i < sizeof private / sizeof private[0]; i++)
		found = found || strncmp(variable, private[i], strlen(private[i])) == 0;
	return found;
}

/* The daemon's environment: ours less what is private, and a place for its log that it can write to. Allocated
 * as one block; NULL where there is no memory. */
static char **make_environment(const char *log_directory)
{
	size_t count = 0, kept = 0;

	while (environ[count])
		count++;
	char **variables = malloc((count + 2) * sizeof *variables);

	for (size_t i = 0; variables && i < count; i++) {
		if (!is_private(environ[i]))
			variables[kept++] = environ[i];
	}
	if (variables && log_directory)
		variables[kept++] = (char *)log_directory;
	if (variables)
		variables[kept] = NULL;
	return variables;
}

/* --- asking -------------------------------------------------------------------------------------------------- */

/* Waits for a child, and ends it when its time is over. Its status, or -1. */
static int await(pid_t child)
{
	const struct timespec pause = {.tv_nsec = 200000};
	int status;
	pid_t ended = waitpid(child, &status, WNOHANG);

	for (int waited = 0; ended == 0 && waited < ANSWER_MS * 5; waited++) {
		nanosleep(&pause, NULL);
		ended = waitpid(child, &status, WNOHANG);
	}
	if (ended == 0) {
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	}
	return ended == child ? status : -1;
}

/* Files in memory, not pipes: the daemon keeps what its starter gave it. */
static int memory_file(const char *content)
{
	int file = memfd_create("nvtaskset-mps", MFD_CLOEXEC);
	ssize_t length = (ssize_t)strlen(content);

	if (file >= 0 && (write(file, content, (size_t)length) != length || lseek(file, 0, SEEK_SET) != 0)) {
		close(file);
		file = -1;
	}
	return file;
}

static pid_t spawn(const char *control, char *const *arguments, char *const *environment, int input, int output)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	pid_t child = -1;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return -1;
	if (posix_spawnattr_init(&attributes) == 0) {
		/* A session of its own: the terminal's signals are not the daemon's. */
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
		posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
		posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
		posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
		if (posix_spawn(&child, control, &actions, &attributes, arguments, environment) != 0)
			child = -1;
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return child;
}

/* Runs the control program on `input`. Its exit status with what it said, or -1 where it did not end in time or
 * could not be run. */
static int run_control(const char *control, char *const *arguments, char *const *environment,
                       const char *input_text, char answer[ANSWER_MAX])
{
	int input = memory_file(input_text), output = memory_file("");
	int status = -1;

	answer[0] = '\0';
	if (input >= 0 && output >= 0) {
		pid_t child = spawn(control, arguments, environment, input, output);

		status = child > 0 ? await(child) : -1;
		ssize_t length = pread(output, answer, ANSWER_MAX - 1, 0);

		answer[length > 0 ? length : 0] = '\0';
	}
	if (input >= 0)
		close(input);
	if (output >= 0)
		close(output);
	return status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The first line of an answer, for a reason. */
static const char *first_line(char *answer)
{
	answer[strcspn(answer, "\r\n")] = '\0';
	return answer[0] ? answer : "it said nothing";
}

/* --- the state of MPS ------------------------------------------------------------------------------------------ */

static bool is_mine(long server)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof path, "/proc/%ld", server);
	/* A server that cannot be looked at (another PID namespace) is taken for ours: it is the only one then. */
	return stat(path, &status) < 0 || status.st_uid == getuid();
}

/* One line of "get_server_list" (a number) or of "ps" (a table: PID, ID, SERVER, …). */
static void read_line(struct mps_status *status, const char *line)
{
	long first, server;
	char id[32], rest[2];
	int words = sscanf(line, "%ld %31s %ld %1s", &first, id, &server, rest);

	if (words == 1 && is_mine(first))
		status->server = (pid_t)first;
	else if (words == 4 && server == status->server)
		status->clients++;
}

static void read_answer(struct mps_status *status, char *answer)
{
	char *rest = NULL;

	for (char *line = strtok_r(answer, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		read_line(status, line);
}

/* Asks the control daemon for its servers and their clients. No daemon is not a failure. */
static int ask(const char *control, struct mps_status *status, struct error *error)
{
	static char answer[ANSWER_MAX];
	char *arguments[] = {CONTROL, NULL};
	int result = run_control(control, arguments, environ, "get_server_list\nps\n", answer);

	if (result < 0)
		return error_set(error, "MPS: the control daemon in %.100s does not answer: end it with 'echo "
		                        "quit | " CONTROL "' or kill it, or use --mps off",
		                 status->pipe_directory);
	status->running = result == 0;
	if (!status->running && !strstr(answer, "Cannot find MPS control daemon"))
		return error_set(error, "MPS: the control daemon in %.100s cannot be asked: %.120s",
		                 status->pipe_directory, first_line(answer));
	if (status->running)
		read_answer(status, answer);
	return 0;
}

static int start(const char *control, struct mps_status *status, struct error *error)
{
	static char answer[ANSWER_MAX];
	char *arguments[] = {CONTROL, "-d", NULL};
	char log_directory[sizeof LOG_DIRECTORY + sizeof status->pipe_directory + 32];
	bool needs_log = geteuid() != 0 && !getenv(LOG_DIRECTORY);

	/* Its default, under /var/log, is root's. Not where the pipes are: it becomes the user's alone. */
	snprintf(log_directory, sizeof log_directory, LOG_DIRECTORY "=%s-log-%u", status->pipe_directory,
	         (unsigned int)geteuid());
	char **environment = make_environment(needs_log ? log_directory : NULL);

	if (!environment)
		return error_set(error, "MPS: no memory");
	int result = run_control(control, arguments, environment, "", answer);

	free(environment);
	status->started = result == 0;
	/* Somebody else may have been faster. */
	if (result != 0 && !strstr(answer, "already running"))
		return error_set(error, "MPS: the control daemon does not start: %.160s; --mps off runs without it",
		                 first_line(answer));
	status->running = true;
	return 0;
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

static int join_server(const struct mps_request *request, struct mps_status *status, struct error *error)
{
	char control[PATH_MAX], number[16];

	if (find_control(control, error) < 0 || ask(control, status, error) < 0)
		return -1;
	if (!status->running && request->mode == MPS_ON)
		return error_set(error, "MPS: no control daemon runs in %.100s; start it with '" CONTROL
		                        " -d', or use --mps auto",
		                 status->pipe_directory);
	if (!status->running && start(control, status, error) < 0)
		return -1;
	snprintf(number, sizeof number, "%u", status->connections);
	return check_room(status, error) < 0 ? -1 : set_variable(CONNECTIONS, number, error);
}

int mps_prepare(const struct mps_request *request, struct mps_status *status, struct error *error)
{
	const char *directory = getenv(PIPE_DIRECTORY);

	memset(status, 0, sizeof *status);
	snprintf(status->pipe_directory, sizeof status->pipe_directory, "%s",
	         directory && *directory ? directory : PIPE_DIRECTORY_DEFAULT);
	status->connections = connections_of(request);
	status->capacity = mps_capacity(status->connections);
	return request->mode == MPS_OFF ? stay_away(error) : join_server(request, status, error);
}
