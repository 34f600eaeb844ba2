/*
 * Shares the driver's single subscriber slot: CUPTI, and the tools that use CUPTI, work beside us (facts.md, "The
 * callback table").
 *
 * We stay the driver's subscriber. Our functions replace the table's entries for subscribing and enabling. A second
 * subscriber gets our handle, and we pass on the events that the subscriber enabled, but for our own calls of the
 * driver (hook.c). A disabled event stays enabled if we need the event. There can be one second subscriber at a time,
 * as in a driver without us; a third gets the error that the slot is taken. After unsubscribing, a subscriber gets no
 * more events: the call waits for callbacks on other threads, SLOT_PATIENCE_MS at most.
 *
 * A tool that subscribed before us keeps the slot to itself: only the driver knows the tool's callback. The tool's
 * unsubscribe call reaches our hook, and we subscribe then.
 */
#pragma once

#include "base/error.h"
#include "cuda.h"

#include <stdatomic.h>
#include <stdbool.h>

/* The table's UUID, for cuGetExportTable. */
#define SLOT_TABLE_ID {{0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e, 0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b}}

/* Entries of the table. The arguments were found by experiment (facts.md, "The callback table"; hardware.md). */
enum {
	SLOT_SUBSCRIBE = 3,
	SLOT_UNSUBSCRIBE = 4,
	SLOT_ENABLE = 6,
	SLOT_ENABLE_DOMAIN = 7,
	SLOT_ENABLE_ALL = 8,
	SLOT_DECLARE_FEATURE = 9,
	SLOT_SUBSCRIBE_WITH_NAME = 11,
	SLOT_ENTRIES = 12 /* entry 0, the table's size in bytes, and entries 1 to 11 */
};

typedef void slot_callback(void *user, int domain, int id, const void *parameters);
typedef CUresult slot_subscribe(uint32_t *handle, slot_callback *function, void *user);
typedef CUresult slot_unsubscribe(uint32_t handle);
typedef CUresult slot_enable(uint32_t on, uint32_t handle, int domain, int id);
typedef CUresult slot_enable_domain(uint32_t on, uint32_t handle, int domain);
typedef CUresult slot_declare_feature(uint32_t on, uint32_t handle, int feature);

/* From here on, a tool can subscribe beside us. `handle` is our subscription; `is_ours` names the events that we need.
 * -1 with the reason if the table cannot be changed: the driver then refuses further subscribers. */
int slot_share(void **table, uint32_t handle, bool (*is_ours)(int domain, int id), struct error *error);

/* From here on, `may_be_free` is called when the slot's holder has unsubscribed, on the same thread. Once we have the
 * slot, call slot_share for later subscribers. -1 if the table cannot be changed. */
int slot_wait(void **table, void (*may_be_free)(void));

/* NULL without a second subscriber. Only slot.c writes here. */
struct slot_subscriber;
extern _Atomic(struct slot_subscriber *) slot_other __attribute__((visibility("hidden")));

static inline bool slot_is_shared(void)
{
	return atomic_load_explicit(&slot_other, memory_order_acquire);
}

/* Passes an event to the other subscriber, if the event is enabled there. */
void slot_hand_on(int domain, int id, const void *parameters);

/* How long unsubscribing waits for callbacks: long enough for any callback that finishes by itself, and short enough to
 * bear if a callback waits for the unsubscribing thread. */
#define SLOT_PATIENCE_MS 2000

/* In the child of a fork: callbacks on the parent's threads do not count any more. */
void slot_after_fork(void);
