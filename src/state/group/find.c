#include "find.h"

#include "base/memfd_find.h"
#include "base/proc.h"
#include "state/handle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- a descriptor ------------------------------------------------------------------------------------------------- */

/* File systems that answer without another program. A program can make a reader wait for ever, as by FUSE, and by an
 * overlay over FUSE: so an overlay is quick only if the overlay is ours. */
static bool is_quick(const char *type, bool is_ours)
{
	static const char *const quick[] = {"tmpfs", "ext4", "ext3", "ext2", "xfs", "btrfs", "ramfs", "f2fs", "zfs"};
	bool found = is_ours && strcmp(type, "overlay") == 0;

	for (size_t i = 0; i < sizeof quick / sizeof quick[0] && !found; i++)
		found = strcmp(type, quick[i]) == 0;
	return found;
}

static int mount_of(int file)
{
	char name[32], text[32];
	int mount = -1;

	snprintf(name, sizeof name, "fdinfo/%d", file);
	proc_find(0, name, NULL, "mnt_id:", text, sizeof text);
	sscanf(text, "%d", &mount);
	return mount;
}

/* Whether the file is on the file system of our root: we wait for the root in any case. In a chroot whose root is no
 * mount point, mountinfo has no line of the root's file system. */
static bool is_on_our_root(int file)
{
	int root = open("/", O_PATH | O_CLOEXEC), mount = root >= 0 ? mount_of(root) : -1;
	uint64_t device = group_identity_of(root).device;
	bool is_there = mount >= 0 && mount == mount_of(file);

	is_there = is_there || (device != 0 && device == group_identity_of(file).device);

	if (root >= 0)
		close(root);
	return is_there;
}

/* Whether process `pid` has a mount of the file's file system, of a quick type, at any place: a part may be mounted
 * into a container. Never asked about another user's process, since a hostile user can mount anything. */
static bool is_on_quick_mount(pid_t pid, int file, bool is_ours)
{
	char *line = NULL, type[32];
	struct group_identity identity = group_identity_of(file);
	size_t size = 0;
	int mount = mount_of(file), number;
	unsigned int major, minor;
	bool found = false;
	FILE *mounts = proc_stream(pid, "mountinfo");

	while (mounts && !found && getline(&line, &size, mounts) > 0) {
		const char *end = strstr(line, " - ");
		bool is_it = end && sscanf(line, "%d %*d %u:%u", &number, &major, &minor) == 3 &&
		             (number == mount || ((uint64_t)major << 32 | minor) == identity.device);

		found = is_it && sscanf(end, " - %31s", type) == 1 && is_quick(type, is_ours);
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

/* Mounts of a process of our user count too, as in a container of the process. */
static bool answers(int file, const struct group_lead *lead)
{
	bool is_ours = lead->user == geteuid();

	return memfd_is_one(file) || is_on_our_root(file) || is_on_quick_mount(0, file, is_ours) ||
	       (is_ours && is_on_quick_mount(lead->pid, file, true));
}

/* A process may name any group. We believe the process about groups of the process's user, and about root's group if
 * the process has the group open. We believe our own processes about all groups that we obey. */
static bool may_be_in(uid_t user, const struct group *group, bool is_open_there)
{
	return group->owner == user || (is_open_there && group->owner == 0) ||
	       (user == geteuid() && group_is_trusted(group));
}

bool group_open_of(struct group *group, const struct group_lead *lead, enum group_use use)
{
	char path[32];
	int file = -1;

	*group = group_closed;
	snprintf(path, sizeof path, "fd/%d", lead->number);
	int name = proc_open(lead->pid, path, O_PATH);

	if (name >= 0 && group_is_same(group_identity_of(name), lead->identity) && answers(name, lead))
		file = memfd_reopen(name, use == GROUP_TO_CHANGE);
	if (name >= 0)
		close(name);
	if (file >= 0 && group_map(group, file, NULL) == 0 && !may_be_in(lead->user, group, true))
		group_close(group);
	return group->memory != NULL;
}

/* --- room --------------------------------------------------------------------------------------------------------- */

/* The search for a group opens a directory, a file and the file again, and keeps the group. */
#define FILES_OF_SEARCH 4

bool group_has_room_for_search(void)
{
	int files[FILES_OF_SEARCH], count = 0;

	while (count < FILES_OF_SEARCH && (files[count] = open("/", O_PATH | O_CLOEXEC)) >= 0)
		count++;
	bool has_room = count == FILES_OF_SEARCH;

	while (count > 0)
		close(files[--count]);
	return has_room;
}

/* --- all processes ------------------------------------------------------------------------------------------------ */

/* What to look for: a group in memory, by the identity and by the user that names the group; or by name and owner. */
struct search {
	struct group_identity identity;
	uid_t user;
	const char *name;
	uid_t owner;
	struct group found; /* the last match */
	int count;          /* different matches */
};

static bool is_wanted(const struct search *search, const struct group *group)
{
	char name[GROUP_NAME_MAX];

	return search->name ? strcmp(group_name(group, name), search->name) == 0 &&
	                              (search->owner == (uid_t)-1 || search->owner == group->owner)
	                    : group_is_same(group->identity, search->identity) && may_be_in(search->user, group, false);
}

/* A group with a certain identity is sought no further. */
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
	return !search->name && search->count > 0;
}

static void look_at_all(struct search *search, struct purse *purse)
{
	const struct memfd_search memfds = {
		.link = MEMFD_LINK(GROUP_MEMORY_NAME),
		.lowest_of = handle_lowest_of,
		.is_sought = look_at_file,
		.context = search,
	};

	search->found = group_closed;
	int file = memfd_find_anywhere(&memfds, purse);

	if (file >= 0)
		close(file);
}

bool group_open_anywhere(struct group *group, struct group_identity identity, uid_t user, enum group_use use,
                         struct purse *purse)
{
	struct search search = {.identity = identity, .user = user};

	look_at_all(&search, purse);
	*group = search.found;
	if (use == GROUP_TO_OBEY)
		group_close_file(group);
	return group->memory != NULL;
}

int group_open_named(struct group *group, const char *name, uid_t owner)
{
	struct search search = {.name = name, .owner = owner, .found = group_closed};
	bool has_room = group_has_room_for_search();

	if (has_room)
		look_at_all(&search, NULL);
	*group = search.found;
	return !has_room ? -1 : search.count < 2 ? search.count : 2;
}

/* --- this process's own ------------------------------------------------------------------------------------------- */

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
	return copy >= 0 ? handle_make(copy, is_formers ? descriptor : -1, 1) : -1;
}

int group_open_to_write(const struct group *of, int descriptor)
{
	const struct group_lead own = {.pid = getpid(),
	                               .number = descriptor,
	                               .identity = of->identity,
	                               .user = geteuid()};
	struct group group = group_closed;
	int file = -1;

	if (of->memory && !of->is_copy && group_open_of(&group, &own, GROUP_TO_CHANGE)) {
		file = group.file;
		group.file = -1;
	}
	group_close(&group);
	return file;
}

bool group_open_inherited(struct group *group)
{
	int number = handle_next(0, MEMFD_LINK(GROUP_MEMORY_NAME), GROUP_FILE_SIZE);
	const struct group_lead lead = {
		.pid = getpid(), .number = number, .identity = group_identity_of(number), .user = geteuid()};

	*group = group_closed;
	return number >= 0 && handle_is_passed_on(number) && group_open_of(group, &lead, GROUP_TO_OBEY);
}
