/*
 * A revision as text, which the environment carries from the command to the shim, and a policy as --policy takes it.
 */
#ifndef NVTASKSET_REVISION_TEXT_H
#define NVTASKSET_REVISION_TEXT_H

#include "base/error.h"
#include "revisions.h"
#include "state/revision_text.h"

#define SEGMENT_ENVIRONMENT "NVTASKSET_PARTITION"
#define SEGMENT_ROOT_ENVIRONMENT "NVTASKSET_PID" /* the process that got the partition */
#define SEGMENT_ENVIRONMENT_MAX (SEGMENT_GPUS * (PCI_ADDRESS_TEXT + TPCSET_TEXT) + 96)

/* "0000:3b:00.0=0-7,9;…;quota=30000/100000;priority=80;weight=200;policy=ht,pe", a quota in us. -1 with the reason. */
int segment_revision_parse(struct segment_revision *revision, const char *text, struct error *error);
const char *segment_revision_format(const struct segment_revision *revision, char text[SEGMENT_ENVIRONMENT_MAX]);

/* A policy, such as "ht,pe": at most one of prt and ht, and pe (revisions.h says what they are). Puts what the words give into the
 * rank; the rest stays. -1 with the reason, which does not name `text`, and nothing has changed. */
int policy_parse(struct segment_rank *rank, const char *text, struct error *error);

/* The words for what was given; "" for nothing. Whoever wrote the rank. Returns `text`. */
#define POLICY_TEXT 8
const char *policy_format(struct segment_rank rank, char text[POLICY_TEXT]);

#endif
