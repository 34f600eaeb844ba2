#include "reach.h"

#include "base/proc.h"
#include "look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIRECTORY "/tmp/nvidia-mps"
#define PIPE "control"

static bool has_daemon(const char *directory)
{
	char path[PATH_MAX];
	int length = snprintf(path, sizeof path, "%s/" PIPE, directory && *directory ? directory : DIRECTORY);

	return length < (int)sizeof path && access(path, F_OK) == 0;
}

bool mps_is_in_reach(void)
{
	return has_daemon(secure_getenv(MPS_DIRECTORY_ENVIRONMENT));
}

#define ENVIRONMENT_MAX (128 << 10)

bool mps_reaches(pid_t pid)
{
	static const char name[] = MPS_DIRECTORY_ENVIRONMENT "=";
	static char text[ENVIRONMENT_MAX + 1];
	ssize_t length = proc_read(text, ENVIRONMENT_MAX, "/proc/%d/environ", (int)pid);
	const char *directory = NULL;

	text[length > 0 ? length : 0] = '\0';
	for (const char *entry = text; entry < text + length && !directory; entry += strlen(entry) + 1)
		directory = strncmp(entry, name, sizeof name - 1) == 0 ? entry + sizeof name - 1 : NULL;
	return length > 0 && has_daemon(directory);
}
