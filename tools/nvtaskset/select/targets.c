#include "targets.h"

#include "base/clock.h"
#include "base/proc.h"
#include "base/purse.h"
#include "state/group/file.h"
#include "state/group/find.h"
#include "state/segment/find.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long to wait for several processes, which may be about to get a partition. */
#define TREE_WAIT_MS 2000

/* How long to wait for a driver in the middle of loading. */
#define LOADING_WAIT_MS 2000

struct child {
	pid_t parent, pid;
};

static int by_parent(const void *a, const void *b)
{
	const struct child *left = a, *right = b;
	bool are_siblings = left->parent == right->parent;

	return are_siblings ? left->pid - right->pid : left->parent - right->parent;
}

/* All processes, in the order of by_parent. The caller frees the list. NULL with the reason. */
static struct child *list_children(size_t *count, struct error *error)
{
	struct pids all;
	struct child *children = NULL;

	if (pids_all(&all, error) < 0)
		return NULL;
	children = calloc(all.count, sizeof *children);
	for (size_t i = 0; children && i < all.count; i++)
		children[i] = (struct child){.parent = proc_parent(all.list[i]), .pid = all.list[i]};
	if (children)
		qsort(children, all.count, sizeof *children, by_parent);
	else
		error_set(error, "no memory");
	*count = all.count;
	free(all.list);
	return children;
}

/* Pids that the kernel has used again meanwhile may lead in a circle, back to the first process of the tree. */
static int add_children(struct pids *tree, pid_t parent, const struct child *children, size_t count,
                        struct error *error)
{
	size_t first = 0, end = count;
	int result = 0;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (children[middle].parent < parent)
			first = middle + 1;
		else
			end = middle;
	}
	for (; result == 0 && first < count && children[first].parent == parent; first++)
		result = children[first].pid != tree->list[0] ? pids_add(tree, children[first].pid, error) : 0;
	return result;
}

int targets_find_tree(struct pids *tree, pid_t pid, struct error *error)
{
	size_t count;
	struct child *children = list_children(&count, error);
	int result = children ? pids_add(tree, pid, error) : -1;

	for (size_t next = 0; result == 0 && next < tree->count; next++)
		result = add_children(tree, tree->list[next], children, count, error);
	free(children);
	return result;
}

static bool has_target(const struct targets *targets, pid_t pid)
{
	bool has = false;

	for (size_t i = 0; i < targets->count; i++)
		has = has || targets->editors[i].pid == pid;
	return has;
}

static int have_room(struct targets *targets, size_t count, struct error *error)
{
	struct editor *editors = realloc(targets->editors, count * sizeof *editors);
	struct target *list = realloc(targets->list, count * sizeof *list);

	if (editors)
		targets->editors = editors;
	if (list)
		targets->list = list;
	return editors && list ? 0 : error_set(error, "no memory");
}

/* Processes of another user, without CUDA, or started without us have no partition, as far as known. */
static bool may_have_partition(enum segment_state state)
{
	return state == SEGMENT_NOT_IN_FORCE || state == SEGMENT_CLOSED || state == SEGMENT_NOT_READY ||
	       state == SEGMENT_OTHER_VERSION || state == SEGMENT_FAILED;
}

/* Takes over the editor. */
static enum segment_state keep_target(struct targets *targets, const struct editor *opened, struct error *error)
{
	struct editor *editor = &targets->editors[targets->count];
	struct target *target = &targets->list[targets->count];
	enum segment_state state = SEGMENT_FOUND;

	*editor = *opened;
	if (editor_read(editor, &target->before, error) < 0) {
		state = editor_has_ended(editor) ? SEGMENT_NO_PROCESS : SEGMENT_FAILED;
		editor_close(editor);
	} else {
		target->now = target->before;
		targets->count++;
	}
	return state;
}

/* A process without a partition before is examined in full only while it makes a segment. */
static enum segment_state add_target(struct targets *targets, pid_t pid, struct purse *purse, struct error *error)
{
	struct editor editor;
	bool had_none = pids_have(&targets->without, pid);
	enum segment_state state = had_none ? editor_look(&editor, pid, purse) : SEGMENT_NOT_READY;

