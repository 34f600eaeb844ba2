/*
 * While somebody looks at this process (monitor/monitor.h): for programs that know better what was looked at. A process
 * must have a partition, and its kernels must be counted.
 */
#ifndef OWN_TIMES_H
#define OWN_TIMES_H

#include "state/kernels/timestamps_layout.h"

#include <stdbool.h>

/* Whether somebody looks; and waits until somebody does, which must be soon. */
bool own_times_are_on(void);
void own_times_await(void);

/* Somebody looks, for a second and a half, without a watcher. Nobody looks any more, at once: no watcher may be left. */
void own_times_begin(void);
void own_times_end(void);

/* What is written for the watcher. For programs with one context, which has launched. */
const struct timestamps *own_times_ring(void);

#endif
