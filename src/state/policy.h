/*
 * A policy as words: as --policy takes it, and the environment carries it. "ht,pe": at most one of prt and ht, and pe
 * (revisions.h says what they are).
 */
#ifndef NVTASKSET_POLICY_H
#define NVTASKSET_POLICY_H

#include "base/error.h"
#include "revisions.h"

/* Puts what the words give into the rank; the rest stays. -1 with the reason, which does not name `text`, and nothing has
 * changed. */
int policy_parse(struct segment_rank *rank, const char *text, struct error *error);

/* The words for what was given; "" for nothing. Whoever wrote the rank. Returns `text`. */
#define POLICY_TEXT 8
const char *policy_format(struct segment_rank rank, char text[POLICY_TEXT]);

#endif
