/*
 * A revision as text, carried by the environment from the command to the shim.
 */
#pragma once

#include "base/error.h"
#include "revisions.h"

#define SEGMENT_ENVIRONMENT "NVTASKSET_PARTITION"
#define SEGMENT_ROOT_ENVIRONMENT "NVTASKSET_PID" /* the process that got the partition */
#define SEGMENT_ENVIRONMENT_MAX (SEGMENT_GPUS * (PCI_ADDRESS_TEXT + TPCSET_TEXT) + 128)

/* "0000:3b:00.0=0-7,9;…;quota=30000/100000;priority=80;weight=200;memory=2147483648". -1 with the reason.
 * Settings are plain (setting_text.h). */
int revision_parse(struct segment_revision *revision, const char *text, struct error *error);
const char *revision_format(const struct segment_revision *revision, char text[SEGMENT_ENVIRONMENT_MAX]);
