#include "control.h"

#include "base/clock.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLED_MS 1000
#define POLL_US 50

extern char **environ;

int mps_patience_ms = 15000;

/* The directories of NVIDIA's packages and container images, searched after PATH. */
static const char usual_directories[] =
	"/usr/bin:/usr/local/nvidia/bin:/usr/local/cuda/bin:/run/opengl-driver/bin:/opt/bin";

/* --- the control program ---------------------------------------------------------------------------------- */

static bool find_in(char path[PATH_MAX], const char *directories)
{
	bool found = false;

	while (directories && *directories && !found) {
		size_t length = strcspn(directories, ":");

		found = length > 0 && path_join_part(path, directories, length, MPS_CONTROL) && access(path, X_OK) == 0;
		directories += length + (directories[length] == ':');
	}
	return found;
}

int mps_control_find(char path[PATH_MAX], struct error *error)
{
	return find_in(path, getenv("PATH")) || find_in(path, usual_directories)
	               ? 0
	               : error_set(error, "MPS: " MPS_CONTROL " is neither on PATH nor where NVIDIA installs it; put "
	                                  "it on PATH");
}

/* --- running the program ------------------------------------------------------------------------------------------ */

struct call {
	const char *control;
	char *const *arguments;
	char *const *environment;
	const char *input;
	bool is_lasting; /* starts a daemon, which must hold nothing of ours */
	bool from_root;  /* the daemon must not hold our working directory either */
};

/* Like waitpid, for a limited time. Returns 0 for a running child. */
static pid_t wait_for(pid_t child, int *status, long limit)
{
	double end = clock_ms() + (double)limit;
	pid_t ended = waitpid(child, status, WNOHANG);

	while (ended == 0 && clock_ms() < end) {
		clock_pause_us(POLL_US);
		ended = waitpid(child, status, WNOHANG);
	}
	return ended;
}

static int await(pid_t child, bool leads_session)
{
	int status = 0;
	pid_t ended = wait_for(child, &status, mps_patience_ms);
	int result = MPS_CONTROL_DIED;

	if (ended == 0) {
		kill(leads_session ? -child : child, SIGKILL);
		wait_for(child, &status, KILLED_MS);
		result = MPS_CONTROL_OVERDUE;
	} else if (ended == child && WIFEXITED(status)) {
		result = WEXITSTATUS(status);
	}
	return result;
}

static rlim_t file_limit(void)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	getrlimit(RLIMIT_FSIZE, &limit);
	return limit.rlim_cur;
}

/* Beyond the limit, the kernel would end the writer (SIGXFSZ). False with errno. */
static bool has_room(size_t length)
{
	bool has = length <= file_limit();

	if (!has)
		errno = EFBIG;
	return has;
}

/* Memfds, not pipes: the daemon keeps the starter's descriptors. Never a standard descriptor: a closed standard
 * descriptor is replaced later. */
