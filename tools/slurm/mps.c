#include "plugin.h"

#include "common.h"
#include "config.h"
#include "jobs.h"
#include "mps/client.h"
#include "mps/control.h"
#include "mps/daemon.h"
#include "mps/look.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <linux/openat2.h>
#include <signal.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX "mps-"
#define PIPES "pipe"

#define PID_FILE "nvidia-cuda-mps-control.pid"

bool mps_is_wanted(const struct config *config)
{
	return strcmp(config->mps, "no") != 0;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static const char *home_of(const struct job *job, unsigned int user, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.4000s/" PREFIX "%u", job->directory, user);
	return path;
}

static const char *pipes_of(const struct job *job, unsigned int user, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.3900s/" PREFIX "%u/" PIPES, job->directory, user);
	return path;
}

/* Nobody starts or ends the user's daemon until the descriptor is closed. -1 with the reason. */
static int lock_user(const struct job *job, unsigned int user, struct nvtaskset_error *error)
{
	char name[32];

	snprintf(name, sizeof name, "." PREFIX "%u", user);
	return jobs_lock(job, name, error);
}

/* --- as the user -------------------------------------------------------------------------------------------------- */

/* Becomes the user for ever: only this process. */
static int become(unsigned int user)
{
	const struct passwd *entry = getpwuid(user);

	return entry && initgroups(entry->pw_name, entry->pw_gid) == 0 &&
	                       setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) == 0 &&
	                       setresuid(user, user, user) == 0
	               ? 0
	               : -1;
}

/* A child with our locks must not outlive us. A change of the user would undo the signal. */
static int end_with(pid_t parent)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent ? 0 : -1;
}

/* The user can stop the process, or let it wait: then the process is killed. A question to the daemon has less time:
 * the process asks for the daemon, starts the daemon, and has time left for a reason. */
#define PATIENCE_MS 20000
#define QUESTION_MS 5000

/* True if the process has ended without a word: its work is done. Else kills the process, for the wait that follows. */
static bool has_done_it(pid_t child, int channel, struct error *said)
{
	struct pollfd readable = {.fd = channel, .events = POLLIN};
	long ready = TEMP_FAILURE_RETRY(poll(&readable, 1, PATIENCE_MS));

	if (ready == 0)
		error_set(said, "MPS: not done after %d s", PATIENCE_MS / 1000);
	bool is_silent = ready > 0 && read(channel, said, sizeof *said) == 0;

	said->reason[sizeof said->reason - 1] = '\0';
	if (!is_silent)
		kill(child, SIGKILL);
	return is_silent;
}

/* A process of the user, in its own session, with MPS's variables only. -1 with the reason, which comes through a
 * pipe. */
static int run_as(unsigned int user, const char *pipes, const struct config *config,
                  int (*work)(const char *, struct error *), struct nvtaskset_error *error)
{
	int channel[2], status = 0;
	bool is_silent = false;
	struct error said = {.reason = "MPS: its process was killed"};
	pid_t parent = getpid(), child = pipe2(channel, O_CLOEXEC) == 0 ? fork() : -1;

	if (child == 0) {
		struct error why = {.reason = "MPS: its user is not known on this node"};

		mps_patience_ms = QUESTION_MS;
		bool failed = setsid() < 0 || clearenv() != 0 ||
		              setenv("PATH", *config->mps ? config->mps : "/usr/bin", 1) < 0 ||
		              setenv(MPS_DIRECTORY_ENVIRONMENT, pipes, 1) < 0 || become(user) < 0 ||
		              end_with(parent) < 0 || chdir("/") < 0 || work(pipes, &why) < 0;

		if (failed && write(channel[1], &why, sizeof why) < 0)
			_exit(2);
		_exit(failed);
	}
	if (child > 0) {
		close(channel[1]);
		is_silent = has_done_it(child, channel[0], &said);
		close(channel[0]);
		(void)TEMP_FAILURE_RETRY(waitpid(child, &status, 0));
	}
	return is_silent && WIFEXITED(status) && WEXITSTATUS(status) == 0
	               ? 0
	               : reason_set(error, NVTASKSET_ERROR_OTHER, "%.300s", said.reason);
}

