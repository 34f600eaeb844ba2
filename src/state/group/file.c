#include "file.h"

#include "base/memfd_find.h"
#include "base/proc.h"
#include "base/shared_file.h"
#include "base/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME ".nvtaskset-lock"
#define NEW_NAME ".nvtaskset-new" /* of a file being made; a single file, under the lock */
#define FILE_MODE 0644
#define LOCK_ATTEMPTS 16

/* For the choices of other processes, in turn. A choice looks at all processes and groups: long on a busy machine. */
#define CHOICES_MS 30000

/* --- mounted files ------------------------------------------------------------------------------------------------ */

/* As far as the kernel tells (Linux 5.8). */
static bool are_on_one_mount(int file, int directory)
{
	struct statx a, b;
	bool known = statx(file, "", AT_EMPTY_PATH, STATX_MNT_ID, &a) == 0 &&
	             statx(directory, "", AT_EMPTY_PATH, STATX_MNT_ID, &b) == 0 &&
	             a.stx_mask & b.stx_mask & STATX_MNT_ID;

	return !known || a.stx_mnt_id == b.stx_mnt_id;
}

static bool is_mounted(int directory, const char *name)
{
	struct stat status;
	int file = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	bool is_mounted = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
	                  !are_on_one_mount(file, directory); /* a volume of an image is a directory */

	if (file >= 0)
		close(file);
	return is_mounted;
}

static bool is_before(const char *name, const char *other, const char *wanted)
{
	return strcmp(other, wanted) != 0 && (strcmp(name, wanted) == 0 || strcmp(name, other) < 0);
}

/* The path of a file mounted in GROUP_MOUNTS: the wanted name, or else the first name. NULL without a mounted file. */
static const char *find_mounted(const char *wanted)
{
	static char path[sizeof GROUP_MOUNTS + GROUP_NAME_MAX] = GROUP_MOUNTS "/";
	_Alignas(struct dirent64) char entries[1024];
	char *name = path + sizeof GROUP_MOUNTS;
	const struct dirent64 *entry;
	int directory = open(GROUP_MOUNTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t length;

	*name = '\0';
	while (directory >= 0 && (length = getdents64(directory, entries, sizeof entries)) > 0) {
		for (ssize_t at = 0; at < length; at += entry->d_reclen) {
			entry = (const struct dirent64 *)(entries + at);
			if (group_name_is_valid(entry->d_name) && is_mounted(directory, entry->d_name) &&
			    (*name == '\0' || is_before(entry->d_name, name, wanted)))
				strcpy(name, entry->d_name);
		}
	}
	if (directory >= 0)
		close(directory);
	return *name ? path : NULL;
}

const char *group_file_named(void)
{
	const char *path = secure_getenv(GROUP_FILE_ENVIRONMENT), *slash = path ? strrchr(path, '/') : NULL;
	const char *mounted = find_mounted(slash ? slash + 1 : "");

	if (mounted)
		path = mounted;
	return path && *path ? path : NULL;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* Files with other names claim no TPCs, and are never removed. */
static int check_name(const char *path, struct error *error)
{
	const char *slash = strrchr(path, '/');

	return slash && group_name_is_valid(slash + 1)
	               ? 0
	               : error_set_code(error, NVTASKSET_ERROR_INVALID,
	                                "%.200s: the file's name is the group's: letters, digits "
	                                "and ._:@+-, at most %d, and no number alone", path, GROUP_NAME_MAX - 1);
}

/* `file` is open as O_PATH: opening a device or a FIFO in full can have effects. */
static int check_file(int file, const char *path, struct error *error)
{
	struct stat status;
	int result = 0;

	if (fstat(file, &status) < 0)
		result = error_set_errno(error, "%.200s", path);
	else if (S_ISLNK(status.st_mode))
		result = error_set(error, "%.200s: a symbolic link: name the group's file itself", path);
	else if (!S_ISREG(status.st_mode) || !group_has_size(status.st_size))
		result = error_set_code(error, NVTASKSET_ERROR_DAMAGED, "%.200s: not a group's file", path);
	else if (status.st_mode & (S_IWGRP | S_IWOTH))
		result = error_set(error, "%.200s: others can write there", path);
	return result;
}

static int open_checked(const char *path, bool to_change, struct error *error)
{
	int name = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), file = -1;

	if (name < 0)
		return error_set_errno(error, "%.200s", path);
	if (check_file(name, path, error) == 0) {
		file = memfd_reopen(name, to_change);
		if (file < 0)
			error_set_errno(error, "%.200s", path);
	}
	close(name);
	return file;
}

static int open_group(struct group *group, const char *path, bool to_change, struct error *error)
{
	struct error why = {.reason = ""};
	int file = -1;

	*group = group_closed;
	if (check_name(path, error) == 0)
		file = open_checked(path, to_change, error);
	if (file < 0)
		return -1;
	if (group_map(group, file, &why) < 0)
		return error_set_code(error, NVTASKSET_ERROR_DAMAGED, "%.200s: %.80s", path, why.reason);
	if (!group_is_trusted(group)) {
		group_close(group);
		return error_set_code(error, NVTASKSET_ERROR_NOT_PERMITTED, "%.200s: belongs to another user", path);
	}
	return 0;
}

int group_file_obey(struct group *group, const char *path, struct error *error)
{
	*group = group_closed;
	if (path[0] != '/')
		return error_set(error, "%.200s: not an absolute path", path);
	return open_group(group, path, false, error);
}

int group_file_open(struct group *group, const char *path, struct error *error)
{
	*group = group_closed;
	return trust_check(path, geteuid(), TRUST_NOW, error) < 0 ? -1 : open_group(group, path, true, error);
}

/* --- its directory ------------------------------------------------------------------------------------------------ */

static int open_directory(const char *path, const char **name, struct error *error)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int length = slash ? (int)(slash - path) : 0;

	if (path[0] != '/' || strlen(path) >= sizeof directory)
		return error_set(error, "%.200s: not an absolute path, or too long", path);
	*name = slash + 1;
	snprintf(directory, sizeof directory, "%.*s", length > 0 ? length : 1, path);
	if (trust_check(directory, geteuid(), TRUST_NOW, error) < 0)
		return -1;
	int file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return file >= 0 ? file : error_set_errno(error, "%.200s", directory);
}

