/*
 * The memory of each GPU that this process has, the ledger in which the account is kept (state/ledger.h), and whether
 * there may be more.
 *
 * state/segment/memory.h says how limits are found. A process with no right to write the group's ledger shares one with
 * the user's members of the group (state/group/apart.c). Without a slot in the ledger, the limits hold for the process
 * alone.
 *
 * Any thread. Only account_of_context and account_of_device call the driver.
 */
#pragma once

#include "driver/cuda.h"
#include "state/segment/segment.h"

/* Of a GPU. Stays for as long as the process. */
struct account;

/* From here on, the limits are of this segment. Only while no thread uses the driver. accounts_after_fork: in the child
 * of a fork, which has no memory yet. */
void accounts_use(const struct segment *segment);
void accounts_after_fork(void);

/* Whether there is a limit now. Opens no ledger. */
bool accounts_are_limited(void);

/* NULL if the GPU cannot be told, or there are too many. */
struct account *account_of_context(CUcontext context);
struct account *account_of_device(CUdevice device);
CUdevice account_device(const struct account *account);
struct pci_address account_pci(const struct account *account);

/* Adds the bytes, or nothing and false if a limit would be exceeded. */
bool account_reserve(struct account *account, uint64_t bytes);

/* Adds bytes as they are there already, whatever the limits say; or takes away. */
void account_change(struct account *account, int64_t bytes);

/* The process has memory outside the account. */
void account_note_gap(void);

/* Gives back the memory of dead members of the group. */
void account_reclaim(void);

/* In bytes: the smaller limit, UINT64_MAX without one; and how much more the process could have. */
struct account_room {
	uint64_t limit, free;
};
struct account_room account_room(struct account *account);

/* In bytes, of the process. */
uint64_t account_bytes(struct account *account);
