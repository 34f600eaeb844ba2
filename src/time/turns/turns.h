/*
 * Time without MPS: programs take turns on a GPU. The program is suspended and resumed (suspend.h), and has shorter or
 * longer time slices (timeslice.h), by its rules (time/rules/rules.h). The means are the kernel driver's
 * (kernel_access.h). A program that must never wait is not suspended (eligibility.h).
 *
 * For our thread alone.
 */
#ifndef NVTASKSET_TIME_TURNS_TURNS_H
#define NVTASKSET_TIME_TURNS_TURNS_H

#include "state/segment/segment.h"

#include <stdbool.h>
#include <stdint.h>

/* Our thread has begun, for the rules of the segment. */
void turns_begin(const struct segment *segment);

/* Looks at the program and its peers, and obeys the rules, of revision `number`. Returns when to look again;
 * `is_idle`: the program has no work, and nothing happens before its next launch. */
uint64_t turns_look(uint64_t number, bool *is_idle);

/* After a change of the rules: resumes the program if suspended, since the first look at peers may take long. */
void turns_make_ready(void);

/* The program is resumed, and has its own time slices. */
void turns_end(void);

/* If the rules hold no more: resumes the program, and says once why. */
void turns_report(uint64_t number);

#endif
