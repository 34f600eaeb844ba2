#include "ldconfig.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "/sbin/ldconfig" /* not searched in PATH: root runs it */

static int start(pid_t *pid, const char *cache, int held)
{
	char *const arguments[] = {PROGRAM, "-X", "-C", (char *)cache, NULL};
	char *const environment[] = {NULL}; /* no locale: the order in which files are read depends on it */
	posix_spawn_file_actions_t actions;

	posix_spawn_file_actions_init(&actions);
	/* It warns of directories that do not exist, which is common and harmless. */
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
	posix_spawn_file_actions_adddup2(&actions, held, held); /* keeps it open */
	int failed = posix_spawn(pid, PROGRAM, &actions, NULL, arguments, environment);

	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

int ldconfig_make(const char *cache, int held, struct error *error)
{
	int status = -1;
	pid_t pid;
	int failed = start(&pid, cache, held);

	if (failed) {
		errno = failed;
		return error_set_errno(error, PROGRAM ", which makes the dynamic linker's cache");
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status == 0 ? 0 : error_set(error, PROGRAM ", which makes the dynamic linker's cache, failed: run it to see why");
}
