/*
 * A subscription of the test's own to the driver's callbacks (facts.md, "The callback table" and "Callbacks"),
 * which remembers the events. There is one slot, so only a program that runs without nvtaskset gets it.
 */
#ifndef TESTS_SUBSCRIBER_H
#define TESTS_SUBSCRIBER_H

#include "gpu.h"

enum {
	TABLE_SUBSCRIBE = 3,
	TABLE_UNSUBSCRIBE = 4,
	TABLE_ENABLE = 6,
	TABLE_ENABLE_DOMAIN = 7,
	TABLE_ENABLE_ALL = 8,
	TABLE_DECLARE_FEATURE = 9,
	TABLE_QUERY_FEATURE = 10,
	TABLE_SUBSCRIBE_WITH_NAME = 11,
	TABLE_ENTRIES = 12
};

enum {
	RESOURCES = 2,
	CONTEXT_CREATED = 1,
	CONTEXT_DESTROY_STARTING = 2,
	CONTEXT_DESTROYED = 3,
	API = 6,
	LAUNCHES = 0xb,
	BEFORE_UPLOAD = 1,
	GRAPH_NODE_LAUNCH = 3
};

#define EVENT_WORDS 21 /* of the longest known event */
#define QMD_WORDS 96

struct event {
	int domain;
	int id;
	uint64_t words[EVENT_WORDS];
	uint32_t qmd[QMD_WORDS]; /* before `act` changed it, for events of launches */
};

/* One of these words that is an address. */
static inline void *pointer(uint64_t word)
{
	return (void *)(uintptr_t)word;
}

/* Called from the callback, before the driver goes on. */
typedef void subscriber_action(int domain, int id, const uint64_t *words);

typedef void subscriber_callback(void *user, int domain, int id, const void *parameters);
typedef CUresult table_subscribe(uint32_t *handle, subscriber_callback *callback, void *user);
typedef CUresult table_unsubscribe(uint32_t handle);

/* The driver's table. No cuInit is needed. A tool hears only of the first call: the driver announces who asks for it. */
void *const *subscriber_table(void);

/* Its entries, for tests that are tools of their own. */
#define tool_subscribe ((table_subscribe *)subscriber_table()[TABLE_SUBSCRIBE])
#define tool_subscribe_with_name                                                                   \
	((CUresult(*)(uint32_t *, subscriber_callback *, void *, const char *))subscriber_table()[TABLE_SUBSCRIBE_WITH_NAME])
#define tool_unsubscribe ((table_unsubscribe *)subscriber_table()[TABLE_UNSUBSCRIBE])
#define tool_enable ((CUresult(*)(uint32_t, uint32_t, int, int))subscriber_table()[TABLE_ENABLE])
#define tool_enable_domain ((CUresult(*)(uint32_t, uint32_t, int))subscriber_table()[TABLE_ENABLE_DOMAIN])
#define tool_enable_all ((CUresult(*)(uint32_t, uint32_t))subscriber_table()[TABLE_ENABLE_ALL])
#define tool_declare_feature ((CUresult(*)(uint32_t, uint32_t, int))subscriber_table()[TABLE_DECLARE_FEATURE])
#define tool_query_feature ((CUresult(*)(uint32_t *, uint32_t, int))subscriber_table()[TABLE_QUERY_FEATURE])

/* Subscribes and enables launches. `act` may be NULL. */
void subscriber_open(subscriber_action *act);
void subscriber_close(void);
void subscriber_enable(int domain, int id);
CUresult subscriber_declare(int feature);

/* How many events came since subscriber_open or the last subscriber_forget. Not for several threads. */
unsigned int subscriber_count(int domain, int id);
unsigned int subscriber_count_all(void);
unsigned int subscriber_count_function(int domain, int id, CUfunction function); /* of launches of this one */
const struct event *subscriber_last(int domain, int id); /* there must be one */
const struct event *subscriber_event(unsigned int number); /* from 0 on */
void subscriber_forget(void);

/* An action: leaves each launch exactly these TPCs, which may be none. */
void subscriber_narrow_to(const struct gpu_under_test *gpu, struct tpcset set);
subscriber_action subscriber_narrow;

#endif