	if (state == SEGMENT_NOT_READY)
		state = editor_open(&editor, pid, purse, error);
	if (state == SEGMENT_FOUND)
		state = keep_target(targets, &editor, error);
	if (state != SEGMENT_FOUND && !had_none)
		pids_add(&targets->without, pid, NULL);
	return state;
}

int targets_add(struct targets *targets, const struct pids *pids, struct error *error)
{
	struct purse purse = {.wait_ms = TREE_WAIT_MS};
	struct error *left_out = &targets->left_out;

	if (have_room(targets, targets->count + pids->count, error) < 0)
		return -1;
	for (size_t i = 0; i < pids->count; i++) {
		pid_t pid = pids->list[i];
		struct error why = {.reason = ""};

		if (has_target(targets, pid) || !purse_begin(&purse, pid))
			continue;
		if (may_have_partition(add_target(targets, pid, &purse, &why)) && left_out->reason[0] == '\0')
			*left_out = why;
	}
	for (size_t i = 0; i < targets->count; i++)
		targets->editors[i].segment.purse = NULL;
	if (purse.is_short && left_out->reason[0] == '\0')
		error_set(left_out, "pid %d: some of its descendants are left out: those of a user have more open than "
		                    "can be looked at", (int)pids->list[0]);
	return 0;
}

int targets_open(struct targets *targets, const struct pids *pids, struct error *error)
{
	*targets = (struct targets){.count = 0};
	if (pids->count == 1)
		return have_room(targets, 1, error) == 0 &&
		       add_target(targets, pids->list[0], NULL, error) == SEGMENT_FOUND ? 0 : -1;
	if (targets_add(targets, pids, error) < 0)
		return -1;
	if (targets->count == 0 && targets->left_out.reason[0] != '\0')
		return error_pass(error, &targets->left_out);
	return targets->count > 0
	               ? 0 : error_set(error, "pid %d: neither it nor any of its %zu descendants has a partition",
	                           (int)pids->list[0], pids->count - 1);
}

void targets_close(struct targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		editor_close(&targets->editors[i]);
	free(targets->editors);
	free(targets->list);
	free(targets->without.list);
}

bool target_is_gone(const struct targets *targets, size_t number)
{
	return targets->count > 1 && editor_has_ended(&targets->editors[number]);
}

int targets_read(struct targets *targets, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++) {
		result = editor_read(&targets->editors[i], &targets->list[i].now, error);
		if (target_is_gone(targets, i))
			result = 0;
	}
	return result;
}

const char *target_obstacle(const struct editor *editor)
{
	const struct segment *segment = &editor->segment;
	const char *obstacle = segment_obstacle(segment, editor->pid);

	for (int waited = 0; obstacle && !segment_is_at_work(segment, editor->pid) && waited < LOADING_WAIT_MS &&
	                     !editor_has_ended(editor); waited++) {
		clock_pause_us(1000);
		obstacle = segment_obstacle(segment, editor->pid);
	}
	/* The library may have begun to work since. */
	return obstacle ? segment_obstacle(segment, editor->pid) : NULL;
}

int target_gpus(struct gpu_choices *chosen, const struct gpus_given *given, const struct topology_list *list,
                const struct segment_revision *revision, struct error *error)
{
	chosen->count = 0;
	for (uint32_t i = 0; given->count == 0 && i < revision->count; i++) {
		const struct topology *gpu = topology_find(list, revision->partitions[i].pci);

		if (gpu)
			chosen->choices[chosen->count++] = (struct gpu_choice){.gpu = gpu};
	}
	return chosen->count > 0 ? 0 : gpus_choose(chosen, list, given, error);
}

#define CGROUPS_MAX 4096

/* --- a group, by its name ----------------------------------------------------------------------------------------- */

