/*
 * A ledger of memory (state/ledger.h) for the members of one user in a group whose file they may not write: another
 * user's, as that of a job or of a container.
 *
 * It lies in a memfd that its members hold open, and is gone with the last of them. Who comes looks for it through
 * /proc; who finds none makes one. A lock on the group's file (flock, which needs no right to write) keeps two from
 * making two. Somebody who holds the lock for longer makes the others wait for APART_PATIENCE_MS, once in each process,
 * and then each goes without. Members that cannot see each other, as in two containers, have a ledger each.
 */
#ifndef NVTASKSET_STATE_GROUP_APART_H
#define NVTASKSET_STATE_GROUP_APART_H

#include "group.h"
#include "state/ledger.h"

#define APART_PATIENCE_MS 200

/* `group_file`: of the group, open for reading. Returns the ledger's file, which the caller keeps open, and the mapped
 * ledger; -1 if there is none. Looks at all processes, which takes milliseconds. */
int apart_open(const struct group *group, int group_file, struct ledger **ledger);
void apart_unmap(struct ledger *ledger);

#endif
