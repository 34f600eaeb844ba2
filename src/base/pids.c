#include "pids.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>

int pids_add(struct pids *pids, pid_t pid, struct error *error)
{
	pid_t *more = realloc(pids->list, (pids->count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	pids->list = more;
	pids->list[pids->count++] = pid;
	return 0;
}

bool pids_have(const struct pids *pids, pid_t pid)
{
	bool found = false;

	for (size_t i = 0; i < pids->count && !found; i++)
		found = pids->list[i] == pid;
	return found;
}

int pids_all(struct pids *pids, struct error *error)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	int result = 0;

	*pids = (struct pids){.count = 0};
	if (!directory)
		return error_set_errno(error, "/proc");
	while (result == 0 && (entry = readdir(directory))) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;

		if (pid > 0)
			result = pids_add(pids, pid, error);
	}
	closedir(directory);
	/* /proc shows at least the calling process. */
	if (result == 0 && pids->count == 0)
		result = error_set(error, "/proc is not mounted: processes cannot be found");
	if (result < 0) {
		free(pids->list);
		*pids = (struct pids){.count = 0};
	}
	return result;
}
