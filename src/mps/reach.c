#include "reach.h"

#include "base/clock.h"
#include "base/proc.h"
#include "look.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIPE "control"

static bool has_daemon(const char *directory)
{
	char path[PATH_MAX];
	int length =
		snprintf(path, sizeof path, "%s/" PIPE, directory && *directory ? directory : mps_usual_directory());

	return length < (int)sizeof path && access(path, F_OK) == 0;
}

bool mps_is_in_reach(void)
{
	return has_daemon(secure_getenv(MPS_DIRECTORY_ENVIRONMENT));
}

#define ENVIRONMENT_MAX (128 << 10)

/* During an exec, a process seems to have no environment for a moment. Users wait for a second at most. */
#define LOOKS 1000
#define BETWEEN_LOOKS_US 1000

static ssize_t read_environment(pid_t pid, char *text)
{
	ssize_t length = 0;

	for (unsigned int look = 0; look < LOOKS && (length == 0 || (length < 0 && errno == ESRCH)); look++) {
		if (look > 0)
			clock_pause_us(BETWEEN_LOOKS_US);
		length = proc_read(text, ENVIRONMENT_MAX, "/proc/%d/environ", (int)proc_thread(pid));
	}
	text[length > 0 ? length : 0] = '\0';
	return length;
}

struct environment {
	char text[ENVIRONMENT_MAX + 1];
	ssize_t length; /* negative: unreadable */
};

static const struct environment *environment_of(pid_t pid)
{
	static struct environment environment; /* large */

	environment.length = read_environment(pid, environment.text);
	return &environment;
}

static const char *value_of(const struct environment *environment, const char *name)
{
	return proc_variable(environment->text, environment->length > 0 ? (size_t)environment->length : 0, name);
}

/* No path below /proc/PID/root is looked up: a container may have mounted a file system that never answers. */
static bool is_reached(const struct environment *environment)
{
	const char *directory = value_of(environment, MPS_DIRECTORY_ENVIRONMENT);
	bool is_mount = directory && strcmp(directory, MPS_MOUNT) == 0;

	return environment->length >= 0 && (is_mount || has_daemon(directory));
}

bool mps_reaches(pid_t pid)
{
	return is_reached(environment_of(pid));
}

unsigned int mps_connections(pid_t pid)
{
	const struct environment *environment = environment_of(pid);
	const char *text = value_of(environment, MPS_CONNECTIONS_ENVIRONMENT);
	unsigned long number = text ? strtoul(text, NULL, 10) : 0;
	bool is_given = number >= 1 && number <= MPS_CONNECTIONS_MAX;

	return !is_reached(environment) ? 0 : is_given ? (unsigned int)number : MPS_CONNECTIONS_USUAL;
}