/* Only a user with the right to write in the directory can open the lock's file, and take the lock. */
static int lock_file(int directory, const char *path, struct error *error)
{
	struct error why = {.reason = ""};
	int file = openat(directory, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (file < 0)
		return error_set_errno(error, "%.200s: its directory, in which TPCs are claimed", path);
	if (shared_file_lock_within(file, NULL, CHOICES_MS, &why) < 0) {
		close(file);
		return error_set_code(error, NVTASKSET_ERROR_BUSY, "%.200s: another process has been choosing TPCs in "
		                                                   "its directory for too long", path);
	}
	return file;
}

static bool is_removed(int directory, int lock)
{
	struct stat held, now;

	return fstat(lock, &held) == 0 &&
	       (fstatat(directory, LOCK_NAME, &now, AT_SYMLINK_NOFOLLOW) < 0 || now.st_ino != held.st_ino);
}

/* A cleaner of the directory may remove the lock's file during the wait; then other processes lock a new file. */
static int lock_directory(int directory, const char *path, struct error *error)
{
	int file = lock_file(directory, path, error);

	for (int attempt = 1; attempt < LOCK_ATTEMPTS && file >= 0 && is_removed(directory, file); attempt++) {
		close(file);
		file = lock_file(directory, path, error);
	}
	return file;
}

int group_file_lock_directory(const char *path, struct error *error)
{
	const char *name;
	int directory = open_directory(path, &name, error), lock = -1;

	if (directory >= 0) {
		lock = check_name(path, error) == 0 ? lock_directory(directory, path, error) : -1;
		close(directory);
	}
	return lock;
}

static int add_set(struct segment_revision *taken, const struct segment_partition *partition, struct error *error)
{
	struct segment_partition sum = *partition;
	const struct segment_partition *before = revision_find_partition(taken, partition->pci);

	if (before)
		sum.set = tpcset_or(&before->set, &partition->set);
	return revision_put(taken, &sum, error);
}

/* Maps a group of the directory. GROUP_NONE: the file takes no TPCs, since a group's file comes complete, by rename,
 * and is readable for all. -1 with the reason: the file may take TPCs. */
static int map_there(struct group *group, int directory, const char *name, struct error *error)
{
	struct error why = {.reason = ""};
	int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
	    result = GROUP_NONE;

	if (file >= 0)
		result = group_map(group, file, &why);
	else if (proc_is_limit(errno))
		result = error_set_errno(&why, "cannot be opened");
	if (result == -1)
		error_set_code(error, NVTASKSET_ERROR_DAMAGED, "%.200s: %.80s", name, why.reason);
	return result;
}

/* `is_there`: the file of `except` is in this directory, and not mounted from elsewhere. */
static int add_file(struct segment_revision *taken, int directory, const char *name, struct group_identity except,
                    bool *is_there, struct error *error)
{
	struct segment_revision revision = {.count = 0};
	struct group group;
	uint64_t number;
	int result = map_there(&group, directory, name, error);

	if (result < 0)
		return result == GROUP_NONE ? 0 : -1;
	if (group_is_same(group.identity, except))
		*is_there = are_on_one_mount(group.file, directory);
	else if (!group_read(&group, &revision, &number))
		result = error_set_code(error, NVTASKSET_ERROR_DAMAGED, "%.200s: the group is damaged", name);
	for (uint32_t i = 0; result == 0 && i < revision.count; i++)
		result = add_set(taken, &revision.partitions[i], error);
	group_close(&group);
	return result;
}

int group_file_add_taken(struct segment_revision *taken, const char *path, struct group_identity except,
                         struct error *error)
{
	const char *name;
	int file = open_directory(path, &name, error), result = 0;
	DIR *directory = file >= 0 ? fdopendir(file) : NULL;
	const struct dirent *entry;
	bool is_there = false;

	if (file < 0)
		return -1;
	if (!directory) {
		close(file);
		return error_set_errno(error, "%.200s", path);
	}
	while (result == 0 && (entry = readdir(directory))) {
		if (group_name_is_valid(entry->d_name))
			result = add_file(taken, dirfd(directory), entry->d_name, except, &is_there, error);
	}
	closedir(directory);
	if (result == 0 && !is_there && except.inode != 0)
		result = error_set(error, "%.200s: was removed, or mounted without its directory, in which TPCs are "
		                          "claimed", path);
	return result;
}

/* --- making and removing ------------------------------------------------------------------------------------------ */

/* Removes the unfinished file of a killed process. */
static int make_file(int directory, const char *name, const char *cgroup, struct error *error)
{
	static const struct segment_revision nothing;
	int result = -1;

	unlinkat(directory, NEW_NAME, 0);
	int file = openat(directory, NEW_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);

	if (file < 0)
		return error_set_errno(error, "%.200s", name);
	if (group_fill(file, name, cgroup, &nothing, error) == 0)
		result = fchmod(file, FILE_MODE) < 0 || renameat(directory, NEW_NAME, directory, name) < 0
		                 ? error_set_errno(error, "%.200s", name)
		                 : 0;
	close(file);
	if (result < 0)
		unlinkat(directory, NEW_NAME, 0);
	return result;
}

int group_file_make_locked(struct group *group, const char *path, const char *cgroup, struct error *error)
{
	struct stat status;
	const char *name;
	int directory = open_directory(path, &name, error), result = 0;

	*group = group_closed;
	if (directory < 0)
		return -1;
	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		result = make_file(directory, name, cgroup, error);
	close(directory);
	return result == 0 ? group_file_open(group, path, error) : result;
}

int group_file_make(struct group *group, const char *path, const char *cgroup, struct error *error)
{
	int lock = group_file_lock_directory(path, error), result = -1;

	*group = group_closed;
	if (lock >= 0) {
		result = group_file_make_locked(group, path, cgroup, error);
		close(lock);
	}
	return result;
}

int group_file_remove_locked(const char *path, struct error *error)
{
	const char *name;
	int directory = open_directory(path, &name, error), result = 0;

	if (directory < 0)
		return -1;
	if (unlinkat(directory, name, 0) < 0 && errno != ENOENT)
		result = error_set_errno(error, "%.200s", path);
	close(directory);
	return result;
}

int group_file_remove(const char *path, struct error *error)
{
	int lock = group_file_lock_directory(path, error), result = -1;

	if (lock >= 0) {
		result = group_file_remove_locked(path, error);
		close(lock);
	}
	return result;
}
