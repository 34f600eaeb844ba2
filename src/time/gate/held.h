/*
 * How a client of MPS obeys what it was given in time: its launches step aside (launch/space/stepping.h), or are held
 * back (turnstile.h). Nobody's channels are touched.
 *
 * For our thread alone.
 */
#ifndef NVTASKSET_TIME_GATE_HELD_H
#define NVTASKSET_TIME_GATE_HELD_H

#include "state/segment/segment.h"

#include <stdbool.h>
#include <stdint.h>

/* From here on launches are held where this revision's rules say so. May be repeated, with another revision. */
void held_follow(const struct segment_revision *revision, uint64_t now);

/* Sees what has ended, what others want, and whether MPS is still there: its end ends every hold, until it is there again.
 * Returns when to look again at the latest; UINT64_MAX: no need. `is_idle`: nothing changes before the next launch. */
uint64_t held_look(uint64_t now, bool *is_idle);

/* What came of that, as far as was seen by the last look: SEGMENT_TIME_HELD, or why not all are held that should be. */
enum segment_time_state held_state(void);

/* Every hold ends. May be repeated. */
void held_end(void);

/* Writes to the segment what was used. */
void held_tell(const struct segment *segment);

#endif
