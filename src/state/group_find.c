#include "group_find.h"

#include "base/memfd_find.h"
#include "base/pids.h"
#include "base/proc.h"
#include "handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- one descriptor ----------------------------------------------------------------------------------------------- */

/* File systems that answer by themselves. A program can make others wait for ever, by FUSE for example. */
static bool is_quick(const char *type)
{
	static const char *const quick[] = {"tmpfs", "ext4", "ext3", "ext2", "xfs", "btrfs", "overlay", "ramfs", "f2fs", "zfs"};
	bool found = false;

	for (size_t i = 0; i < sizeof quick / sizeof quick[0] && !found; i++)
		found = strcmp(type, quick[i]) == 0;
	return found;
}

/* The number of the mount that one of our own descriptors is on; -1 if the kernel does not tell. */
static int mount_of(int file)
{
	char text[512];
	int mount = -1;

	proc_read_text(text, sizeof text, "/proc/self/fdinfo/%d", file);
	const char *line = strstr(text, "mnt_id:");

	if (line)
		sscanf(line, "mnt_id: %d", &mount);
	return mount;
}

/* Whether this process has that mount, of a quick file system. */
static bool has_quick_mount(const char *process, int mount)
{
	char path[64], *line = NULL, type[32];
	size_t size = 0;
	int number;
	bool found = false, is_this = false;

	snprintf(path, sizeof path, "/proc/%s/mountinfo", process);
	FILE *mounts = fopen(path, "re");

	while (mounts && !is_this && getline(&line, &size, mounts) > 0) {
		const char *end = strstr(line, " - ");

		is_this = end && sscanf(line, "%d", &number) == 1 && number == mount;
		found = is_this && sscanf(end, " - %31s", type) == 1 && is_quick(type);
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

static bool answers(int file, pid_t pid)
{
	char process[16];
	int mount = memfd_is_one(file) ? 0 : mount_of(file);

	snprintf(process, sizeof process, "%d", (int)pid);
	return memfd_is_one(file) || (mount >= 0 && (has_quick_mount("self", mount) || has_quick_mount(process, mount)));
}

/* Opens the file that `name`, a descriptor of ours, names. */
static int open_again(int name, enum group_use use)
{
	const int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	char link[32];

	snprintf(link, sizeof link, "/proc/self/fd/%d", name);
	int file = use == GROUP_TO_CHANGE ? open(link, O_RDWR | flags) : -1;

	return file < 0 ? open(link, O_RDONLY | flags) : file;
}

bool group_open_of(struct group *group, pid_t pid, int number, struct group_identity identity, enum group_use use)
{
	char path[64];
	int file = -1;

	*group = group_closed;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, number);
	int name = open(path, O_PATH | O_CLOEXEC);

	if (name >= 0 && group_is_same(group_identity_of(name), identity) && answers(name, pid))
		file = open_again(name, use);
	if (name >= 0)
		close(name);
	return file >= 0 && group_map(group, file, NULL) == 0;
}

/* --- all processes ------------------------------------------------------------------------------------------------ */

/* What is looked for: a group in memory, by its identity or by its name and owner. */
struct search {
	struct group_identity identity;
	const char *name;
	uid_t owner;
	struct group found; /* the last */
	int count;          /* of different ones */
};

static bool is_wanted(const struct search *search, const struct group *group)
{
	char name[GROUP_NAME_MAX];

	return search->name ? strcmp(group_name(group, name), search->name) == 0 &&
	                              (search->owner == (uid_t)-1 || search->owner == group->owner)
	                    : group_is_same(group->identity, search->identity);
}

/* Always false, so that the search goes on with the next descriptor. */
static bool look_at_file(int file, int number, void *context)
{
	struct search *search = context;
	struct group group;
	bool is_known = group_is_same(group_identity_of(file), search->found.identity);
	int copy = is_known ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 3);

	(void)number;
	if (copy < 0 || group_map(&group, copy, NULL) < 0)
		return false;
	if (is_wanted(search, &group)) {
		group_close(&search->found);
		search->found = group;
		search->count++;
	} else {
		group_close(&group);
	}
	return false;
}

static void look_at_process(struct search *search, pid_t pid)
{
	struct memfd_search memfds = {
		.first = handle_lowest_of(pid), .link = MEMFD_LINK(GROUP_MEMORY_NAME), .is_sought = look_at_file, .context = search};
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	memfds.directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (memfds.directory >= 0) {
		memfd_find(&memfds);
		close(memfds.directory);
	}
}

static void look_at_all(struct search *search)
{
	struct pids pids;

	search->found = group_closed;
	if (pids_all(&pids, NULL) < 0)
		return;
	for (size_t i = 0; i < pids.count && (search->name || search->count == 0); i++)
		look_at_process(search, pids.list[i]);
	free(pids.list);
}

bool group_open_anywhere(struct group *group, struct group_identity identity, enum group_use use)
{
	struct search search = {.identity = identity};

	look_at_all(&search);
	*group = search.found;
	if (use == GROUP_TO_OBEY)
		group_close_file(group);
	return group->memory != NULL;
}

int group_open_named(struct group *group, const char *name, uid_t owner)
{
	struct search search = {.name = name, .owner = owner};

	look_at_all(&search);
	*group = search.found;
	return search.count < 2 ? search.count : 2;
}

/* --- this process's own -------------------------------------------------------------------------------------------- */

static bool names(int number, struct group_identity identity)
{
	return group_is_same(group_identity_of(number), identity) && handle_is_passed_on(number);
}

int group_keep(const struct group *group, struct group_identity former, int descriptor)
{
	bool is_formers = descriptor >= 0 && names(descriptor, former);
	int copy = -1;

	if (is_formers && group_is_same(group->identity, former))
		return descriptor;
	if (group->file >= 0)
		copy = fcntl(group->file, F_DUPFD_CLOEXEC, 3);
	return copy >= 0 ? handle_make_second(copy, is_formers ? descriptor : -1) : -1;
}

bool group_open_inherited(struct group *group)
{
	int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), number = -1;

	*group = group_closed;
	if (directory >= 0) {
		number = memfd_next(directory, 0, MEMFD_LINK(GROUP_MEMORY_NAME));
		close(directory);
	}
	return number >= 0 && handle_is_passed_on(number) &&
	       group_open_of(group, getpid(), number, group_identity_of(number), GROUP_TO_OBEY);
}
