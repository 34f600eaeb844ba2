/* Quotas: what the user wrote, and as it is shown. */
#ifndef NVTASKSET_CLI_QUOTA_H
#define NVTASKSET_CLI_QUOTA_H

#include "base/error.h"
#include "state/revisions.h"

/* "30%", "30ms", "30ms/100ms" or "30%/1s"; us, ms and s are known; "max" is no limit any more. The period is 100 ms if it
 * is not said. -1 with the reason. */
int quota_parse(struct segment_quota *quota, const char *text, struct error *error);

/* "30ms", up to the end of `text`; and the other way: returns the length. */
bool quota_parse_time(double *us, const char *text);
int quota_format_time(char *text, size_t room, uint32_t us);

/* "30ms/100ms", "max"; returns `text`. */
#define QUOTA_TEXT 32
const char *quota_format(struct segment_quota quota, char text[QUOTA_TEXT]);

#endif
