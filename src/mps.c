#include "mps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONTROL "nvidia-cuda-mps-control"
#define PIPE_DIRECTORY "CUDA_MPS_PIPE_DIRECTORY"
#define LOG_DIRECTORY "CUDA_MPS_LOG_DIRECTORY"
#define CONNECTIONS "CUDA_DEVICE_MAX_CONNECTIONS"
#define PIPE_DIRECTORY_DEFAULT "/tmp/nvidia-mps"

/* The daemon's socket, in the directory of its pipes. */
#define SOCKET "/control"

/* A healthy daemon answers in 2 ms and starts in 40 ms. */
#define ANSWER_MS 5000
#define KILLED_MS 1000
#define POLL_US 200
#define RETRY_US 10000

/* Room for the list of clients that a server can have, several times over. */
#define ANSWER_MAX 65536

#define CHANNELS 127
#define CLIENTS_MAX 48

/* More GPUs than a machine has; as many letters as a UUID has. */
#define DEVICES_MAX 64
#define UUID_LENGTH 40

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
		"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=",
		"CUDA_MPS_CLIENT_PRIORITY=",
		"CUDA_DEVICE_MAX_CONNECTIONS=",
		"LD_PRELOAD=",
		"NVTASKSET_",
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

/* --- calling it ---------------------------------------------------------------------------------------------- */

struct call {
	const char *control;
	char *const *arguments;
	char *const *environment;
	const char *input;
	bool lasting;   /* what it starts outlives us: it gets nothing of ours to hold */
	bool from_root; /* not our working directory either */
};

/* How a call ended: with an exit status, or with one of these. */
enum {
	CALL_IMPOSSIBLE = -1, /* no memory, no process */
	CALL_OVERDUE = -2,    /* its time was over, and it was killed */
	CALL_DIED = -3        /* of a signal */
};

static long milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000L + now.tv_nsec / 1000000;
}

static void pause_for(long microseconds)
{
	const struct timespec pause = {.tv_nsec = microseconds * 1000};

	nanosleep(&pause, NULL);
}

/* Like waitpid, which returns 0 for a child that still runs, but for a limited time. */
static pid_t wait_for(pid_t child, int *status, long limit)
{
	long end = milliseconds() + limit;
	pid_t ended = waitpid(child, status, WNOHANG);

	while (ended == 0 && milliseconds() < end) {
		pause_for(POLL_US);
		ended = waitpid(child, status, WNOHANG);
	}
	return ended;
}

/* Waits for a child, and ends it when its time is over. */
static int await(pid_t child, bool leads_session)
{
	int status = 0;
	pid_t ended = wait_for(child, &status, ANSWER_MS);
	int result = CALL_DIED;

	if (ended == 0) {
		kill(leads_session ? -child : child, SIGKILL);
		wait_for(child, &status, KILLED_MS);
		result = CALL_OVERDUE;
	} else if (ended == child && WIFEXITED(status)) {
		result = WEXITSTATUS(status);
	}
	return result;
}

/* Files in memory, not pipes: the daemon keeps what its starter gave it. Never one of the standard descriptors, which
 * may be free, and are yet to be replaced. */
static int memory_file(const char *content)
{
	ssize_t length = (ssize_t)strlen(content);
	int file = memfd_create("nvtaskset-mps", MFD_CLOEXEC);
	int moved = file >= 0 ? fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;

	if (file >= 0)
		close(file);
	if (moved >= 0 && (write(moved, content, (size_t)length) != length || lseek(moved, 0, SEEK_SET) != 0)) {
		close(moved);
		moved = -1;
	}
	return moved;
}

/* A lock or a pipe of our caller's must not stay open for as long as the daemon runs. */
static void close_inherited(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		int file = atoi(entry->d_name);

		if (file > STDERR_FILENO && file != dirfd(directory))
			close(file);
	}
	if (directory)
		closedir(directory);
}

static void reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child. What goes wrong is said where the control program would say it. */
static __attribute__((noreturn)) void become(const struct call *call, int input, int output)
{
	bool ready = dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
	             dup2(output, STDERR_FILENO) >= 0;

	if (call->lasting) {
		setsid();
		reset_signals();
		close_inherited();
	}
	if (call->from_root && chdir("/") < 0)
		ready = false;
	if (ready)
		execve(call->control, call->arguments, call->environment);
	dprintf(STDERR_FILENO, "%s: %s\n", call->control, strerror(errno));
	_exit(127);
}

