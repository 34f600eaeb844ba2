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
	int length = snprintf(path, sizeof path, "%s/" PIPE, directory && *directory ? directory : mps_usual_directory());

	return length < (int)sizeof path && access(path, F_OK) == 0;
}

bool mps_is_in_reach(void)
{
	return has_daemon(secure_getenv(MPS_DIRECTORY_ENVIRONMENT));
}

#define ENVIRONMENT_MAX (128 << 10)

/* For a moment of its exec, a process has no environment, or seems to be none. Few have none for ever: their users wait a second. */
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

bool mps_reaches(pid_t pid)
{
	static const char name[] = MPS_DIRECTORY_ENVIRONMENT "=";
	static char text[ENVIRONMENT_MAX + 1];
	ssize_t length = read_environment(pid, text);
	const char *end = text + (length > 0 ? length : 0), *directory = NULL;

	for (const char *entry = text; entry < end && !directory; entry += strlen(entry) + 1)
		directory = strncmp(entry, name, sizeof name - 1) == 0 ? entry + sizeof name - 1 : NULL;
	return length >= 0 && has_daemon(directory);
}
