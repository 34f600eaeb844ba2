#include "parent.h"

#include "proc_stat.h"

#define STAT_PARENT 4

pid_t parent_of(pid_t pid)
{
	char stat[PROC_STAT_TEXT];

	proc_stat_read(pid, stat);
	return (pid_t)proc_stat_field(stat, STAT_PARENT);
}
