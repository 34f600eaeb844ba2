#include "bypass.h"

#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "LD_LIBRARY_PATH="

/* Returns the value if the line sets the variable, else NULL. The value may be in quotes, "export" may stand in
 * front. */
static const char *value_in(char *line)
{
	char *name = strncmp(line, "export ", 7) == 0 ? line + 7 : line;
	char *value = NULL;

	if (strncmp(name, VARIABLE, sizeof VARIABLE - 1) == 0) {
		value = name + sizeof VARIABLE - 1;
		value += strspn(value, "\"'");
		value[strcspn(value, "\"'\n")] = '\0';
	}
	return value;
}

/* Searches a file of such lines. Each ends with `end`. */
static bool find_in_file(struct bypass *bypass, const char *path, int end)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (file && !found && getdelim(&line, &size, end, file) > 0) {
		const char *directories = value_in(line);

		found = directories && driver_find_in_directories(directories, bypass->driver);
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

bool bypass_find(struct bypass *bypass)
{
	const char *own = getenv("LD_LIBRARY_PATH");
	bool found = true;

	if (own && driver_find_in_directories(own, bypass->driver))
		bypass->where = "in this environment";
	else if (find_in_file(bypass, "/etc/environment", '\n'))
		bypass->where = "in /etc/environment";
	else if (find_in_file(bypass, "/proc/1/environ", '\0'))
		bypass->where = "of process 1";
	else
		found = false;
	return found;
}
