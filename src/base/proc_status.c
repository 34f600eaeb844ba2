#include "proc_status.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For the text behind a field: at most 32 numbers, one for each PID namespace. */
#define TEXT_ROOM 512

#define PROCESS_ROOM 16

/* The part of a line that was read so far. */
struct line {
	const char *field;
	size_t matched; /* how many characters of the field the line begins with */
	bool differs;
	char *text; /* the text behind the field, with room for TEXT_ROOM, and its length */
	size_t length;
};

static bool is_found(const struct line *line)
{
	return line->field[line->matched] == '\0';
}

static void take(struct line *line, char character)
{
	if (!is_found(line)) {
		line->differs = line->differs || character != line->field[line->matched];
		line->matched += !line->differs;
	} else if (line->length + 1 < TEXT_ROOM) {
		line->text[line->length++] = character;
	}
}

/* Finds the text behind the field; "" if there is none. A line can be very long (a user's groups): the text is cut. */
static void find(const char *process, const char *field, char text[TEXT_ROOM])
{
	const struct line start = {.field = field, .text = text};
	struct line line = start;
	char path[64], part[1024];
	ssize_t length = 0;
	bool found = false;

	snprintf(path, sizeof path, "/proc/%s/status", process);
	int file = open(path, O_RDONLY | O_CLOEXEC);

	while (file >= 0 && !found && (length = read(file, part, sizeof part)) > 0) {
		for (ssize_t at = 0; at < length && !found; at++) {
			found = part[at] == '\n' && is_found(&line);
			if (part[at] != '\n')
				take(&line, part[at]);
			else if (!found)
				line = start;
		}
	}
	if (file >= 0)
		close(file);
	text[found ? line.length : 0] = '\0';
}

uint64_t proc_status(const char *process, const char *field, uint64_t unknown)
{
	char text[TEXT_ROOM], *at = text;
	uint64_t number = unknown;

	find(process, field, text);
	while (*at) {
		if (isdigit((unsigned char)*at))
			number = strtoull(at, &at, 10);
		else
			at++;
	}
	return number;
}

static const char *name_of(pid_t pid, char process[PROCESS_ROOM])
{
	snprintf(process, PROCESS_ROOM, "%d", (int)pid);
	return process;
}

uint64_t proc_status_of(pid_t pid, const char *field, uint64_t unknown)
{
	char process[PROCESS_ROOM];

	return proc_status(name_of(pid, process), field, unknown);
}

bool proc_status_has(pid_t pid, const char *field, const char *text)
{
	char process[PROCESS_ROOM], line[TEXT_ROOM];

	find(name_of(pid, process), field, line);
	return strstr(line, text) != NULL;
}
