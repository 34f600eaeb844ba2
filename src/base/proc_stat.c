#include "proc_stat.h"

#include "proc.h"

#include <stdlib.h>
#include <string.h>

void proc_stat_read(pid_t pid, char text[PROC_STAT_TEXT])
{
	proc_read_text(text, PROC_STAT_TEXT, "/proc/%d/stat", (int)pid);
}

uint64_t proc_stat_field(const char *text, int number)
{
	const char *at = strrchr(text, ')');

	for (int field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}
