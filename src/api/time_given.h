/* The settings of processes and groups: checked, and converted from and to public structs. */
#pragma once

#include "api/internal.h"
#include "state/segment/memory.h"
#include "state/segment/segment.h"
#include "state/setting_text.h"

#include <inttypes.h>

/* Fills `wanted` with a change of one setting, from plain text (setting_text.h). -1 with the reason. */
int api_want(struct segment_revision *wanted, enum setting setting, struct error *error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* X(name, setting, plain text, parameters): functions that give a setting to a process, or to a group. */
#define API_SETTERS(X)                                                                                                \
	X(quota, SETTING_QUOTA, ("%u/%u", run_us, period_us), uint32_t run_us, uint32_t period_us)                    \
	X(priority, SETTING_PRIORITY, ("%u", priority), unsigned int priority)                                        \
	X(weight, SETTING_WEIGHT, ("%u", weight), unsigned int weight)                                                \
	X(lend, SETTING_LEND, ("%u", limit_us), uint32_t limit_us)                                                    \
	X(borrow, SETTING_BORROW, ("%s", api_borrow(set, (char[SETTING_TEXT]){0})), const struct nvtaskset_set *set) \
	X(memory, SETTING_MEMORY, ("%" PRIu64, limit), uint64_t limit)
#define API_TEXT(...) __VA_ARGS__

/* The plain text of --borrow: "" (off) for NULL; a text that setting_parse refuses for an empty set. Returns `text`. */
const char *api_borrow(const struct nvtaskset_set *set, char text[SETTING_TEXT]);

/* -1 with the reason if the process cannot have the settings `wanted`: a weight, if the process may be a client of MPS;
 * lending or borrowing, if not. */
int api_check_time(pid_t pid, const struct segment_revision *wanted, struct error *error);

/* Settings and results. Results of a group are not known: `time` and `borrowed` are all zero. */
struct api_given {
	struct segment_revision revision;
	struct segment_time time;
	struct segment_borrowed borrowed;
};

/* X(name): functions that read settings and results. */
#define API_READERS(X) X(quota) X(rank) X(lending)

/* Fill public structs. -1 with the reason, as api_fill. */
int api_fill_quota(struct nvtaskset_quota *quota, const struct api_given *given, struct error *error);
int api_fill_rank(struct nvtaskset_rank *public, const struct api_given *given, struct error *error);
int api_fill_lending(struct nvtaskset_lending *public, const struct api_given *given, struct error *error);
int api_fill_memory(struct nvtaskset_memory *public, const struct segment_memory_use *use, struct error *error);
