/*
 * A group: processes with a common partition, which changes for all members in one step.
 *
 * Members. A command and all processes that it starts form a group. `--group NAME` unites the process trees of several
 * commands of one user. A manager of jobs can give a group a file instead, with the path in the environment
 * (NVTASKSET_GROUP_FILE): a group with a file reaches into containers, and needs no /proc.
 *
 * State. A page of memory, in a sealed memfd or in the manager's file, with a name and a ring of revisions, as in a
 * segment. Each member has the page mapped, read-only. Each member has a descriptor of the page, named by the member's
 * segment and inherited by started programs (state/handle.h). There is no list of members. A memfd is gone with the
 * last member; the first member may end before. The manager removes a file; running members then keep the last
 * revision.
 *
 * Obeying. A member's segment and the group each have a revision. The segment's revision notes the group's number of
 * that time. While the group still has the number, the segment's revision is in force: a copy of the group's, or a
 * later edit by `-p PID`. Once the group's number has changed, the group's revision is in force, beside the segment's
 * partitions on GPUs that the group does not name. So a change of a group is a single store to memory: all members obey
 * at the next launch, also later members and a child in the middle of a fork. An editor killed before the store has
 * changed nothing, and an editor killed after has changed all.
 *
 * Rights. The kernel decides by the file's owner and mode: the user and root may change a group in memory; a group with
 * a file, each user with the right to write. Only processes of the same user join by name; root joins root's. A program
 * with more privileges than its user is in no group. A file must be regular, of the exact size, and no link, belong to
 * root or the user, and not be writable by other users on the whole path (base/trust.h). Otherwise the command refuses;
 * the library warns and goes on without a group. In a container whose namespace of users lacks root, the library takes
 * no file for root's. A file fences: `-p PID` and commands inside the group stay within the group's partition. A
 * hostile process of the same user can do as much as to any segment: a reader checks all copies.
 *
 * Races. Joining by name takes turns (tools/nvtaskset/select/turn.h), from the search for the group until there is a
 * segment that names the group. By file, a lock in the file's directory excludes. Both locks end with the holder. A
 * file is completed and then renamed: no process sees an unfinished file.
 *
 * Claims. The partitions of all group files in a directory are taken, also of invisible processes. Under the lock of
 * the directory, `-n` chooses from the rest and writes the choice into the group's file. So groups in the same
 * directory never get a TPC twice. Removing a file gives the TPCs back.
 *
 * Nesting. A command inside a group starts a new group, or joins a named group. Inside a file's group, the command
 * stays in the group: the SET is the command's own revision, within the group's.
 *
 * Failures. Closed descriptors: the mapping still obeys; `-p PID` finds the group through other members. Cleared
 * environment: the descriptor leads to the group; if the descriptor is closed too, the command finds the processes of
 * the control group named in the file, and changes each segment. No memory for a group: COMMAND runs in the partition
 * without a group. In another PID namespace, a name means another group, and a file the same group.
 *
 * A file must not be made shorter while in use: the users would die of SIGBUS, as with a shortened library.
 */
#pragma once

#include "base/error.h"
#include "state/ledger.h"
#include "state/revisions.h"

#include <sys/types.h>

#define GROUP_FILE_ENVIRONMENT "NVTASKSET_GROUP_FILE"
#define GROUP_MOUNTS "/opt/nvtaskset/groups" /* in a container: mounted files are here (nvtaskset cdi) */
#define GROUP_MEMORY_NAME "nvtaskset-group" /* of a memfd */
#define GROUP_NAME_MAX 64    /* with the '\0' */
#define GROUP_CGROUP_MAX 256 /* with the '\0' */

/* In struct segment_revision's `group`: the member does not follow the group, which is out of reach. */
#define GROUP_LEFT UINT32_MAX

/* Layout: the group with the revisions, the budget at the end (budget.h), then the ledger (state/ledger.h). */
#define GROUP_RING_AT 448
#define GROUP_LEDGER_AT 12288
#define GROUP_FILE_SIZE (GROUP_LEDGER_AT + 36864)
#define GROUP_FILE_SIZE_UNTIL_5 8192 /* up to version 5 */

/* Whether a group of any version can have the size. */
static inline bool group_has_size(off_t size)
{
	return size == GROUP_FILE_SIZE || size == GROUP_FILE_SIZE_UNTIL_5;
}

struct group_memory;
struct ledger;

