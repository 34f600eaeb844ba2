#include "file.h"

#include "base/path.h"
#include "base/shared_file.h"
#include "layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_LIST ".new" /* of a list being made */

/* Pages of removed groups last as long as their containers run. */
#define PAGES (2 * POOL_GROUPS)

/* --- the list ----------------------------------------------------------------------------------------------------- */

struct list {
	int file; /* open as long as the list is locked */
	struct pool_memory *memory;
};

static void close_list(struct list *list)
{
	int saved = errno;

	if (list->memory)
		munmap(list->memory, sizeof *list->memory);
	if (list->file >= 0)
		close(list->file);
	*list = (struct list){.file = -1};
	errno = saved;
}

/* Waits for a lease: at most 45 s, the kernel's lease-break-time. False with errno. */
static bool open_list(struct list *list, const char *directory, bool to_write)
{
	char path[PATH_MAX];
	struct stat status;

	path_join(path, directory, POOL_LIST);
	*list = (struct list){.file = open(path, (to_write ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC)};
	if (list->file >= 0 && fstat(list->file, &status) == 0 && status.st_size == (off_t)sizeof *list->memory)
		list->memory = shared_file_map(list->file, 0, sizeof *list->memory, to_write);
	if (list->memory && (list->memory->magic != POOL_MAGIC || list->memory->version != POOL_VERSION)) {
		errno = EINVAL;
		close_list(list);
	}
	if (!list->memory)
		close_list(list);
	return list->memory != NULL;
}

/* For a change: no second command changes the list meanwhile. -1 with the reason. */
static int open_to_change(struct list *list, const char *directory, struct error *error)
{
	int result = open_list(list, directory, true) ? shared_file_lock(list->file, NULL, error)
	                                              : error_set_errno(error, "pool %.200s", directory);

	if (result < 0)
		close_list(list);
	return result;
}

/* All groups of the pool may read the claim, and no further setting of the group. */
static void put_revision(struct pool_record *record, const struct segment_revision *revision)
{
	uint64_t number = atomic_load(&record->number) + 1;
	struct segment_revision claim = *revision;

	claim.quota = (struct segment_quota){.run_us = 0};
	claim.memory = 0;
	revisions_store(record->ring, number, &claim);
	atomic_store_explicit(&record->number, number, memory_order_release);
}

/* POOL_GROUPS: not found. A group of 0: the first free record. */
static unsigned int find_record(const struct pool_memory *memory, uint64_t group)
{
	unsigned int at = 0;

	while (at < POOL_GROUPS && (atomic_load(&memory->groups[at].page) != 0
	                                    ? atomic_load(&memory->groups[at].group) : 0) != group)
		at++;
	return at;
}

/* --- the directory ------------------------------------------------------------------------------------------------ */

static uint64_t inode_of(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 ? status.st_ino : 0;
}

static void find_pools(const char *group_path, char pools[PATH_MAX])
{
	int length = (int)(strrchr(group_path, '/') - group_path);

	snprintf(pools, PATH_MAX, "%.*s/" POOLS, length, group_path);
}

static bool is_mounted(const char *pools, const char *directory)
{
	struct stat above, here;

	return stat(pools, &above) == 0 && stat(directory, &here) == 0 && above.st_dev != here.st_dev;
}

/* Further mount namespaces see the file system as far as mounts are shared, as under systemd. */
static int mount_there(const char *directory, struct error *error)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), list = (sizeof(struct pool_memory) + page - 1) / page;
	char options[80];

	snprintf(options, sizeof options, "mode=755,size=%zu,nr_inodes=%d", (list + PAGES) * page, PAGES + 3);
	return mount("nvtaskset", directory, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0
	               ? 0 : error_set_errno(error, "--pool: a file system cannot be mounted at %.200s", directory);
}

/* No process has this user. The owner of a file may take leases, and root in a container may be the host's root. */
#define NOBODYS ((uid_t)-2)

