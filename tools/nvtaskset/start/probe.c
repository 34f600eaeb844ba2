#include "probe.h"

#include "base/clock.h"
#include "base/driver_names.h"
#include "driver.h"
#include "state/revision_text.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "nvtaskset-probe"
#define PREFIX "nvtaskset: " /* of messages from our library and from probe_main */

/* A driver has a hundred megabytes, and the disk may be slow. */
#define LIMIT_SECONDS 10

/* --- the probe: the process that loads the library ------------------------------------------------------ */

bool probe_is_me(const char *name)
{
	return name && strcmp(name, NAME) == 0;
}

int probe_main(void)
{
	struct link_map *map = NULL;
	void *library = dlopen(DRIVER_NAME, RTLD_LAZY);
	int status = EXIT_FAILURE;

	if (!library)
		fprintf(stderr, PREFIX "the driver library cannot be loaded: %s\n", dlerror());
	else if (dlinfo(library, RTLD_DI_LINKMAP, &map) < 0 || !start_is_our_library(map->l_name))
		fprintf(stderr, PREFIX "programs would load %s, and not our library\n",
		        map ? map->l_name : "something else");
	else
		status = EXIT_SUCCESS;
	return status;
}

/* --- the process that starts the probe ------------------------------------------------------------------ */

/* The environment of the probe is COMMAND's. Without `environment`: NVTASKSET_STRICT is our only variable, and
 * LD_LIBRARY_PATH is `directory`, or unset for NULL. */
static int set_surroundings(const struct environment *environment, const char *directory, struct error *error)
{
	static const char *const unset[] = {"LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", SEGMENT_ENVIRONMENT};
	int failed = 0;

	if (environment)
		return environment_set(environment, error);
	for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++)
		unsetenv(unset[i]);
	failed = setenv("NVTASKSET_STRICT", "1", 1) < 0 || (directory && setenv("LD_LIBRARY_PATH", directory, 1) < 0);
	return failed ? error_set(error, "the environment: no memory") : 0;
}

static _Noreturn void become_probe(const struct environment *environment, const char *directory, int errors)
{
	char *const arguments[] = {NAME, NULL};
	int nothing = open("/dev/null", O_RDWR);
	struct error error;

	/* The parent reads the reason of a failure from `errors`. */
	dup2(nothing, STDIN_FILENO);
	dup2(nothing, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	if (set_surroundings(environment, directory, &error) == 0) {
		execv("/proc/self/exe", arguments);
		error_set_errno(&error, "our library cannot be tested: /proc/self/exe");
	}
	dprintf(STDERR_FILENO, PREFIX "%s\n", error.reason);
	_exit(EXIT_FAILURE);
}

/* Reads the output of the probe until the end; drops text beyond `size`. False if the probe does not end in time. */
static bool read_until_end(int file, char *text, size_t size)
{
	const double end = clock_ms() + LIMIT_SECONDS * 1e3;
	double left = LIMIT_SECONDS * 1e3;
	struct pollfd wait = {.fd = file, .events = POLLIN};
	size_t length = 0;
	ssize_t got = -1;

	while (got != 0 && left > 0) {
		char some[256];

		got = poll(&wait, 1, (int)left + 1) > 0 ? read(file, some, sizeof some) : -1;
		for (ssize_t i = 0; i < got && length < size - 1; i++)
			text[length++] = some[i];
		left = end - clock_ms();
	}
	text[length] = '\0';
	return got == 0;
}

/* The reason is in the line with our prefix: the driver, for example, may have written lines too. */
static int explain(const char *text, struct error *error)
{
	const char *reason = strstr(text, PREFIX);

	reason = reason ? reason + sizeof PREFIX - 1 : text;
	if (!*reason)
		return error_set(error, "our library was tested, and the test process died without giving a reason");
	return error_set(error, "%.*s", (int)strcspn(reason, "\n"), reason);
}

/* Waits for the probe's end. -1 with the reason if it failed or was too slow. */
static int finish(pid_t pid, bool in_time, const char *text, struct error *error)
{
	int status = -1;

	if (!in_time)
		kill(pid, SIGKILL);
	(void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
	if (!in_time)
		return error_set(error, "our library was tested, and the driver did not load within %d seconds",
		                 LIMIT_SECONDS);
	return status == 0 ? 0 : explain(text, error);
}

static int run_probe(const struct environment *environment, const char *directory, struct error *error)
{
	/* Under a parent that ignored SIGCHLD, no child would leave a status. */
	const struct sigaction ordinary = {.sa_handler = SIG_DFL};
	struct sigaction inherited;
	char text[1024];
	int ends[2], result = -1;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set_errno(error, "our library cannot be tested");
	sigaction(SIGCHLD, &ordinary, &inherited);
	pid_t pid = fork();

	if (pid == 0)
		become_probe(environment, directory, ends[1]);
	close(ends[1]);
	if (pid > 0)
		result = finish(pid, read_until_end(ends[0], text, sizeof text), text, error);
	else
		error_set_errno(error, "our library cannot be tested");
	close(ends[0]);
	sigaction(SIGCHLD, &inherited, NULL);
	return result;
}

int probe(const struct environment *environment, struct error *error)
{
	return run_probe(environment, NULL, error);
}

int probe_bare(const char *directory, struct error *error)
{
	int result = run_probe(NULL, directory, error);

	/* The probe was strict only to make our library give its reason. The user has not asked for --strict. */
	if (result < 0 && strstr(error->reason, "; --strict"))
		*strstr(error->reason, "; --strict") = '\0';
	return result;
}