/* The file of a group: equal for all members. An inode of 0: no group. */
struct group_identity {
	uint64_t device, inode;
};

/* A mapped group. */
struct group {
	struct group_memory *memory; /* NULL: none */
	int file;                    /* -1, or open: for writing if this user may change the group */
	bool is_file;                /* the manager's file, and no memfd: fences */
	bool is_copy;                /* a copy that never changes: another user may make the file shorter */
	uid_t owner;
	struct group_identity identity;
};

extern const struct group group_closed;

/* Letters, digits and ._:@+-; not in front: - and . ; not a number alone, as a process id would be. */
bool group_name_is_valid(const char *name);

/* Makes a group in memory, with the file open for writing. No process can join the name "". -1 with the reason. */
int group_create(struct group *group, const char *name, const struct segment_revision *revision, struct error *error);

/* Fills the file of a new group: nobody sees it yet. -1 with the reason. */
int group_fill(int file, const char *name, const char *cgroup, const struct segment_revision *revision,
               struct error *error);

/* Maps the group in a file of any owner, and takes the file over in any case. GROUP_NONE with the reason if the file is
 * no group's; -1 with the reason for a group of another version, or if mapping fails. */
#define GROUP_NONE (-2)
int group_map(struct group *group, int file, struct error *error);

void group_close_file(struct group *group); /* the memory stays mapped */
void group_close(struct group *group);

/* Whether this user obeys the group: the owner is root or this user. */
bool group_is_trusted(const struct group *group);
bool group_is_same(struct group_identity a, struct group_identity b);
struct group_identity group_identity_of(int file); /* does not wait for a file system */

/* Copies: other processes may write there. "" is none. */
const char *group_name(const struct group *group, char name[GROUP_NAME_MAX]);
const char *group_cgroup(const struct group *group, char cgroup[GROUP_CGROUP_MAX]);

/* The number of the revision in force: never 0, raised by each change. Without a group a constant 0; never NULL. */
const _Atomic uint64_t *group_number(const struct group *group);

/* Copies the revision in force, and the number. False if the group is damaged. */
bool group_read(const struct group *group, struct segment_revision *revision, uint64_t *number);

/* Gives the group the partitions and the settings of time and memory in `wanted`; the rest stays. All members obey at
 * the next launch. -1 with the reason, and nothing changed. */
int group_change(struct group *group, const struct segment_revision *wanted, struct error *error);

/* Takes the change `given` back, to `before` (revision_put_back): also a setting or GPU that `before` lacks. Later
 * changes stay. -1 with the reason. */
int group_take_back(struct group *group, const struct segment_revision *given, const struct segment_revision *before,
                    struct error *error);

/* The same as group_change for a group without partitions. 1 if the group has partitions. */
int group_begin(struct group *group, const struct segment_revision *wanted, struct error *error);

/* Turns a member's own revision into the revision in force; false if the group is damaged. */
bool group_resolve(const struct group *group, struct segment_revision *revision);

/* The ledger of the members' memory, for reading; NULL without a group. */
const struct ledger *group_ledger(const struct group *group);

/* The same for writing, in a file from group_open_to_write. NULL with errno. */
struct ledger *group_ledger_map(int file);
void group_ledger_unmap(struct ledger *ledger);

/* -1 with the reason if the group fences, and a partition exceeds the group's. */
int group_check_within(const struct group *group, const struct segment_partition *partitions, uint32_t count,
                       struct error *error);

/* --- apart.c ------------------------------------------------------------------------------------------------------ */

/*
 * A ledger of memory (state/ledger.h) for one user's members of a group without the right to write the group's
 * file: another user's, as of a job or of a container.
 *
 * The ledger lies in a memfd held open by the members, and is gone with the last of them. A member looks for the
 * ledger through /proc, and makes one if there is none. A lock on the group's file (flock, for which reading is
 * enough) keeps two members from making two. If the lock is held for longer, each process waits once, for
 * APART_PATIENCE_MS, and goes without a ledger. Members in two containers, invisible to each other, have a ledger
 * each.
 */

#define APART_PATIENCE_MS 200

/* `group_file`: of the group, open for reading. Returns the ledger's file, for the caller to keep open, and the
 * mapped ledger; -1 without a ledger. Looks at all processes, for milliseconds. */
int apart_open(const struct group *group, int group_file, struct ledger **ledger);
void apart_unmap(struct ledger *ledger);
