/* The settings of a program (settings.h) as text. */
#pragma once

#include "base/error.h"
#include "revisions.h"

const char *setting_name(enum setting setting);

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

/* A quota's share of the time (0 … 1); the priority; the weight; us of lending; bytes. Below 0: never given, no number,
 * or memory without a limit. */
double setting_number(const struct segment_revision *revision, enum setting setting);

/* An amount of memory in the largest unit with three digits: "2G", "1.5G", "512M", "0". Returns `text`. */
#define MEMORY_TEXT 16
const char *setting_format_memory(uint64_t bytes, char text[MEMORY_TEXT]);
