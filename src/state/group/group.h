/*
 * A group: processes that have one partition, which changes for all of them in one step.
 *
 * What it is. Everything that a command starts is a group: its process tree. `--group NAME` puts the trees of several
 * commands of one user into one. Who manages jobs can give a group a file instead, whose path is in the environment
 * (NVTASKSET_GROUP_FILE): such a group reaches into containers, and needs no /proc.
 *
 * Where its state lies. In a page of memory: a sealed memfd, or the manager's file. It holds a name and a ring of
 * revisions, as a segment does. Each member has it mapped, read-only, and a descriptor that names it, which programs that
 * it starts inherit (state/handle.h); the member's segment says which descriptor. There is no list of members. Nobody
 * keeps a memfd but its members, so it is gone with the last of them, the first may end before, and nothing is left
 * behind. A file is its manager's, who removes it; members that still run then keep what they had last.
 *
 * What is in force. A member's own revision notes the group's number at which it was made. As long as the group has this
 * number, the own one is in force: it is the group's, or `-p PID` has changed it since. As soon as the group has another
 * number, the group's is in force, beside own partitions on GPUs that the group does not name. So a change of a group is
 * one store to memory: all members obey at their next launch, also those that come later, and one that is just being
 * forked cannot be missed. Who is killed before the store has changed nothing, who is killed after it has changed all.
 *
 * Who may what. The kernel decides by the file's owner and mode: the user and root may change a group, of a file whoever
 * may write to it. Only processes of the same user join by name; root joins root's. A program with more privileges than
 * its user is in no group. A file must be root's or the user's own, not writable by others on the whole way to it
 * (base/trust.h), no link, a regular file of exactly one size; else the command refuses, and the library warns and goes on
 * without. In a container whose namespace of users lacks root, the library takes nobody's file for root's. A file fences: `-p PID` and commands inside its group find room only within its partition. A hostile process of the
 * same user can do what it could do to each segment: a reader checks all that it copies.
 *
 * Two that come up at the same time. By name: joining takes turns (tools/nvtaskset/select/turn.h), from looking for the
 * group until the segment that names it is there. By file: a lock in the file's directory. Both locks end with their
 * holder. Files are made complete and then renamed, so nobody sees half of one.
 *
 * Claims. The partitions of all group files in one directory are taken, whether their processes can be seen or not: under
 * the directory's lock, `-n` chooses from what is left and writes it into the group's own file. So groups that see the
 * same directory never get a TPC twice; who removes a file gives its TPCs back.
 *
 * Nested. A command inside a group starts its own, or joins the one that it names. Inside a file's group it stays in it:
 * its SET is its own revision, within the group's.
 *
 * Failures. Descriptors closed: the mapping still obeys; `-p PID` finds the group through other members. Environment
 * cleared: the descriptor leads to the group; where that is closed, too, the command finds the processes of the control group
 * that the manager has named in the file, and changes their segments one by one. No memory for a group: COMMAND runs in its
 * partition, without one. Processes in other PID namespaces do not see each other, so a name there is another group; a
 * file is not.
 *
 * A file must not be made shorter while it is in use: its users would die of SIGBUS, as those of a library would.
 */
#ifndef NVTASKSET_STATE_GROUP_GROUP_H
#define NVTASKSET_STATE_GROUP_GROUP_H

#include "base/error.h"
#include "state/revisions.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GROUP_FILE_ENVIRONMENT "NVTASKSET_GROUP_FILE"
#define GROUP_MOUNTS "/opt/nvtaskset/groups" /* in a container: there, files are mounted (nvtaskset cdi) */
#define GROUP_MEMORY_NAME "nvtaskset-group" /* of a memfd */
#define GROUP_NAME_MAX 64    /* with its end */
#define GROUP_CGROUP_MAX 256 /* with its end */

/* In struct segment_revision's `group`: in force whatever the group says, being out of reach. */
#define GROUP_LEFT UINT32_MAX

/* The group and its revisions, and the budget at the end (budget.h); then the ledger (state/ledger.h). */
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

/* Which file a group is: the same for all members. An inode of 0: no group. */
struct group_identity {
	uint64_t device, inode;
};

/* A mapped group. */
struct group {
	struct group_memory *memory; /* NULL: none */
	int file;                    /* -1, or open: for writing where this user may change the group */
	bool is_file;                /* its manager's, and no memfd: it fences */
	bool is_copy;                /* of a file that another user may make shorter under us: never changes */
	uid_t owner;
	struct group_identity identity;
};

extern const struct group group_closed;

/* Letters, digits and ._:@+-; not a number alone, which would be read as a process id; not with - or . in front. */
bool group_name_is_valid(const char *name);

/* Makes a group in memory; its file is open for writing. A name of "" is none: nobody can join. -1 with the reason. */
int group_create(struct group *group, const char *name, const struct segment_revision *revision, struct error *error);

/* Fills the file of a new group: nobody sees it yet. -1 with the reason. */
int group_fill(int file, const char *name, const char *cgroup, const struct segment_revision *revision, struct error *error);

/* Maps the group in a file, and takes the file over in any case. Does not ask whose it is. GROUP_NONE with the reason if it is no
 * group's; -1 with the reason if it is another version's, or cannot be mapped. */
#define GROUP_NONE (-2)
int group_map(struct group *group, int file, struct error *error);

/* Closes the file of a group, and keeps the memory mapped. */
void group_close_file(struct group *group);
void group_close(struct group *group);

/* Whether this user obeys the group: it is root's, or the user's own. */
bool group_is_trusted(const struct group *group);
bool group_is_same(struct group_identity a, struct group_identity b);
struct group_identity group_identity_of(int file); /* does not wait for a file system */

/* Copies: somebody else may write there. "" is none. */
const char *group_name(const struct group *group, char name[GROUP_NAME_MAX]);
const char *group_cgroup(const struct group *group, char cgroup[GROUP_CGROUP_MAX]);

/* The number of the revision in force: never 0, raised by every change. Never NULL: without a group, a number that is
 * always 0. */
const _Atomic uint64_t *group_number(const struct group *group);

/* Copies the revision in force, and its number. False if the group is damaged. */
bool group_read(const struct group *group, struct segment_revision *revision, uint64_t *number);

/* Gives the group what `wanted` gives, partitions, of the time and of memory; the rest stays. All members obey at their next launch. -1 with the
 * reason, and nothing changed. */
int group_change(struct group *group, const struct segment_revision *wanted, struct error *error);

/* The same for a group without partitions. 1 if it has some already. */
int group_begin(struct group *group, const struct segment_revision *wanted, struct error *error);

/* What is in force for a member with this revision: `revision` becomes that. */
bool group_resolve(const struct group *group, struct segment_revision *revision);

/* The ledger of the members' memory, to look at; NULL without a group. */
const struct ledger *group_ledger(const struct group *group);

/* The same for writing, in a file from group_open_to_write. NULL with errno. */
struct ledger *group_ledger_map(int file);
void group_ledger_unmap(struct ledger *ledger);

/* -1 with the reason if one of these partitions leads out of a group that fences. */
int group_check_within(const struct group *group, const struct segment_partition *partitions, uint32_t count,
                       struct error *error);

#endif