static int start_daemon(const char *pipes, struct error *error)
{
	const struct mps_request request = {.mode = MPS_AUTO};
	struct mps_status status;

	(void)pipes;
	return mps_prepare(&request, &status, error);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)kind;
	if (place->level > 0)
		remove(path);
	return 0;
}

/* Stops the daemon, and removes its files. A daemon that has ended by itself is no failure. No job needs the daemon: a
 * program that still uses MPS is outside of jobs. */
static int stop(const char *pipes, struct error *error)
{
	struct mps_status status;
	char home[PATH_MAX];
	int result = mps_stop(true, &status, error);

	if (result < 0 && strstr(error->reason, "no control daemon runs"))
		result = 0;
	snprintf(home, sizeof home, "%.*s", (int)(strrchr(pipes, '/') - pipes), pipes);
	if (result == 0)
		nftw(home, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return result;
}

/* --- the beginning ------------------------------------------------------------------------------------------------ */

/* Only the user can enter. */
static int make_home(const struct job *job, unsigned int user, struct nvtaskset_error *error)
{
	char path[PATH_MAX];
	struct stat status;

	home_of(job, user, path);
	if ((mkdir(path, 0700) < 0 && errno != EEXIST) || lchown(path, user, (gid_t)-1) < 0 || lstat(path, &status) < 0)
		return reason_set_errno(error, "%.200s", path);
	return S_ISDIR(status.st_mode) ? 0 : reason_set(error, NVTASKSET_ERROR_OTHER, "%.200s: is no directory", path);
}

int mps_begin(const struct job *job, const struct config *config, unsigned int user, struct nvtaskset_error *error)
{
	char pipes[PATH_MAX];
	struct jobs_note note;
	int lock = lock_user(job, user, error), result = lock < 0 ? -1 : jobs_begin(job, user, &note, error);

	if (result == 0 && jobs_has_shards(&note))
		result = make_home(job, user, error) < 0
		                 ? -1 : run_as(user, pipes_of(job, user, pipes), config, start_daemon, error);
	if (lock >= 0)
		close(lock);
	return result;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

void mps_end(const struct job *job, const struct config *config, unsigned int user)
{
	struct nvtaskset_error error;
	char path[PATH_MAX];
	int lock = access(home_of(job, user, path), F_OK) == 0 ? lock_user(job, user, &error) : -1;

	if (lock >= 0 && jobs_of_user(job, user) == 0) {
		if (run_as(user, pipes_of(job, user, path), config, stop, &error) < 0)
			slurm_error("nvtaskset: %s", error.reason);
		else
			rmdir(home_of(job, user, path));
	}
	if (lock >= 0)
		close(lock);
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

/* The file is the user's: a lie there harms nobody else. */
static bool is_running(const struct job *job, unsigned int user)
{
	/* Below the job's directory, the user chooses the files: no link, and no mount, leads us away. */
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC,
	                       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
	char path[128];
	int pid = 0, directory = open(job->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

	snprintf(path, sizeof path, PREFIX "%u/" PIPES "/" PID_FILE, user);
	int descriptor = directory >= 0 ? (int)syscall(SYS_openat2, directory, path, &how, sizeof how) : -1;
	FILE *file = descriptor >= 0 ? fdopen(descriptor, "r") : NULL;

	if (file && fscanf(file, "%d", &pid) != 1)
		pid = 0;
	if (file)
		fclose(file);
	if (directory >= 0)
		close(directory);
	return pid > 1 && (kill(pid, 0) == 0 || errno == EPERM);
}

/* An epilog that is just ending the daemon has either seen this job's note, or is waited for. */
int mps_find(const struct job *job, unsigned int user, char pipes[PATH_MAX], struct nvtaskset_error *error)
{
	int lock = lock_user(job, user, error), result = lock < 0 ? -1 : 0;

	pipes_of(job, user, pipes);
	if (lock >= 0 && !is_running(job, user))
		result = reason_set(error, NVTASKSET_ERROR_BUSY, "MPS: no control daemon of user %u runs on this node: "
		                                                 "slurmd's log says why, unless the job has just been "
		                                                 "here before", user);
	if (lock >= 0)
		close(lock);
	return result;
}