/* A user namespace may lack the user. */
static int give_away(int file)
{
	return fchown(file, NOBODYS, (gid_t)-1) == 0 || errno == EINVAL ? 0 : -1;
}

static int make_file(const char *path, size_t size, mode_t mode, struct error *error)
{
	int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int failure = file < 0 ? errno : posix_fallocate(file, 0, (off_t)size);

	if (failure == 0 && (fchmod(file, mode) < 0 || give_away(file) < 0))
		failure = errno;
	if (file >= 0)
		close(file);
	errno = failure;
	return failure == 0 ? 0 : error_set_errno(error, "%.200s", path);
}

static int make_list(const char *directory, struct error *error)
{
	char new[PATH_MAX], path[PATH_MAX];
	int result;

	path_join(new, directory, NEW_LIST);
	path_join(path, directory, POOL_LIST);
	unlink(new);
	result = make_file(new, sizeof(struct pool_memory), 0644, error);
	int file = result == 0 ? open(new, O_RDWR | O_CLOEXEC) : -1;
	const uint64_t header[] = {POOL_MAGIC, POOL_VERSION};

	if (result == 0 &&
	    (file < 0 || pwrite(file, header, sizeof header, 0) != sizeof header || rename(new, path) < 0))
		result = error_set_errno(error, "%.200s", path);
	if (file >= 0)
		close(file);
	return result;
}

/* Completes a pool of a killed command. Only root reaches the pages: runtimes mount a page for the page's group. */
static int make_pool(const char *group_path, const char *pool, struct pool_place *place, struct error *error)
{
	char pools[PATH_MAX], list[PATH_MAX];

	find_pools(group_path, pools);
	path_join(place->directory, pools, pool);
	snprintf(place->name, sizeof place->name, "%s", pool);
	if ((mkdir(pools, 0700) < 0 && errno != EEXIST) || (mkdir(place->directory, 0755) < 0 && errno != EEXIST))
		return error_set_errno(error, "%.200s", place->directory);
	if (!is_mounted(pools, place->directory) && mount_there(place->directory, error) < 0) {
		rmdir(place->directory);
		return -1;
	}
	path_join(list, place->directory, POOL_LIST);
	return access(list, F_OK) == 0 ? 0 : make_list(place->directory, error);
}

static void name_page(struct pool_place *place, unsigned int number)
{
	char name[16];

	snprintf(name, sizeof name, "%u", number);
	path_join(place->page, place->directory, name);
}

static void remove_if_empty(const struct pool_place *place, const struct pool_memory *memory)
{
	bool is_empty = true;

	for (unsigned int i = 0; i < POOL_GROUPS; i++)
		is_empty = is_empty && atomic_load(&memory->groups[i].page) == 0;
	if (is_empty) {
		umount2(place->directory, MNT_DETACH | UMOUNT_NOFOLLOW);
		rmdir(place->directory);
	}
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

bool pool_file_find(const char *group_path, const char *but, struct pool_place *place)
{
	char pools[PATH_MAX];
	uint64_t group = inode_of(group_path);
	bool is_found = false;
	const struct dirent *entry;

	find_pools(group_path, pools);
	DIR *directory = group != 0 ? opendir(pools) : NULL;

	while (directory && !is_found && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof place->name ||
		    (but && strcmp(entry->d_name, but) == 0))
			continue;
		snprintf(place->name, sizeof place->name, "%.*s", POOL_NAME_MAX - 1, entry->d_name);
		path_join(place->directory, pools, entry->d_name);
		struct list list;
		unsigned int at = POOL_GROUPS;

		if (open_list(&list, place->directory, false))
			at = find_record(list.memory, group);
		is_found = at < POOL_GROUPS;
		place->is_client = is_found && atomic_load(&list.memory->groups[at].is_client);
		name_page(place, at);
		close_list(&list);
	}
	if (directory)
		closedir(directory);
	return is_found;
}

/* The page of a removed group may still be mounted in containers: the new group gets a new page. */
static int take_record(struct pool_memory *memory, struct pool_place *place, unsigned int at, uint64_t group,
                       struct error *error)
{
	struct error why = {.reason = ""};

