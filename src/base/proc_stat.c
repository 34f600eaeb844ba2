#include "proc_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void proc_stat_read(pid_t pid, char text[PROC_STAT_TEXT])
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file >= 0 ? read(file, text, PROC_STAT_TEXT - 1) : 0;

	text[length > 0 ? length : 0] = '\0';
	if (file >= 0)
		close(file);
}

uint64_t proc_stat_field(const char *text, int number)
{
	const char *at = strrchr(text, ')');

	for (int field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}
