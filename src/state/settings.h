/*
 * What a program is given besides partitions: time, and memory. One table, for text, the options of the command, JSON and
 * the API; Python has the same names (tests/python/api.py).
 */
#ifndef NVTASKSET_STATE_SETTINGS_H
#define NVTASKSET_STATE_SETTINGS_H

#include "base/error.h"
#include "revisions.h"

/* X(identifier, name, kind of text (settings.c), first member in a revision, member behind, least, most, member in JSON,
 * and for --help and completion: value, whether for newcomers, values to offer, effect). Memory is last. */
#define SETTINGS(X)                                                                                                  \
	X(QUOTA, "quota", quota, quota, rank, 0, 0, "quota", "30%", true, "10% 25% 50% 30ms/100ms max",              \
	  "present for 30% of the time; --lend, --borrow idle TPCs")                                                 \
	X(PRIORITY, "priority", number, rank.priority, rank.weight, 0, SEGMENT_PRIORITY_MAX, "priority", "80", true, \
	  "20 50 80", "go first, of 0-99; --weight 200: twice as much as others")                                    \
	X(WEIGHT, "weight", number, rank.weight, rank.unused, 1, SEGMENT_WEIGHT_MAX, "weight", "N", false,           \
	  "50 100 200", "its part of the time, 1-10000; default 100")                                                \
	X(LEND, "lend", limit, lending.lend_us, lending.borrows, 0, 0, "lend_us", "[=LIMIT]", false,                 \
	  "1ms 2ms 5ms off", "others may use its TPCs while it is idle")                                             \
	X(BORROW, "borrow", tpcs, lending.borrows, memory, 0, 0, "borrow", "[=TPCS]", false, "all off",              \
	  "it may use what others lend")                                                                             \
	X(MEMORY, "memory", bytes, memory, partitions, 0, 0, "memory_limit_bytes", "SIZE", true,                     \
	  "1G 2G 4G 8G 16G max", "at most so much memory of each GPU, such as 2G")

enum setting {
#define SETTING_ENUM(identifier, ...) SETTING_##identifier,
	SETTINGS(SETTING_ENUM)
#undef SETTING_ENUM
	SETTING_COUNT
};

const char *setting_name(enum setting setting);

bool setting_is_given(const struct segment_revision *revision, enum setting setting);
bool setting_is_equal(const struct segment_revision *a, const struct segment_revision *b, enum setting setting);
void setting_copy(struct segment_revision *to, const struct segment_revision *from, enum setting setting);

/* Whether a setting before `end` is given: of time with SETTING_MEMORY, any with SETTING_COUNT. */
bool setting_any_is_given(const struct segment_revision *revision, enum setting end);

/* A setting as text for people: "30ms/100ms", "80", "2ms", "all", "2G". Or plain, for programs: "30000/100000", "80",
 * "2000", "0-255", "2147483648", in us and bytes; "0" or "" is off. */
enum setting_text {
	SETTING_FOR_PEOPLE,
	SETTING_PLAIN
};

/* Gives the revision the setting. `text` is NULL for an option without a value. -1 with the reason, which does not name
 * the text, and nothing has changed. */
int setting_parse(struct segment_revision *revision, enum setting setting, const char *text, enum setting_text how,
                  struct error *error);

/* NULL: never given. Returns `text`. A setting of any writer becomes text in range. */
#define SETTING_TEXT TPCSET_TEXT
const char *setting_format(const struct segment_revision *revision, enum setting setting, enum setting_text how,
                           char text[SETTING_TEXT]);

/* A quota as a share of the time; us, bytes. Below 0: never given, no number, or memory without a limit. */
double setting_number(const struct segment_revision *revision, enum setting setting);

/* An amount of memory in the largest unit with three digits: "2G", "1.5G", "512M", "0". Returns `text`. */
#define MEMORY_TEXT 16
const char *memory_format(uint64_t bytes, char text[MEMORY_TEXT]);

#endif
