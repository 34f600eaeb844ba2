#include "proc_stat.h"

#include "proc.h"

#include <stdlib.h>
#include <string.h>

#define STAT_STATE 3

void proc_stat_read(pid_t pid, char text[PROC_STAT_TEXT])
{
	proc_read_text(text, PROC_STAT_TEXT, "/proc/%d/stat", (int)pid);
}

/* The blank in front of a field; NULL if there is none. */
static const char *find(const char *text, int number)
{
	const char *at = strrchr(text, ')');

	for (int field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	return at;
}

char proc_stat_state(const char *text)
{
	const char *at = find(text, STAT_STATE);

	return at ? at[1] : '\0';
}

uint64_t proc_stat_field(const char *text, int number)
{
	const char *at = find(text, number);

	return at ? strtoull(at, NULL, 10) : 0;
}
