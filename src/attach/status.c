#include "status.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void status_read_file(const char *path, char *text, size_t room)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = file >= 0 ? read(file, text, room - 1) : 0;

	text[got > 0 ? got : 0] = '\0';
	if (file >= 0)
		close(file);
}

const char *status_find(char text[STATUS_TEXT], pid_t pid, const char *word)
{
	char path[64], line[64];

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	status_read_file(path, text, STATUS_TEXT);
	snprintf(line, sizeof line, "\n%s:", word);
	const char *found = strstr(text, line);

	if (found)
		found += strlen(line) + strspn(found + strlen(line), " \t");
	return found;
}

long status_number(pid_t pid, const char *word)
{
	char text[STATUS_TEXT];
	const char *found = status_find(text, pid, word);

	return found ? strtol(found, NULL, 10) : -1;
}

/* The last of its numbers, each of which is one namespace further in. */
long status_inner_id(pid_t thread)
{
	char text[STATUS_TEXT], *rest;
	const char *found = status_find(text, thread, "NSpid");
	long id = thread;

	for (; found && *found && *found != '\n'; found = rest + strspn(rest, " \t"))
		id = strtol(found, &rest, 10);
	return id;
}
