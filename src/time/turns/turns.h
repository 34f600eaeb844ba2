/*
 * Time without MPS: programs take turns on a GPU. The program is suspended and resumed (suspend.c), and has shorter or
 * longer time slices (timeslice.c), by its rules (time/rules/rules.h). The means are the kernel driver's
 * (kernel_access.h). A program that must never wait is not suspended (eligibility.h).
 *
 * For our thread alone.
 */
#pragma once

#include "state/segment/segment.h"
#include "time/demand/work.h"
#include "time/rules/rivals.h"

/* The time between attempts of a suspension or a time slice, and the attempts in a row: a single refusal may be an
 * accident. */
#define TURNS_RETRY_NS UINT64_C(10000000)
#define TURNS_FAILURES_MAX 3

/* Our thread has begun, for the rules of the segment. */
void turns_begin(const struct segment *segment);

/* Looks at the program and its peers, and obeys the rules, of revision `number`. Returns when to look again;
 * `is_idle`: the program has no work, and nothing happens before its next launch. */
uint64_t turns_look(uint64_t number, bool *is_idle);

/* After a change of the rules: resumes the program if suspended, since the first look at peers may take long. */
void turns_make_ready(void);

/* The program is resumed, and has its own time slices. */
void turns_end(void);

/* Writes the used time to the segment. If the rules hold no more: resumes the program, and says once why. */
void turns_report(uint64_t number);

/* --- suspend.c ---------------------------------------------------------------------------------------------------- */

/*
 * Suspends and resumes all channels of this program (driver/channels/channels.h), also of contexts that come
 * meanwhile. The effect is judged: the program is ineligible (eligibility.h) if kernels still end in a suspension, or
 * if the kernel driver refuses again and again. Nothing to suspend is no failure. While contexts come or go,
 * suspensions are put off.
 */

/* Begins anew: the program is not suspended, and nothing was judged. */
void suspend_begin(void);

/* Whether the program is suspended. The GPU lets go of a program within the call of the kernel driver, some time after
 * the request, and takes the program up again by the end of the call. */
struct suspension suspend_state(void);

/* Suspends the program, whole or not at all. */
void suspend_now(void);

/* Whether suspensions were put off for over a second more than the program was suspended. After half a second of
 * suspension the answer is false again. */
bool suspend_is_put_off(void);

/* Resumes the program. After a refusal the program is ineligible, and still suspended. */
void suspend_resume(void);

/* Before each decision: judges, and looks for new channels shortly before `soonest`, the earliest time of a
 * suspension. Returns when to look again at the latest; UINT64_MAX: no need to look. */
uint64_t suspend_look(uint64_t now, const struct work *work, uint64_t soonest);

/* --- timeslice.c -------------------------------------------------------------------------------------------------- */

/*
 * The time slices of all groups of channels of the program (driver/channels/channels.h), also of contexts that come
 * meanwhile: how long the program runs in one go beside programs with work.
 *
 * Not for clients of MPS: their channels are the server's. Even a program that is never suspended may have short
 * slices (eligibility.h): the program goes on by itself. Page faults and waiting programs take longer, as beside any
 * neighbour.
 */

/* Begins anew: the program has its own slices. */
void timeslice_begin(void);

/* Gives slices of `wanted_us`; 0: the own slices. Asks the kernel driver for new lengths and new channels only, and no
 * more after repeated refusals. */
void timeslice_obey(uint64_t wanted_us, const struct work *work);

/* Warns, once, of a kernel driver that is asked no more. Not in a suspension: the reader of our warnings may be
 * slow. */
void timeslice_report_refusal(void);

/* The program has its own slices again. */
void timeslice_end(void);
