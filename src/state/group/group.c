#include "group.h"

#include "base/memfd_find.h"
#include "base/proc.h"
#include "base/shared_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define GROUP_MAGIC UINT64_C(0x70756f7267766e01) /* not text */
#define GROUP_VERSION 6

/* The owner of all files of users without a name in this namespace of users; the number of users of the first one. */
#define OVERFLOW_UID 65534
#define ALL_USERS "4294967295"

#define COPY_ATTEMPTS 4

struct group_memory {
	uint64_t magic;
	uint32_t version;
	uint32_t size;
	char name[GROUP_NAME_MAX];
	char cgroup[GROUP_CGROUP_MAX];
	_Alignas(64) _Atomic uint64_t number; /* only the number and the ring change */
	_Alignas(64) revisions_ring ring;
};

_Static_assert(sizeof(struct group_memory) <= GROUP_FILE_SIZE, "shared layout");
_Static_assert(offsetof(struct group_memory, number) == 384, "shared layout");
_Static_assert(offsetof(struct group_memory, ring) == GROUP_RING_AT, "shared layout");

const struct group group_closed = {.memory = NULL, .file = -1};

static const _Atomic uint64_t no_number;

bool group_name_is_valid(const char *name)
{
	size_t length = strlen(name);
	bool is_number = true, is_valid = length > 0 && length < GROUP_NAME_MAX && name[0] != '-' && name[0] != '.';

	for (size_t i = 0; is_valid && i < length; i++) {
		unsigned char letter = (unsigned char)name[i];

		is_valid = letter < 128 && (isalnum(letter) || strchr("._:@+-", letter));
		is_number = is_number && isdigit(letter);
	}
	return is_valid && !is_number;
}

bool group_is_same(struct group_identity a, struct group_identity b)
{
	return a.inode != 0 && a.inode == b.inode && a.device == b.device;
}

struct group_identity group_identity_of(int file)
{
	struct statx status;
	struct group_identity identity = {.inode = 0};
	struct stat known;

	if (statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &status) == 0)
		identity = (struct group_identity){(uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor,
		                                   status.stx_ino};
	else if ((errno == ENOSYS || errno == EPERM) && fstat(file, &known) == 0)
		identity = (struct group_identity){known.st_dev, known.st_ino};
	return identity;
}

/* In a container whose namespace of users lacks root, all files from outside have OVERFLOW_UID, also root's. The maker
 * of the container has put the files there, and is believed. */
static bool came_from_outside(uid_t owner)
{
	char map[64];

	return owner == OVERFLOW_UID && proc_read_text(map, sizeof map, "/proc/self/uid_map") > 0 &&
	       !strstr(map, ALL_USERS);
}

bool group_is_trusted(const struct group *group)
{
	uid_t owner = group->owner;
	struct stat top; /* trusted as in base/trust.c */

	return owner == 0 || owner == geteuid() || (stat("/", &top) == 0 && owner == top.st_uid) ||
	       came_from_outside(owner);
}

static struct group_memory *map(int file)
{
	return shared_file_map(file, 0, GROUP_FILE_SIZE, shared_file_may_write(file));
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static void prepare_memory(struct group_memory *memory, const char *name, const char *cgroup,
                           const struct segment_revision *revision)
{
	struct segment_revision first = *revision;

	memory->version = GROUP_VERSION;
	memory->size = GROUP_FILE_SIZE;
	strncpy(memory->name, name, sizeof memory->name - 1);
	strncpy(memory->cgroup, cgroup, sizeof memory->cgroup - 1);
	memory->number = 1;
	first.group = 1;
	revisions_store(memory->ring, 1, &first);
	memory->magic = GROUP_MAGIC;
}

int group_fill(int file, const char *name, const char *cgroup, const struct segment_revision *revision,
               struct error *error)
{
	struct group_memory memory;
	struct rlimit limit; /* the kernel would end the process (SIGXFSZ) beyond */

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < GROUP_FILE_SIZE)
		return error_set(error, "the limit for files (ulimit -f) leaves no room for a group's %d bytes",
		                 GROUP_FILE_SIZE);
	memset(&memory, 0, sizeof memory);
	prepare_memory(&memory, name, cgroup, revision);
	int failure = posix_fallocate(file, 0, GROUP_FILE_SIZE);

	errno = failure ? failure : ENOSPC; /* a short write sets no errno */
	return failure == 0 && pwrite(file, &memory, sizeof memory, 0) == sizeof memory
	               ? 0
	               : error_set_errno(error, "a group cannot be written");
}

