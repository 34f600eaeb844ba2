/*
 * The memory that holds this process's own partition and quota (src/state/segment), for programs that edit it themselves.
 */
#ifndef OWN_SEGMENT_H
#define OWN_SEGMENT_H

#include "state/segment/find.h"

#include <stdbool.h>

/* Opened by the first call. Ends a program that has none. */
struct segment *own_segment(void);

/* A quota that is never reached, or none; and what it is called in results. */
void own_segment_set_quota(bool on);
const char *own_segment_quota(bool on);

/* What has become of it; it is pending until the library has seen the last edit. */
enum segment_time_state own_segment_time(void);

#endif
