#include "group_note.h"

#include "base/proc.h"
#include "group.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

/* Where version 2 is: beside version 1, at the second place. NULL: at neither. */
static const char *find_top(void)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	const char *found = NULL;
	struct statfs status;

	for (size_t i = 0; i < sizeof places / sizeof places[0] && !found; i++) {
		if (statfs(places[i], &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC)
			found = places[i];
	}
	return found;
}

/* The directory of a control group. Returns how much of it is the top's; 0 if it cannot be seen from here: control groups
 * outside of this process's namespace are "/..". */
static size_t find_directory(char directory[PATH_MAX], const char *cgroup)
{
	const char *top = cgroup[0] == '/' && !strstr(cgroup, "/..") ? find_top() : NULL;
	bool fits = top && snprintf(directory, PATH_MAX, "%s%s", top, cgroup[1] ? cgroup : "") < PATH_MAX;

	return fits ? strlen(top) : 0;
}

static bool read_note(const char *directory, char path[PATH_MAX])
{
	ssize_t length = getxattr(directory, GROUP_NOTE_NAME, path, PATH_MAX - 1);

	path[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static bool is_trusted(const char *directory)
{
	struct stat status;

	return stat(directory, &status) == 0 && group_trusts(status.st_uid) && !(status.st_mode & (S_IWGRP | S_IWOTH));
}

/* Of version 2, as in "0::/a/b". NULL if there is none. */
static const char *own_cgroup(char text[PATH_MAX])
{
	proc_read_text(text, PATH_MAX, "/proc/self/cgroup");
	char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	char *cgroup = line ? strchr(line, '/') : NULL;

	if (cgroup)
		cgroup[strcspn(cgroup, "\n")] = '\0';
	return cgroup;
}

static bool find_note(char path[PATH_MAX])
{
	char text[PATH_MAX], directory[PATH_MAX];
	const char *cgroup = own_cgroup(text);
	size_t top = cgroup ? find_directory(directory, cgroup) : 0;
	bool found = false, is_below = top > 0;

	while (is_below && !found) {
		found = read_note(directory, path) && is_trusted(directory);
		is_below = strlen(directory) > top;
		*strrchr(directory, '/') = '\0';
	}
	return found;
}

void group_path_find(struct group_path *found, bool has_group)
{
	const char *path = secure_getenv(GROUP_FILE_ENVIRONMENT);
	int saved = errno;

	found->path = NULL;
	if (path && *path) {
		found->path = path;
		found->source = GROUP_FILE_ENVIRONMENT;
	} else if (!has_group && find_note(found->noted)) {
		found->path = found->noted;
		found->source = GROUP_NOTE_NAME " of its control group";
	}
	errno = saved;
}

/* Not at the top, which has all processes. */
void group_note_write(const char *cgroup, const char *path)
{
	char directory[PATH_MAX];

	if (strcmp(cgroup, "/") != 0 && find_directory(directory, cgroup) > 0)
		setxattr(directory, GROUP_NOTE_NAME, path, strlen(path), 0);
}

void group_note_remove(const char *cgroup, const char *path)
{
	char directory[PATH_MAX], noted[PATH_MAX];

	if (find_directory(directory, cgroup) > 0 && read_note(directory, noted) && strcmp(noted, path) == 0)
		removexattr(directory, GROUP_NOTE_NAME);
}