/* Whoever started us may have had SIGCHLD ignored, and then no child leaves a status. */
static int run_child(const struct call *call, int input, int output)
{
	const struct sigaction ordinary = {.sa_handler = SIG_DFL};
	struct sigaction inherited;
	int result = CALL_IMPOSSIBLE;

	sigaction(SIGCHLD, &ordinary, &inherited);
	pid_t child = fork();

	if (child == 0)
		become(call, input, output);
	if (child > 0)
		result = await(child, call->lasting);
	sigaction(SIGCHLD, &inherited, NULL);
	return result;
}

/* Runs the control program: its exit status, or why there is none, and what it said. */
static int run(const struct call *call, char answer[ANSWER_MAX])
{
	int input = memory_file(call->input), output = memory_file("");
	int result = CALL_IMPOSSIBLE;
	ssize_t length = 0;

	if (input >= 0 && output >= 0) {
		result = run_child(call, input, output);
		length = pread(output, answer, ANSWER_MAX - 1, 0);
	}
	answer[length > 0 ? length : 0] = '\0';
	if (input >= 0)
		close(input);
	if (output >= 0)
		close(output);
	return result;
}

/* The first line of an answer, for a reason: nothing that a terminal would obey. */
static const char *first_line(char *answer)
{
	answer[strcspn(answer, "\r\n")] = '\0';
	for (char *at = answer; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == '\x7f')
			*at = '?';
	}
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

/* Asks the control daemon for its servers and their clients. No daemon is not a failure. */
static int ask(const char *control, const struct mps_request *request, struct mps_status *status,
               struct error *error)
{
	static char answer[ANSWER_MAX];
	char *arguments[] = {CONTROL, NULL};
	const struct call call = {
		.control = control,
		.arguments = arguments,
		.environment = environ,
		.input = "get_server_list\nps\n",
	};
	int result = run(&call, answer);

	status->server = 0;
	status->clients = 0;
	status->running = result == 0;
	if (result == CALL_IMPOSSIBLE)
		return error_set_errno(error, "MPS: %.200s cannot be run", control);
	if (result == CALL_OVERDUE)
		return error_set(error, "MPS: the control daemon in %.100s does not answer: end it with 'echo "
		                        "quit | " CONTROL "' or kill it, or use --mps off",
		                 status->pipe_directory);
	if (result == CALL_DIED)
		return error_set(error, "MPS: the control daemon in %.100s does not answer: " CONTROL " died when it was "
		                        "asked; --mps off runs without it",
		                 status->pipe_directory);
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
	long end = milliseconds() + ANSWER_MS;
	int result = ask(control, request, status, error);

	while (result == 0 && !status->running && milliseconds() < end) {
		pause_for(RETRY_US);
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

static int call_daemon(const char *control, const struct mps_status *status, char answer[ANSWER_MAX])
{
	char *arguments[] = {CONTROL, "-d", NULL};
	char log_directory[sizeof LOG_DIRECTORY + sizeof status->pipe_directory + 32];
	bool needs_log = geteuid() != 0 && !getenv(LOG_DIRECTORY);

	/* Its default, under /var/log, is root's. Not where the pipes are: it becomes the user's alone. */
	snprintf(log_directory, sizeof log_directory, LOG_DIRECTORY "=%s-log-%u", status->pipe_directory,
	         (unsigned int)geteuid());
	char **environment = make_environment(needs_log ? log_directory : NULL);
	const struct call call = {
		.control = control,
		.arguments = arguments,
		.environment = environment,
		.input = "",
		.lasting = true,
		.from_root = is_absolute(control) && is_absolute(status->pipe_directory) &&
		             is_absolute(getenv(LOG_DIRECTORY)),
	};
	int result = environment ? run(&call, answer) : CALL_IMPOSSIBLE;

	free(environment);
	return result;
}

static int start(const char *control, const struct mps_request *request, struct mps_status *status,
                 struct error *error)
{
	static char answer[ANSWER_MAX];
	int result = call_daemon(control, status, answer);

	if (result == CALL_IMPOSSIBLE)
		return error_set_errno(error, "MPS: %.200s cannot be run", control);
	if (result == CALL_OVERDUE)
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

static int join_server(const struct mps_request *request, struct mps_status *status, struct error *error)
{
	char control[PATH_MAX], number[16];

	if (check_directory(status->pipe_directory, error) < 0 || find_control(control, error) < 0 ||
	    ask(control, request, status, error) < 0)
		return -1;
	if (!status->running && request->mode == MPS_ON)
		return error_set(error, "MPS: no control daemon runs in %.100s; start it with '" CONTROL
		                        " -d', or use --mps auto",
		                 status->pipe_directory);
	if (!status->running && start(control, request, status, error) < 0)
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
