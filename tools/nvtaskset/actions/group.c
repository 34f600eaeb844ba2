#include "group.h"

#include "base/pids.h"
#include "base/proc.h"
#include "cli/actions.h"
#include "cli/time_change.h"
#include "cli/time_given.h"
#include "select/set.h"
#include "select/targets.h"
#include "show/json.h"
#include "state/group/file.h"
#include "state/group/find.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"

#include <limits.h>
#include <stdio.h>
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

/* --- who is in it -------------------------------------------------------------------------------------------------- */

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

/* A stray is in the group's control group only: having lost its environment and its descriptors, it has a partition of its
 * own, which does not follow. */
enum place {
	OUTSIDE,
	MEMBER,
	STRAY
};

static enum place place_of(const struct group *group, pid_t pid, struct group_identity identity)
{
	char cgroup[GROUP_CGROUP_MAX];
	enum place place = OUTSIDE;

	group_cgroup(group, cgroup);
	if (group_is_same(group->identity, identity))
		place = MEMBER;
	else if (group->is_file && strlen(cgroup) > 1 && is_in_cgroup(pid, cgroup))
		place = STRAY;
	return place;
}

struct members {
	size_t count;
	struct member {
		pid_t pid;
		enum place place;
		bool may_obey;                    /* no obstacle at the first look */
		struct segment_revision revision; /* before a change */
		struct segment_time time;
	} *list;
};

static int add_member(struct members *members, const struct member *member, struct error *error)
{
	struct member *more = realloc(members->list, (members->count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	members->list = more;
	members->list[members->count++] = *member;
	return 0;
}

static int look_at(struct members *members, const struct group *group, pid_t pid, struct error *error)
{
	struct segment segment;
	struct member member = {.pid = pid, .place = OUTSIDE};
	uint64_t number;
	int result = 0;

	if (segment_open(&segment, pid, NULL) != SEGMENT_FOUND)
		return 0;
	member.place = place_of(group, pid, segment.group.identity);
	if (member.place != OUTSIDE && segment_read(&segment, &member.revision, &number)) {
		segment_read_time(&segment, &member.time);
		member.may_obey = !segment_obstacle(&segment, pid);
		result = add_member(members, &member, error);
	}
	segment_close(&segment);
	return result;
}

static int find_members(struct members *members, const struct group *group, struct error *error)
{
	struct pids all;
	int result = 0;

	if (pids_all(&all, error) < 0)
		return -1;
	for (size_t i = 0; result == 0 && i < all.count; i++)
		result = look_at(members, group, all.list[i], error);
	free(all.list);
	return result;
}

/* --- changing ------------------------------------------------------------------------------------------------------ */

/* Strays are changed one by one. One may have ended, and its pid may be a stranger's: what is open then is looked at
 * again. */
static int change_strays(const struct members *members, const struct group *group, const struct segment_revision *wanted,
                         struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < members->count; i++) {
		struct editor editor;
		struct error why;

		if (members->list[i].place != STRAY || editor_open(&editor, members->list[i].pid, &why) != SEGMENT_FOUND)
			continue;
		if (place_of(group, editor.pid, editor.segment.group.identity) == STRAY)
			result = editor_change(&editor, 1, wanted, error);
		editor_close(&editor);
	}
	return result;
}

/* `before` is what the group has. */
static int check_times(const struct members *members, const struct options *options, const struct segment_revision *before,
                       struct error *error)
{
	int result = time_check_policy(before, &options->time, error);

	if (result < 0)
		error_reword(error, "--group %.60s: %.200s", options->group, error->reason);
	for (size_t i = 0; result == 0 && i < members->count; i++)
		result = time_check(members->list[i].pid, &members->list[i].revision, &options->time, error);
	return result;
}

/* What became in its members of what the group was given of the time. */
static void see_times(struct members *members)
{
	double end_ms = time_wait_end();

	for (size_t i = 0; i < members->count; i++) {
		struct segment segment;

		if (segment_open(&segment, members->list[i].pid, NULL) != SEGMENT_FOUND)
			continue;
		time_wait(&segment, end_ms);
		segment_read_time(&segment, &members->list[i].time);
		segment_close(&segment);
	}
}

/* -1 with the reason if a member does not obey. One that has ended meanwhile need not. */
static int check_members(const struct members *members, const struct segment_revision *given, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < members->count; i++) {
		const struct member *member = &members->list[i];
		const char *refusal = time_refusal(&member->time, given);
		struct editor editor;
		struct error why;

		if ((member->may_obey && !refusal) || editor_open(&editor, member->pid, &why) != SEGMENT_FOUND)
			continue;
		const char *obstacle = target_obstacle(&editor);

		if (!obstacle)
			obstacle = refusal;
		if (obstacle)
			result = error_set(error, "pid %d: %s", (int)editor.pid, obstacle);
		editor_close(&editor);
	}
	return result;
}

/* What there is to choose from with -n: what the group has, and what nobody has. A file's directory says what other groups
 * have whose processes may not be seen; it stays locked until `lock` is closed. */
static int find_wanted(struct segment_revision *wanted, const struct group *group, const struct options *options,
                       const struct gpu_choices *chosen, const struct topology_list *list, int *lock, struct error *error)
{
	struct segment_revision taken = {.count = 0};
	const struct set_limits limits = {.group = group, .taken = &taken};
	bool claims = options->notation == NOTATION_COUNT && group->is_file;
	char path[PATH_MAX];

	if (claims && !strchr(options->group, '/'))
		return error_set(error, "--group %.60s: -n needs the path of its file, in whose directory TPCs are claimed",
		                 options->group);
	if (claims && !realpath(options->group, path))
		return error_set_errno(error, "%.200s", options->group);
	if (claims && !options->dry_run)
		*lock = group_file_lock_directory(path, error);
	if ((claims && !options->dry_run && *lock < 0) ||
	    (claims && group_file_add_taken(&taken, path, group->identity, error) < 0))
		return -1;
	return set_find(wanted, options, chosen, list, &limits, error);
}

