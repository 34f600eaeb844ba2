/*
 * A set of TPCs of one GPU.
 *
 * A TPC is always named by its logical number, the one that software sees: SM id / SMs per TPC (the driver's
 * globalTpcId). Only gpu/topology knows which bit of a launch descriptor stands for it.
 *
 * Two notations, both like taskset's:
 *   list  0-9,12,20-30:2    numbers and ranges, optionally with a stride
 *   mask  3ff, 0x3ff        hexadecimal, bit n is TPC n; groups may be separated by commas as in
 *                           /proc: 1,00000000
 * Both parsers accept only a whole text.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* The driver's table of SMs has 512 rows (facts.md, "Topology"): with two SMs in a TPC, 256 TPCs. */
#define TPCSET_MAX 256
#define TPCSET_WORDS (TPCSET_MAX / 64)

/* Room for any set in either notation, with the final NUL. */
#define TPCSET_TEXT 1024

struct tpcset {
	uint64_t words[TPCSET_WORDS]; /* TPC n is bit n % 64 of words[n / 64] */
};

/* Members are 0 … TPCSET_MAX - 1; a number outside is never a member, and never added. A range includes `last`. */
void tpcset_add(struct tpcset *set, unsigned int tpc);
void tpcset_add_range(struct tpcset *set, unsigned int first, unsigned int last);
void tpcset_remove(struct tpcset *set, unsigned int tpc);
bool tpcset_has(const struct tpcset *set, unsigned int tpc);

bool tpcset_is_empty(const struct tpcset *set);
bool tpcset_equal(const struct tpcset *a, const struct tpcset *b);
bool tpcset_is_subset(const struct tpcset *inner, const struct tpcset *outer);
bool tpcset_overlap(const struct tpcset *a, const struct tpcset *b); /* they have a TPC in common */
unsigned int tpcset_count(const struct tpcset *set);

struct tpcset tpcset_and(const struct tpcset *a, const struct tpcset *b);
struct tpcset tpcset_or(const struct tpcset *a, const struct tpcset *b);
struct tpcset tpcset_without(const struct tpcset *a, const struct tpcset *b); /* a minus b */

/* The smallest member from `from` on, or TPCSET_MAX. */
unsigned int tpcset_next(const struct tpcset *set, unsigned int from);

/* `limit` is the first forbidden number; `noun` names a member in reasons ("TPC", "GPC"). -1 with the reason; `set` is
 * only written on success. The mask 0 is the empty set; an empty list is an error. */
int tpcset_parse_list(struct tpcset *set, const char *text, unsigned int limit, const char *noun,
                      struct error *error);
int tpcset_parse_mask(struct tpcset *set, const char *text, unsigned int limit, const char *noun,
                      struct error *error);

/* Whether a mask can have all characters of the text. Parsing may still fail: no digits, or misplaced commas. */
bool tpcset_looks_like_mask(const char *text);

/* Returns `text`, which has room for TPCSET_TEXT bytes. The empty set is "" as a list and "0" as a mask. */
const char *tpcset_format_list(const struct tpcset *set, char text[TPCSET_TEXT]);
const char *tpcset_format_mask(const struct tpcset *set, char text[TPCSET_TEXT]);
