/*
 * The ledger of GPU memory: how much each process has on each GPU, and all together. Processes that have one limit
 * share one ledger in shared memory, a group's (group/group.h); a process without a group has one of its own, in its
 * segment.
 *
 * Amounts are in KiB. A member has a slot. For each GPU the ledger has a total and a share for each slot, and the total
 * is always the sum of the shares, whoever is killed at which instruction:
 *   1. A member writes its intent: by how much its share is to change, and the number of this change.
 *   2. One compare-and-swap changes the total. The word says who has changed it, and the change's number.
 *   3. The share follows. Whoever wants to change the total next first completes the share of the one before.
 * So a member that dies after (1) has changed nothing, and one that dies after (2) has changed both. Members never wait
 * for each other. A change that would take the total above a limit is refused in (2): threads and processes together
 * never exceed one.
 *
 * A member is dead when the kernel has dropped its lock on its byte of the file, and its process is gone or executes
 * another program. Whoever looks empties the slot of a dead one, by a change in its name; several may do so at once.
 *
 * All members write here. A hostile one can take its group's memory away or let it have too much, and nothing else.
 */
#ifndef NVTASKSET_STATE_LEDGER_H
#define NVTASKSET_STATE_LEDGER_H

#include "base/identity.h"
#include "gpu/pci_address.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LEDGER_GPUS 16
#define LEDGER_MEMBERS 128
#define LEDGER_UNLIMITED UINT32_MAX
#define LEDGER_UNIT UINT64_C(1024) /* bytes */

struct ledger {
	struct ledger_member {
		_Atomic uint64_t pid; /* 0: nobody's slot; written last */
		_Atomic uint64_t namespace, execution;
	} members[LEDGER_MEMBERS];
	struct ledger_gpu {
		_Atomic uint64_t pci;   /* 0: none yet */
		_Atomic uint64_t total; /* with the change that made it: ledger.c */
		struct ledger_account {
			_Atomic uint64_t share, intent;
		} accounts[LEDGER_MEMBERS];
	} gpus[LEDGER_GPUS];
};

/* Takes a slot for this process, and gives back what its process had before an exec. `file`: of the ledger, open for
 * writing, which stays open for as long as the process is a member; -1: nobody shares the ledger. Returns the slot; -1
 * if all are taken. */
int ledger_join(struct ledger *ledger, int file);

/* The row of a GPU; NULL if the ledger has no room for one more. */
struct ledger_gpu *ledger_find(struct ledger *ledger, struct pci_address pci);

/* The same without adding one: NULL if nobody has memory there. */
const struct ledger_gpu *ledger_look(const struct ledger *ledger, struct pci_address pci);

/* Changes the share of a slot of this process by so many KiB; one thread of the process at a time. False, and nothing
 * has changed, if it is more than 0 and the total would then exceed `most`. */
bool ledger_change(struct ledger_gpu *gpu, int slot, int64_t kib, uint32_t most);

/* Empties the slots of dead members. */
void ledger_reclaim(struct ledger *ledger, int file);

/* In KiB. */
uint32_t ledger_total(const struct ledger_gpu *gpu);
uint32_t ledger_share(const struct ledger_gpu *gpu, int slot);

/* The slot of a process; -1 if it has none. */
int ledger_slot_of(const struct ledger *ledger, struct identity who);

#endif