static int memory_file(const char *content)
{
	ssize_t length = (ssize_t)strlen(content);
	int file = has_room((size_t)length) ? memfd_create("nvtaskset-mps", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
	int moved = file >= 0 ? fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;

	if (file >= 0)
		close(file);
	if (moved >= 0 && (write(moved, content, (size_t)length) != length || lseek(moved, 0, SEEK_SET) != 0)) {
		close(moved);
		moved = -1;
	}
	return moved;
}

/* Memory for an answer. The file cannot grow: a program that writes without end gets an error, and fills no memory. */
static int answer_file(void)
{
	rlim_t limit = file_limit(), size = limit < MPS_CONTROL_ANSWER ? limit : MPS_CONTROL_ANSWER;
	int file = has_room(1) ? memory_file("") : -1;

	if (file >= 0 && (ftruncate(file, (off_t)size) < 0 || fcntl(file, F_ADD_SEALS, F_SEAL_GROW) < 0)) {
		close(file);
		file = -1;
	}
	return file;
}

/* The daemon must not keep the caller's locks and pipes open, nor inherit blocked signals. Returns an errno. */
static int spawn(pid_t *child, const struct call *call, int input, int output)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
	if (call->is_lasting)
		posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	if (call->from_root)
		posix_spawn_file_actions_addchdir_np(&actions, "/");
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	if (call->is_lasting)
		posix_spawnattr_setflags(&attributes,
		                         POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int failure = posix_spawn(child, call->control, &actions, &attributes, call->arguments, call->environment);

	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return failure;
}

/* The parent may have set SIGCHLD to be ignored: then children leave no exit status. */
static void begin_question(struct mps_question *question, const struct call *call)
{
	const struct sigaction ordinary = {.sa_handler = SIG_DFL};
	int input = memory_file(call->input);

	*question = (struct mps_question){.output = answer_file()};
	question->reason = errno;
	sigaction(SIGCHLD, &ordinary, &question->inherited);
	if (input >= 0 && question->output >= 0)
		question->reason = spawn(&question->child, call, input, question->output);
	if (question->reason != 0)
		question->child = 0;
	if (input >= 0)
		close(input);
}

/* Returns the control program's exit status, or MPS_CONTROL_…, and copies the output. */
static int end_question(struct mps_question *question, bool leads_session, char answer[MPS_CONTROL_ANSWER])
{
	int result = MPS_CONTROL_IMPOSSIBLE;
	ssize_t length = 0;

	if (question->child > 0) {
		result = await(question->child, leads_session);
		length = pread(question->output, answer, MPS_CONTROL_ANSWER - 1, 0);
	}
	answer[length > 0 ? length : 0] = '\0';
	if (question->output >= 0)
		close(question->output);
	sigaction(SIGCHLD, &question->inherited, NULL);
	errno = question->reason;
	return result;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

void mps_ask_begin(struct mps_question *question, const char *control, const char *commands)
{
	char *arguments[] = {MPS_CONTROL, NULL};

	begin_question(question, &(struct call){
		.control = control, .arguments = arguments, .environment = environ, .input = commands});
}

/* The daemon answers one question at a time. The control program does not wait for a turn, and says so, or nothing
 * (hardware.md). */
static bool came_too_early(const char *answer)
{
	return answer[0] == '\0' || strstr(answer, "Cannot send command");
}

int mps_ask_end(struct mps_question *question, const char *control, const char *commands,
                char answer[MPS_CONTROL_ANSWER])
{
	int result = end_question(question, false, answer);
	double until = clock_ms() + mps_patience_ms;

	while (result > 0 && commands && came_too_early(answer) && clock_ms() < until) {
		clock_pause_us(MPS_RETRY_US);
		mps_ask_begin(question, control, commands);
		result = end_question(question, false, answer);
	}
	return result;
}

int mps_ask(const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER])
{
	struct mps_question question;

	mps_ask_begin(&question, control, commands);
	return mps_ask_end(&question, control, commands, answer);
}

int mps_ask_words(const char *control, char *const *arguments, char answer[MPS_CONTROL_ANSWER])
{
	struct mps_question question;

	begin_question(&question, &(struct call){.control = control, .arguments = arguments, .environment = environ,
	                                         .input = ""});
	return end_question(&question, false, answer);
}

const char *mps_first_line(char *answer)
{
	answer[strcspn(answer, "\r\n")] = '\0';
	return answer[0] ? answer : "it said nothing";
}

/* --- starting the daemon ---------------------------------------------------------------------------------------- */

/* Variables that the control daemon must not inherit from the starter: the values would apply to all clients. */
static bool is_private(const char *variable)
{
	static const char *const private[] = {
		"CUDA_VISIBLE_DEVICES=",
		MPS_PERCENTAGE_ENVIRONMENT "=",
		MPS_PER_CONTEXT_ENVIRONMENT "=",
		MPS_PARTITION_ENVIRONMENT "=",
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

/* The daemon's environment: ours without the private variables, plus `added`. Allocated as a block; NULL without
 * memory. */
static char **make_environment(const char *const *added)
{
	size_t count = 0, more = 0, kept = 0;

	while (environ[count])
		count++;
	while (added[more])
		more++;
	char **variables = calloc(count + more + 1, sizeof *variables);

	for (size_t i = 0; variables && i < count; i++) {
		if (!is_private(environ[i]))
			variables[kept++] = environ[i];
	}
	if (variables)
		memcpy(&variables[kept], added, more * sizeof *variables);
	return variables;
}

int mps_control_start(const char *control, const char *const *added, bool from_root, char answer[MPS_CONTROL_ANSWER])
{
	char *arguments[] = {MPS_CONTROL, "-d", NULL};
	char **environment = make_environment(added);
	const struct call call = {.control = control,
	                          .arguments = arguments,
	                          .environment = environment,
	                          .input = "",
	                          .is_lasting = true,
	                          .from_root = from_root};
	struct mps_question question;
	int result = MPS_CONTROL_IMPOSSIBLE;

	if (environment) {
		begin_question(&question, &call);
		result = end_question(&question, true, answer);
	}
	free(environment);
	return result;
}