	name_page(place, at);
	unlink(place->page);
	if (make_file(place->page, POOL_PAGE, 0666, &why) < 0)
		return error_set(error, "%.200s: if the pool's pages are used up, end containers of removed devices",
		                 why.reason);
	atomic_store(&memory->groups[at].group, group);
	return 0;
}

static int put(struct pool_memory *memory, const char *group_path, const struct segment_revision *revision,
               bool is_client, struct pool_place *place, struct error *error)
{
	uint64_t group = inode_of(group_path);
	unsigned int at = find_record(memory, group);
	bool is_new = at == POOL_GROUPS;

	if (is_new)
		at = find_record(memory, 0);
	if (at == POOL_GROUPS)
		return error_set(error, "pool %.64s: it has %d groups, and room for no more", place->name, POOL_GROUPS);
	if (is_new && take_record(memory, place, at, group, error) < 0)
		return -1;
	name_page(place, at);
	put_revision(&memory->groups[at], revision);
	atomic_store(&memory->groups[at].is_client, is_client);
	atomic_store_explicit(&memory->groups[at].page, inode_of(place->page), memory_order_release);
	return 0;
}

int pool_file_put(const char *group_path, const char *pool, const struct segment_revision *revision, bool is_client,
                  struct pool_place *place, struct error *error)
{
	if (make_pool(group_path, pool, place, error) < 0)
		return -1;
	struct list list;

	if (open_to_change(&list, place->directory, error) < 0)
		return -1;
	int result = put(list.memory, group_path, revision, is_client, place, error);

	remove_if_empty(place, list.memory);
	close_list(&list);
	return result;
}

static int remove_from(const struct pool_place *place, const char *group_path, struct error *error)
{
	struct list list;

	if (open_to_change(&list, place->directory, error) < 0)
		return -1;
	unsigned int at = find_record(list.memory, inode_of(group_path));

	if (at < POOL_GROUPS) {
		atomic_store(&list.memory->groups[at].page, 0);
		remove_if_empty(place, list.memory);
	}
	close_list(&list);
	/* Waits for a write to the page, also for a write that never ends: edits of the pool go on. */
	if (at < POOL_GROUPS)
		unlink(place->page);
	return 0;
}

/* A killed command may leave a group in two pools. */
int pool_file_remove(const char *group_path, const char *but, struct error *error)
{
	struct pool_place place;
	int result = 0;

	while (result == 0 && pool_file_find(group_path, but, &place))
		result = remove_from(&place, group_path, error);
	return result;
}

/* The group is read under the lock: of two changes at once, the list gets the later one. */
static int follow(const char *group_path, const struct group *group, struct error *error)
{
	struct segment_revision revision;
	struct pool_place place;
	struct error why = {.reason = ""};
	uint64_t number;
	struct list list;

	if (!pool_file_find(group_path, NULL, &place))
		return 0;
	if (open_to_change(&list, place.directory, &why) < 0)
		return error_set(error, "the group has changed, and its pool has not: %.200s", why.reason);
	unsigned int at = find_record(list.memory, inode_of(group_path));

	if (at < POOL_GROUPS && group_read(group, &revision, &number))
		put_revision(&list.memory->groups[at], &revision);
	close_list(&list);
	return 0;
}

/* Beside a file of a further user, no file is believed. */
int pool_file_follow(const struct group *group, struct error *error)
{
	char link[64], path[PATH_MAX];
	bool may_be = group->is_file && group->owner == geteuid();

	snprintf(link, sizeof link, "/proc/self/fd/%d", group->file);
	ssize_t length = may_be ? readlink(link, path, sizeof path - 1) : -1;

	if (length <= 0 || path[0] != '/')
		return 0;
	path[length] = '\0';
	return follow(path, group, error);
}

int pool_file_change(struct group *group, const struct segment_revision *wanted, struct error *error)
{
	int result = group_change(group, wanted, error);

	return result == 0 ? pool_file_follow(group, error) : result;
}
