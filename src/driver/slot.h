/*
 * Shares the driver's one subscriber slot, so that CUPTI, and all that is built on it, goes on working beside us
 * (docs/facts.md, "The callback table").
 *
 * We stay the driver's subscriber. The table's entries for subscribing and enabling are replaced by ours: another
 * subscriber gets our handle, and we hand on what it enabled. What it disables stays enabled where we need it.
 * One other subscriber at a time, as in a driver without us; a second one is told that the slot is taken. Once it has
 * unsubscribed, it hears nothing more: that waits for callbacks that other threads are in, SLOT_PATIENCE_MS at most.
 *
 * One that was there before us has the slot to itself: what it subscribed with is known to the driver alone. Its
 * unsubscribe call reaches us; we subscribe then.
 */
#ifndef NVTASKSET_DRIVER_SLOT_H
#define NVTASKSET_DRIVER_SLOT_H

#include "base/error.h"
#include "cuda.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* By which the driver's cuGetExportTable knows the table. */
#define SLOT_TABLE_ID {{0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e, 0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b}}

/* Entries of the table; how they are called was measured (docs/facts.md, "The callback table"; docs/hardware.md). */
enum {
	SLOT_SUBSCRIBE = 3,
	SLOT_UNSUBSCRIBE = 4,
	SLOT_ENABLE = 6,
	SLOT_ENABLE_DOMAIN = 7,
	SLOT_ENABLE_ALL = 8,
	SLOT_DECLARE_FEATURE = 9,
	SLOT_SUBSCRIBE_WITH_NAME = 11,
	SLOT_ENTRIES = 12 /* the size in bytes, then entries 1 to 11 */
};

typedef void slot_callback(void *user, int domain, int id, const void *parameters);
typedef CUresult slot_subscribe(uint32_t *handle, slot_callback *function, void *user);
typedef CUresult slot_subscribe_with_name(uint32_t *handle, slot_callback *function, void *user,
                                          const char *name);
typedef CUresult slot_unsubscribe(uint32_t handle);
typedef CUresult slot_enable(uint32_t on, uint32_t handle, int domain, int id);
typedef CUresult slot_enable_domain(uint32_t on, uint32_t handle, int domain);
typedef CUresult slot_enable_all(uint32_t on, uint32_t handle);
typedef CUresult slot_declare_feature(uint32_t on, uint32_t handle, int feature);

/* From here on others may subscribe beside us. `handle` is our subscription; `is_ours` says which events we need.
 * -1 with the reason where the table cannot be changed: others are refused then, as without us. */
int slot_share(void **table, uint32_t handle, bool (*is_ours)(int domain, int id), struct error *error);

/* From here on `may_be_free` is called when the slot's holder has left it, on its thread; when we have come, slot_share
 * is for those that follow. -1 where the table cannot be changed. */
int slot_wait(void **table, void (*may_be_free)(void));

/* NULL where nobody else is subscribed. Written by slot.c alone. */
struct slot_subscriber;
extern _Atomic(struct slot_subscriber *) slot_other __attribute__((visibility("hidden")));

static inline bool slot_is_shared(void)
{
	return atomic_load_explicit(&slot_other, memory_order_acquire);
}

/* Hands an event on to the other subscriber, where there is one and it wants it. */
void slot_hand_on(int domain, int id, const void *parameters);

/* Long enough for any callback that waits for nobody, and short enough for one that waits for who unsubscribes. */
#define SLOT_PATIENCE_MS 2000

/* In the child of a fork: what other threads were in, they are in no more. */
void slot_after_fork(void);

#endif
