#include "ancestry.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "PID (NAME) STATE PARENT …", and a name can have all of these characters too. */
pid_t ancestry_parent(pid_t pid)
{
	char path[64], text[512];
	int parent = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;

	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = '\0';
	const char *after = strrchr(text, ')');

	return after && sscanf(after, ") %*c %d", &parent) == 1 ? (pid_t)parent : 0;
}

static int add(struct pids *pids, pid_t pid, struct error *error)
{
	pid_t *more = realloc(pids->list, (pids->count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	pids->list = more;
	pids->list[pids->count++] = pid;
	return 0;
}

static bool has(const struct pids *pids, pid_t pid)
{
	bool found = false;

	for (size_t i = 0; i < pids->count; i++)
		found = found || pids->list[i] == pid;
	return found;
}

/* Every process of the machine, and whose child each is. */
static int read_all(struct pids *pids, struct pids *parents, struct error *error)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	int result = directory ? 0 : error_set_errno(error, "/proc");

	while (result == 0 && (entry = readdir(directory))) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;

		if (pid > 0) {
			result = add(pids, pid, error);
			if (result == 0)
				result = add(parents, ancestry_parent(pid), error);
		}
	}
	if (directory)
		closedir(directory);
	return result;
}

int ancestry_family(struct pids *family, pid_t pid, struct error *error)
{
	struct pids all = {.count = 0}, parents = {.count = 0};
	size_t before = 0;

	*family = (struct pids){.count = 0};
	int result = read_all(&all, &parents, error);

	if (result == 0)
		result = add(family, pid, error);
	/* A generation at a time. */
	while (result == 0 && family->count > before) {
		before = family->count;
		for (size_t i = 0; result == 0 && i < all.count; i++) {
			if (has(family, parents.list[i]) && !has(family, all.list[i]))
				result = add(family, all.list[i], error);
		}
	}
	free(all.list);
	free(parents.list);
	if (result < 0)
		free(family->list);
	return result;
}

int ancestry_alone(struct pids *family, pid_t pid, struct error *error)
{
	*family = (struct pids){.count = 0};
	return add(family, pid, error);
}
