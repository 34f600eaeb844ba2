/*
 * How much memory of each GPU this process has, on which ledger (state/ledger.h) that is written down, and whether
 * there may be more.
 *
 * Which limits hold, state/segment/memory.h says. A process that may not write its group's ledger shares one with its
 * user's other members (state/group/apart.h); one that finds no slot obeys the limits by itself.
 *
 * All functions may be called from any thread. None calls the driver but account_of_context and account_of_device.
 */
#ifndef NVTASKSET_MEMORY_ACCOUNT_H
#define NVTASKSET_MEMORY_ACCOUNT_H

#include "driver/cuda.h"
#include "state/segment/segment.h"

#include <stdbool.h>
#include <stdint.h>

/* Of a GPU. It stays for as long as the process. */
struct account;

/* From here on, limits are this segment's. Only while no thread uses the driver. In the child of a fork, which has
 * nothing yet. */
void accounts_use(const struct segment *segment);
void accounts_after_fork(void);

/* NULL if the GPU cannot be told, or there are too many. */
struct account *account_of_context(CUcontext context);
struct account *account_of_device(CUdevice device);
CUdevice account_device(const struct account *account);
struct pci_address account_pci(const struct account *account);

/* Adds so many bytes, or none and false if a limit would be exceeded. */
bool account_reserve(struct account *account, uint64_t bytes);

/* Adds what is there already, whatever the limits say; or takes away. */
void account_change(struct account *account, int64_t bytes);

/* The process has memory that is not counted. */
void account_has_gap(void);

/* Gives back what dead members of the group had. */
void account_reclaim(void);

/* In bytes: the smaller one of the limits, UINT64_MAX without one; and what this process could still have. */
struct account_room {
	uint64_t limit, free;
};
struct account_room account_room(struct account *account);

/* What this process has, in bytes. */
uint64_t account_bytes(struct account *account);

#endif
