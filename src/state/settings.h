/*
 * What a program is given besides partitions: time, and memory. One table, for revisions, text, the options of the
 * command, JSON and the API; Python has the same names (tests/python/api.py).
 */
#pragma once

/* X(identifier, name, kind of text (setting_text.c), first member in a revision, member behind, least, most, member in
 * JSON, and for --help and completion: value, whether for newcomers, values to offer, effect; behind a ';' in the
 * effect: hints for --help at options without a line there). Memory is last. */
#define SETTINGS(X)                                                                                                   \
	X(QUOTA, "quota", quota, quota, rank, 0, 0, "quota", "30%", true, "10% 25% 50% 30ms/100ms max",               \
	  "present for 30% of the time; --lend, --borrow idle TPCs")                                                  \
	X(PRIORITY, "priority", number, rank.priority, rank.weight, 0, SEGMENT_PRIORITY_MAX, "priority", "80", true,  \
	  "20 50 80", "go first, of 0-99; --weight 200: twice as much as others")                                     \
	X(WEIGHT, "weight", number, rank.weight, rank.unused, 1, SEGMENT_WEIGHT_MAX, "weight", "N", false,            \
	  "50 100 200", "its part of the time, 1-10000; default 100")                                                 \
	X(LEND, "lend", limit, lending.lend_us, lending.borrows, 0, 0, "lend_us", "[=LIMIT]", false,                  \
	  "1ms 2ms 5ms off", "others may use its TPCs while it is idle")                                              \
	X(BORROW, "borrow", tpcs, lending.borrows, memory, 0, 0, "borrow", "[=TPCS]", false, "all off",               \
	  "it may use what others lend")                                                                              \
	X(MEMORY, "memory", bytes, memory, partitions, 0, 0, "memory_limit_bytes", "SIZE", true,                      \
	  "1G 2G 4G 8G 16G max", "at most so much memory of each GPU, such as 2G")

enum setting {
#define SETTING_ENUM(identifier, ...) SETTING_##identifier,
	SETTINGS(SETTING_ENUM)
#undef SETTING_ENUM
	SETTING_COUNT
};
