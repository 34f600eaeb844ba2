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
#ifndef NVTASKSET_STATE_GROUP_APART_H
#define NVTASKSET_STATE_GROUP_APART_H

#include "group.h"
#include "state/ledger.h"

#define APART_PATIENCE_MS 200

/* `group_file`: of the group, open for reading. Returns the ledger's file, for the caller to keep open, and the
 * mapped ledger; -1 without a ledger. Looks at all processes, for milliseconds. */
int apart_open(const struct group *group, int group_file, struct ledger **ledger);
void apart_unmap(struct ledger *ledger);

#endif
