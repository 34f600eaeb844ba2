#include "proc_status.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What has been read of a line. */
struct line {
	const char *field;
	size_t matched; /* characters of the field, as long as the line begins with it */
	bool differs, in_number;
	uint64_t number; /* the last one behind the field */
};

static void take(struct line *line, char character)
{
	if (line->field[line->matched] != '\0') {
		line->differs = line->differs || character != line->field[line->matched];
		line->matched += !line->differs;
	} else if (isdigit((unsigned char)character)) {
		line->number = (line->in_number ? line->number * 10 : 0) + (uint64_t)(character - '0');
		line->in_number = true;
	} else {
		line->in_number = false;
	}
}

static bool is_found(const struct line *line)
{
	return line->field[line->matched] == '\0';
}

/* A line can be as long as a user has groups. */
uint64_t proc_status(const char *process, const char *field, uint64_t unknown)
{
	const struct line start = {.field = field, .number = unknown};
	struct line line = start;
	char path[64], text[1024];
	ssize_t length = 0;
	bool found = false;

	snprintf(path, sizeof path, "/proc/%s/status", process);
	int file = open(path, O_RDONLY | O_CLOEXEC);

	while (file >= 0 && !found && (length = read(file, text, sizeof text)) > 0) {
		for (ssize_t at = 0; at < length && !found; at++) {
			found = text[at] == '\n' && is_found(&line);
			if (text[at] != '\n')
				take(&line, text[at]);
			else if (!found)
				line = start;
		}
	}
	if (file >= 0)
		close(file);
	return found ? line.number : unknown;
}