int group_create(struct group *group, const char *name, const struct segment_revision *revision, struct error *error)
{
	int file = shared_file_make(GROUP_MEMORY_NAME, GROUP_FILE_SIZE, error);
	struct group_memory *memory = file >= 0 ? map(file) : NULL;

	*group = group_closed;
	if (memory) {
		prepare_memory(memory, name, "", revision);
		munmap(memory, GROUP_FILE_SIZE);
	}
	return file >= 0 ? group_map(group, file, error) : -1;
}

/* --- mapping ------------------------------------------------------------------------------------------------------ */

/* A copy: another user could make the file shorter under a mapping. NULL if the file changes during each attempt. */
static struct group_memory *copy_of(int file)
{
	struct group_memory *memory =
		mmap(NULL, GROUP_FILE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t after = 0;
	bool is_whole = false;

	for (int attempt = 0; memory != MAP_FAILED && !is_whole && attempt < COPY_ATTEMPTS; attempt++)
		is_whole = pread(file, memory, GROUP_FILE_SIZE, 0) >= GROUP_FILE_SIZE_UNTIL_5 &&
		           pread(file, &after, sizeof after, offsetof(struct group_memory, number)) == sizeof after &&
		           after == memory->number;
	if (memory != MAP_FAILED && !is_whole) {
		munmap(memory, GROUP_FILE_SIZE);
		memory = MAP_FAILED;
	}
	return memory == MAP_FAILED ? NULL : memory;
}

static bool has_right_size(int file, const struct stat *status, bool is_file)
{
	return S_ISREG(status->st_mode) && group_has_size(status->st_size) && (is_file || shared_file_is_sealed(file));
}

static int refuse(struct error *error)
{
	error_set_code(error, NVTASKSET_ERROR_DAMAGED, "not a group");
	return GROUP_NONE;
}

static int check_content(const struct group_memory *memory, struct error *error)
{
	if (memory->magic != GROUP_MAGIC)
		return refuse(error);
	if (memory->version != GROUP_VERSION || memory->size != GROUP_FILE_SIZE)
		return error_set_code(error, NVTASKSET_ERROR_DAMAGED,
		                      "a group of another version: use the nvtaskset that made it");
	return 0;
}

int group_map(struct group *group, int file, struct error *error)
{
	struct stat status;
	int result = 0;

	*group = (struct group){.file = file, .is_file = !memfd_is_one(file), .identity = group_identity_of(file)};
	if (fstat(file, &status) < 0 || !has_right_size(file, &status, group->is_file)) {
		result = refuse(error);
	} else {
		group->owner = status.st_uid;
		group->is_copy = group->is_file && (!group_is_trusted(group) || status.st_mode & (S_IWGRP | S_IWOTH));
		group->memory = group->is_copy ? copy_of(file) : map(file);
		result = group->memory ? check_content(group->memory, error)
		                       : error_set_errno(error, "a group cannot be mapped");
	}
	if (result < 0) {
		close(file);
		if (group->memory)
			munmap(group->memory, GROUP_FILE_SIZE);
		*group = group_closed;
	}
	return result;
}

void group_close_file(struct group *group)
{
	if (group->memory && group->file >= 0) /* a struct of zeros has no file */
		close(group->file);
	group->file = -1;
}

void group_close(struct group *group)
{
	group_close_file(group);
	if (group->memory)
		munmap(group->memory, GROUP_FILE_SIZE);
	*group = group_closed;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void copy_text(char *to, const char *from, size_t room)
{
	memcpy(to, from, room);
	to[room - 1] = '\0';
}

const char *group_name(const struct group *group, char name[GROUP_NAME_MAX])
{
	name[0] = '\0';
	if (group->memory)
		copy_text(name, group->memory->name, GROUP_NAME_MAX);
	return group_name_is_valid(name) ? name : "";
}

const char *group_cgroup(const struct group *group, char cgroup[GROUP_CGROUP_MAX])
{
	cgroup[0] = '\0';
	if (group->memory)
		copy_text(cgroup, group->memory->cgroup, GROUP_CGROUP_MAX);
	return cgroup;
}

const _Atomic uint64_t *group_number(const struct group *group)
{
	return group->memory ? &group->memory->number : &no_number;
}

bool group_read(const struct group *group, struct segment_revision *revision, uint64_t *number)
{
	return group->memory && revisions_load(group->memory->ring, &group->memory->number, revision, number);
}

/* A member's own partition stays on GPUs that the group does not name, as does a setting that the group lacks. */
bool group_resolve(const struct group *group, struct segment_revision *revision)
{
	struct segment_revision own = *revision;
	uint64_t number = atomic_load_explicit(group_number(group), memory_order_acquire);

	if (!group->memory || own.group == (uint32_t)number || own.group == GROUP_LEFT)
		return true;
	if (!group_read(group, revision, &number))
		return false;
	revision_put_missing(revision, &own);
	revision->group = (uint32_t)number;
	return true;
}

/* --- the ledger ------------------------------------------------------------------------------------------------ */

#define LEDGER_SIZE (GROUP_FILE_SIZE - GROUP_LEDGER_AT)

_Static_assert(sizeof(struct ledger) <= LEDGER_SIZE, "shared layout");

const struct ledger *group_ledger(const struct group *group)
{
	return group->memory ? (const struct ledger *)((const char *)group->memory + GROUP_LEDGER_AT) : NULL;
}

struct ledger *group_ledger_map(int file)
{
	return shared_file_map(file, GROUP_LEDGER_AT, LEDGER_SIZE, true);
}

void group_ledger_unmap(struct ledger *ledger)
{
	if (ledger)
		munmap(ledger, LEDGER_SIZE);
}

/* --- changing ----------------------------------------------------------------------------------------------------- */

struct change {
	const struct segment_revision *wanted;
	const struct segment_revision *before; /* `wanted` is taken back; NULL: put in */
	bool is_first;                         /* only for a group without partitions; otherwise 1 */
};

static int edit_locked(struct group_memory *memory, const struct change *change, struct error *error)
{
	struct segment_revision revision;
	uint64_t number;

	if (!revisions_load(memory->ring, &memory->number, &revision, &number))
		return error_set_code(error, NVTASKSET_ERROR_DAMAGED, "the group is damaged");
	if (change->is_first && revision.count > 0)
		return 1;
	if (change->before)
		revision_put_back(&revision, change->wanted, change->before);
	else if (revision_put_all(&revision, change->wanted, error) < 0)
		return -1;
	/* 0 and GROUP_LEFT are no numbers of a group. */
	do
		number++;
	while ((uint32_t)number == 0 || (uint32_t)number == GROUP_LEFT);
	revision.group = (uint32_t)number;
	revisions_store(memory->ring, number, &revision);
	atomic_store_explicit(&memory->number, number, memory_order_release);
	return 0;
}

/* Another user has the file; or a mount is read-only, as in containers. */
static int refuse_change(const struct group *group, struct error *error)
{
	struct statvfs system;
	bool is_read_only = group->owner == geteuid() && group->file >= 0 && fstatvfs(group->file, &system) == 0 &&
	                    system.f_flag & ST_RDONLY;

	return is_read_only ? error_set_code(error, NVTASKSET_ERROR_NOT_PERMITTED,
	                                     "the group's file is on a file system that is read-only")
	                    : error_set_code(error, NVTASKSET_ERROR_NOT_PERMITTED, "the group belongs to user %u, who "
	                                     "alone can change it", (unsigned int)group->owner);
}

static int edit(struct group *group, const struct change *change, struct error *error)
{
	if (group->is_copy || group->file < 0 || !shared_file_may_write(group->file))
		return refuse_change(group, error);
	int result = shared_file_lock(group->file, NULL, error);

	if (result == 0) {
		result = edit_locked(group->memory, change, error);
		shared_file_unlock(group->file);
	}
	return result;
}

int group_change(struct group *group, const struct segment_revision *wanted, struct error *error)
{
	return edit(group, &(struct change){.wanted = wanted}, error);
}

int group_take_back(struct group *group, const struct segment_revision *given, const struct segment_revision *before,
                    struct error *error)
{
	return edit(group, &(struct change){.wanted = given, .before = before}, error);
}

int group_begin(struct group *group, const struct segment_revision *wanted, struct error *error)
{
	return edit(group, &(struct change){.wanted = wanted, .is_first = true}, error);
}

int group_check_within(const struct group *group, const struct segment_partition *partitions, uint32_t count,
                       struct error *error)
{
	struct segment_revision fence = {.count = 0};
	char list[TPCSET_TEXT];
	uint64_t number;
	int result = 0;

	if (group->is_file && !group_read(group, &fence, &number))
		return error_set_code(error, NVTASKSET_ERROR_DAMAGED, "the group is damaged");
	for (uint32_t i = 0; result == 0 && i < count; i++) {
		const struct segment_partition *found = revision_find_partition(&fence, partitions[i].pci);

		if (found && !tpcset_is_subset(&partitions[i].set, &found->set))
			result = error_set_code(error, NVTASKSET_ERROR_NOT_PERMITTED,
			                        "its group has TPCs %.200s only, and its manager alone can change that",
			                        tpcset_format_list(&found->set, list));
	}
	return result;
}