static int open_of_process(struct group *group, const char *text, struct error *error)
{
	long pid = strtol(text, NULL, 10);
	struct editor editor;

	*group = group_closed;
	if (pid < 1 || pid > INT_MAX)
		return error_set(error, "--group %.40s: not a process id", text);
	/* Waits for a process that has just started. */
	enum segment_state state = editor_open(&editor, (pid_t)pid, NULL, error);

	if (state == SEGMENT_FOUND)
		editor_close(&editor);
	if (state != SEGMENT_FOUND && state != SEGMENT_SHARED)
		return -1;
	return segment_open_group_of((pid_t)pid, group) ? 0 : error_set(error, "pid %ld: is in no group of its user's "
	                                                                       "that can be reached", pid);
}

/* A file's group is known by its members: the name alone does not tell the place of the file. */
static int find_file(struct group *group, const char *name, struct error *error)
{
	struct pids all;
	struct segment segment;
	char text[GROUP_NAME_MAX];
	int found = 0;

	if (pids_all(&all, error) < 0)
		return -1;
	for (size_t i = 0; i < all.count; i++) {
		bool is_open = segment_open(&segment, all.list[i], NULL, NULL) == SEGMENT_FOUND;
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
		return error_set(error, "--group %.40s: not a group's name, nor a process id, nor the path of a file "
		                        "(with /)", name);
	/* Groups of other users do not make a name of ours ambiguous. */
	found = group_open_named(group, name, geteuid());
	if (found == 0 && geteuid() == 0)
		found = group_open_named(group, name, (uid_t)-1);
	if (found < 0)
		return error_set_errno(error, "--group %s", name);
	if (found == 0)
		found = find_file(group, name, error);
	if (found > 1) {
		group_close(group);
		return error_set(error, "--group %s: there are several; name a process of the one that you mean: "
		                        "--group PID", name);
	}
	return found == 1 ? 0 : found < 0 ? -1 :
	       error_set(error, "--group %s: no program that you may look at is in it", name);
}

int targets_group(struct group *group, const char *text, struct error *error)
{
	char path[PATH_MAX];
	int result;

	*group = group_closed;
	if (strchr(text, '/'))
		result = realpath(text, path) ? group_file_open(group, text[0] == '/' ? text : path, error)
		                              : error_set_errno(error, "%.200s", text);
	else if (text[0] != '\0' && text[strspn(text, "0123456789")] == '\0')
		result = open_of_process(group, text, error);
	else
		result = open_named(group, text, error);
	return result;
}

/* --- the processes of a group ------------------------------------------------------------------------------------- */

/* Whether a line of /proc/PID/cgroup, "0::/a/b", ends with the path or leads below the path. */
static bool is_in_cgroup(pid_t pid, const char *cgroup)
{
	char text[CGROUPS_MAX];
	size_t length = strlen(cgroup);
	bool found = false;

	proc_read_text(text, sizeof text, "/proc/%d/cgroup", (int)pid);
	for (char *save, *line = strtok_r(text, "\n", &save); line && !found; line = strtok_r(NULL, "\n", &save)) {
		const char *path = strchr(line, ':');

		path = path ? strchr(path + 1, ':') : NULL;
		found = path && strncmp(path + 1, cgroup, length) == 0 &&
		        (path[1 + length] == '\0' || path[1 + length] == '/');
	}
	return found;
}

enum group_place targets_place_in_group(const struct group *group, pid_t pid, struct group_identity identity)
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

int targets_open_group(struct targets *targets, const struct group *group, struct error *error)
{
	struct editor editor;
	struct pids all;
	int result = pids_all(&all, error);

	*targets = (struct targets){.count = 0};
	if (result < 0)
		return -1;
	for (size_t i = 0; result == 0 && i < all.count; i++) {
		if (editor_look(&editor, all.list[i], NULL) != SEGMENT_FOUND)
			continue;
		bool is_in = targets_place_in_group(group, editor.pid, editor.segment.group.identity) != GROUP_OUTSIDE;

		result = is_in ? have_room(targets, targets->count + 1, error) : 0;
		if (is_in && result == 0)
			keep_target(targets, &editor, NULL);
		else
			editor_close(&editor);
	}
	free(all.list);
	return result;
}
