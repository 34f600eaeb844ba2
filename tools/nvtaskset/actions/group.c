#include "group.h"

#include "base/proc.h"
#include "state/group/file.h"
#include "state/group/find.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CGROUPS_MAX 4096

/* --- by its name -------------------------------------------------------------------------------------------------- */

static bool is_number(const char *text)
{
	return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static int open_of_process(struct group *group, const char *text, struct error *error)
{
	long pid = strtol(text, NULL, 10);
	struct editor editor;

	*group = group_closed;
	if (pid < 1 || pid > INT_MAX)
		return error_set(error, "--group %.40s: not a process id", text);
	/* This waits for a process that has just started. */
	enum segment_state state = editor_open(&editor, (pid_t)pid, error);

	if (state == SEGMENT_FOUND)
		editor_close(&editor);
	if (state != SEGMENT_FOUND && state != SEGMENT_SHARED)
		return -1;
	return segment_open_group_of((pid_t)pid, group) ? 0 : error_set(error, "pid %ld: is in no group of its user's that can be "
	                                                                       "reached", pid);
}

/* The group of a file is known by its members: its name alone does not tell where it is. */
static int find_file(struct group *group, const char *name, struct error *error)
{
	struct pids all;
	struct segment segment;
	char text[GROUP_NAME_MAX];
	int found = 0;

	if (pids_all(&all, error) < 0)
		return -1;
	for (size_t i = 0; i < all.count; i++) {
		bool is_open = segment_open(&segment, all.list[i], NULL) == SEGMENT_FOUND;
		bool is_new = is_open && segment.group.is_file && strcmp(group_name(&segment.group, text), name) == 0 &&
		              !group_is_same(segment.group.identity, group->identity);

		if (is_new) {
			group_close(group);
			*group = segment.group;
			segment.group = group_closed;
			found++;
		}
		segment_close(&segment);
	}
	free(all.list);
	return found;
}

static int open_named(struct group *group, const char *name, struct error *error)
{
	int found = 0;

	if (!group_name_is_valid(name))
		return error_set(error, "--group %.40s: not a group's name, nor a process id, nor the path of a file (with /)", name);
	/* Other users' groups make no name of ours mean several. */
	found = group_open_named(group, name, geteuid());
	if (found == 0 && geteuid() == 0)
		found = group_open_named(group, name, (uid_t)-1);
	if (found == 0)
		found = find_file(group, name, error);
	if (found > 1) {
		group_close(group);
		return error_set(error, "--group %s: there are several; name a process of the one that you mean: --group PID", name);
	}
	return found == 1 ? 0 : found < 0 ? -1 : error_set(error, "--group %s: no program that you may look at is in it", name);
}

int group_target(struct group *group, const char *text, struct error *error)
{
	char path[PATH_MAX];
	int result;

	*group = group_closed;
	if (strchr(text, '/'))
		result = realpath(text, path) ? group_file_open(group, text[0] == '/' ? text : path, error)
		                              : error_set_errno(error, "%.200s", text);
	else if (is_number(text))
		result = open_of_process(group, text, error);
	else
		result = open_named(group, text, error);
	return result;
}

/* --- its processes -------------------------------------------------------------------------------------------------- */

/* Whether one of the lines of /proc/PID/cgroup, "0::/a/b", ends with this path or leads below it. */
static bool is_in_cgroup(pid_t pid, const char *cgroup)
{
	char text[CGROUPS_MAX];
	size_t length = strlen(cgroup);
	bool found = false;

	proc_read_text(text, sizeof text, "/proc/%d/cgroup", (int)pid);
	for (char *save, *line = strtok_r(text, "\n", &save); line && !found; line = strtok_r(NULL, "\n", &save)) {
		const char *path = strchr(line, ':');

		path = path ? strchr(path + 1, ':') : NULL;
		found = path && strncmp(path + 1, cgroup, length) == 0 && (path[1 + length] == '\0' || path[1 + length] == '/');
	}
	return found;
}

enum group_place group_place_of(const struct group *group, pid_t pid, struct group_identity identity)
{
	char cgroup[GROUP_CGROUP_MAX];
	enum group_place place = GROUP_OUTSIDE;

	group_cgroup(group, cgroup);
	if (group_is_same(group->identity, identity))
		place = GROUP_MEMBER;
	else if (group->is_file && strlen(cgroup) > 1 && is_in_cgroup(pid, cgroup))
		place = GROUP_STRAY;
	return place;
}

int group_find_processes(struct pids *found, const struct group *group, struct error *error)
{
	struct pids all;
	struct segment segment;
	int result = pids_all(&all, error);

	if (result < 0)
		return -1;
	for (size_t i = 0; result == 0 && i < all.count; i++) {
		if (segment_open(&segment, all.list[i], NULL) != SEGMENT_FOUND)
			continue;
		if (group_place_of(group, all.list[i], segment.group.identity) != GROUP_OUTSIDE)
			result = pids_add(found, all.list[i], error);
		segment_close(&segment);
	}
	free(all.list);
	return result;
}
