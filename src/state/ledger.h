/*
 * The ledger of GPU memory: how much each process has on each GPU, and all together. Processes with the same limit
 * share a ledger in shared memory, their group's (group/group.h). A process without a group has a ledger in its
 * segment.
 *
 * Amounts are in KiB. A member has a slot. For each GPU the ledger has a total, and a share for each slot. The total is
 * always the sum of the shares, also where a member is killed between two instructions:
 *   1. The member writes its intent: by how much its share is to change, and the change's number.
 *   2. A compare-and-swap changes the total. The word has the slot and the change's number.
 *   3. The share follows. The next member to change the total completes the share of the change before.
 * A member that dies after (1) has changed nothing; after (2) it has changed both. Members never wait for each other. A
 * change is refused in (2) where the total would exceed the limit: so threads and processes together never do. The
 * shares agree with the total that (2) replaces. So a second limit, for some of the members, holds as exactly.
 *
 * A member is dead when the kernel has dropped the member's lock on a byte of the file. The lock belongs to the open
 * file by which the member has mapped the ledger: the lock lasts as long as the mapping, even if the program closes
 * all descriptors, and ends with the process, or when the process executes another program. So members need not see
 * each other in /proc. Any member that looks empties the slot of a dead member, by a change in the dead one's name.
 * Several may do so at once.
 *
 * All members write here. A hostile member can take the group's memory away, or let the group have too much.
 */
#pragma once

#include "base/identity.h"
#include "gpu/pci_address.h"

#include <stdatomic.h>

#define LEDGER_GPUS 16
#define LEDGER_MEMBERS 128
#define LEDGER_UNLIMITED UINT32_MAX
#define LEDGER_UNIT UINT64_C(1024) /* bytes */

struct ledger {
	struct ledger_member {
		_Atomic uint64_t pid; /* 0: the slot is free; written last */
		_Atomic uint64_t namespace;
		/* The same for all processes of a COMMAND with a limit of its own within the group's; 0: none. */
		_Atomic uint64_t command;
	} members[LEDGER_MEMBERS];
	struct ledger_gpu {
		_Atomic uint64_t pci;   /* 0: none yet */
		_Atomic uint64_t total; /* with the last change: ledger.c */
		struct ledger_account {
			_Atomic uint64_t share, intent;
		} accounts[LEDGER_MEMBERS];
	} gpus[LEDGER_GPUS];
};

/* Takes a slot for the calling process, and gives back the process's memory of before an exec. `file`: the open file by
 * which the ledger is mapped. -1: the ledger is the process's alone. Returns the slot; -1 if all are taken. */
int ledger_join(struct ledger *ledger, int file);

/* The row of a GPU; NULL if the ledger has no room for one more. */
struct ledger_gpu *ledger_find(struct ledger *ledger, struct pci_address pci);

/* The same without adding a row: NULL if there is none. */
const struct ledger_gpu *ledger_look(const struct ledger *ledger, struct pci_address pci);

/* Changes the share of the process's slot by `kib`; for a thread of the process at a time. False, and nothing has
 * changed, if `kib` is more than 0 and the total would exceed `most`. */
bool ledger_change(struct ledger_gpu *gpu, int slot, int64_t kib, uint32_t most);

/* The same; nor may the slot's command exceed a limit. */
bool ledger_change_within(struct ledger_gpu *gpu, int slot, int64_t kib, uint32_t most,
                          const struct ledger *ledger, uint32_t most_of_command);

/* Empties the slots of dead members. `own`: the process's slot, joined by the same file. */
void ledger_reclaim(struct ledger *ledger, int file, int own);

/* In KiB. */
uint32_t ledger_total(const struct ledger_gpu *gpu);
uint32_t ledger_share(const struct ledger_gpu *gpu, int slot);

/* In KiB, of all members that live. `file`: of the ledger; -1: the dead count as well, until a member looks. */
uint32_t ledger_of_living(const struct ledger *ledger, const struct ledger_gpu *gpu, int file);

/* In KiB, of all members of the slot's command; without a command, of the slot. */
uint32_t ledger_of_command(const struct ledger *ledger, const struct ledger_gpu *gpu, int slot);

/* The slot of a process; -1 if it has none. */
int ledger_slot_of(const struct ledger *ledger, struct identity who);
