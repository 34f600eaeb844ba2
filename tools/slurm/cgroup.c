#include "cgroup.h"

#include <stdio.h>
#include <string.h>

#define LENGTH_MAX 255 /* that a group's file has room for */

bool cgroup_read(uint32_t job, const char *line, char path[PATH_MAX])
{
	char wanted[32];
	size_t length = (size_t)snprintf(wanted, sizeof wanted, "/job_%u", job);
	const char *names = strchr(line, ':'), *begin = names ? strchr(names + 1, ':') : NULL, *found = begin;

	while (found && (found = strstr(found + 1, wanted)) && found[length] != '/' && found[length] != '\n' && found[length] != '\0')
		;
	if (!found || found + length - (begin + 1) > LENGTH_MAX)
		return false;
	snprintf(path, PATH_MAX, "%.*s", (int)(found + length - (begin + 1)), begin + 1);
	return true;
}

const char *cgroup_find(uint32_t job, char path[PATH_MAX])
{
	char line[PATH_MAX];
	FILE *file = fopen("/proc/self/cgroup", "re");
	bool found = false;

	while (file && !found && fgets(line, sizeof line, file))
		found = cgroup_read(job, line, path);
	if (file)
		fclose(file);
	return found ? path : NULL;
}