/* --- reporting ----------------------------------------------------------------------------------------------------- */

static void show(const struct options *options, const struct gpu_choices *chosen, const struct segment_revision *revision,
                 const char *when)
{
	for (unsigned int i = 0; i < chosen->count; i++) {
		const struct topology *gpu = chosen->choices[i].gpu;
		const struct segment_partition *partition = segment_find(revision, gpu->pci);
		struct tpcset set = partition ? partition->set : topology_all(gpu);
		char pci[PCI_ADDRESS_TEXT], text[TPCSET_TEXT], where[PCI_ADDRESS_TEXT + 16] = "";

		if (chosen->count > 1)
			snprintf(where, sizeof where, " on GPU %s", pci_address_format(gpu->pci, pci));
		printf("group %s's %s %s%s: %s\n", options->group, when, set_noun(options->notation), where,
		       set_format(&set, options->notation, text));
	}
}

/* A line for each that the group was given of the time. */
static void show_time(const struct options *options, const struct segment_revision *revision)
{
	char text[TIME_TEXT], other[TIME_TEXT];

	for (enum time_kind kind = 0; kind < TIME_KINDS; kind++) {
		if (time_format(revision, kind, text))
			printf("group %s's %s %s: %s\n", options->group, time_format(&options->time, kind, other) ? "new" : "current",
			       time_name(kind), text);
	}
}

static int write_document(const struct group *group, const struct members *members, const struct gpu_choices *chosen,
                          const struct segment_revision *before, bool changed, const struct topology_list *list,
                          struct error *error)
{
	json_t *document = json_partitions();
	struct segment_revision now = *before;
	char name[GROUP_NAME_MAX];
	int result;

	group_resolve(group, &now);
	result = json_add_group(document, group_name(group, name), chosen, &now, changed ? before : NULL, list, error);
	for (size_t i = 0; result == 0 && i < members->count; i++) {
		const struct member *member = &members->list[i];

		now = member->revision;
		if (member->place == MEMBER)
			group_resolve(group, &now);
		result = json_add_partition(document, member->pid, chosen, &now, changed ? &member->revision : NULL,
		                            &member->time, list, error);
	}
	if (result == 0)
		return json_write(document, false, stdout, error);
	json_decref(document);
	return result;
}

static int report(const struct group *group, const struct members *members, const struct options *options,
                  const struct gpu_choices *chosen, const struct segment_revision *before, bool changed,
                  const struct topology_list *list, struct error *error)
{
	struct segment_revision now = *before;
	int result = 0;

	group_resolve(group, &now);
	if (options->json) {
		result = write_document(group, members, chosen, before, changed, list, error);
	} else {
		show(options, chosen, before, "current");
		if (options->action == ACTION_CHANGE)
			show(options, chosen, &now, "new");
		show_time(options, &now);
	}
	return result == 0 ? check_members(members, &options->time, error) : result;
}

/* The group has changed: strays follow, and what was given of the time shows what becomes of it. */
static int follow(const struct group *group, struct members *members, const struct segment_revision *wanted, struct error *error)
{
	int result = change_strays(members, group, wanted, error);

	if (result == 0 && segment_time_is_given(wanted))
		see_times(members);
	return result;
}

/* After the change, a failure does not undo it. */
static int act(struct group *group, struct members *members, const struct options *options,
               const struct topology_list *list, struct error *error)
{
	static struct segment_revision before, wanted;
	struct gpu_choices chosen;
	uint64_t number;
	int lock = -1, status = EXIT_FAILURE;
	bool sets = options->action == ACTION_CHANGE, changes = sets || segment_time_is_given(&options->time);

	wanted = (struct segment_revision){.count = 0};
	if (!group_read(group, &before, &number))
		error_set(error, "--group %.60s: it is damaged", options->group);
	else if (target_gpus(&chosen, options, list, &before, error) == 0 &&
	         (!sets || find_wanted(&wanted, group, options, &chosen, list, &lock, error) == 0) &&
	         check_times(members, options, &before, error) == 0)
		status = EXIT_SUCCESS;
	segment_put_time(&wanted, &options->time);
	if (status == EXIT_SUCCESS && options->dry_run)
		set_print(&wanted);
	else if (status == EXIT_SUCCESS && changes && group_change(group, &wanted, error) < 0)
		status = EXIT_FAILURE;
	else if (status == EXIT_SUCCESS && ((changes && follow(group, members, &wanted, error) < 0) ||
	                                    report(group, members, options, &chosen, &before, changes, list, error) < 0))
		status = changes ? EXIT_CHANGED : EXIT_FAILURE;
	if (lock >= 0)
		close(lock);
	return status;
}

int group_action(const struct options *options, struct error *error)
{
	static struct topology_list list; /* large */
	struct members members = {.count = 0};
	struct group group;
	int status = EXIT_FAILURE;

	if (group_target(&group, options->group, error) < 0)
		return status;
	if (topology_load(&list, error) == 0 && find_members(&members, &group, error) == 0)
		status = act(&group, &members, options, &list, error);
	free(members.list);
	group_close(&group);
	return status;
}
