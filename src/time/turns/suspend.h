/*
 * Suspends and resumes all channels of this program (driver/channels/channels.h), also of contexts that come
 * meanwhile. The effect is judged: the program is ineligible (eligibility.h) if kernels still end in a suspension, or
 * if the kernel driver refuses again and again. Nothing to suspend is no failure. While contexts come or go,
 * suspensions are put off. The rules say when to suspend (time/rules/rules.h).
 *
 * For our thread alone.
 */
#ifndef NVTASKSET_TIME_TURNS_SUSPEND_H
#define NVTASKSET_TIME_TURNS_SUSPEND_H

#include "time/demand/work.h"
#include "time/rules/rivals.h"

#include <stdbool.h>
#include <stdint.h>

/* Begins anew: the program is not suspended, and nothing was judged. */
void suspend_begin(void);

/* Whether the program is suspended. The GPU lets go of a program within the call of the kernel driver, some time after
 * the request, and takes the program up again by the end of the call. */
struct suspension suspend_state(void);

/* Suspends the program, whole or not at all. False if nothing has changed. */
bool suspend_now(void);

/* The time between attempts of a suspension that is put off or refused. */
#define SUSPEND_RETRY_NS UINT64_C(10000000)

/* Suspensions were put off for a second longer than the program was suspended. Half a second of suspension ends the
 * state at the latest. */
bool suspend_is_put_off(void);

/* Resumes the program. After a refusal the program is ineligible, and still suspended. */
void suspend_resume(void);

/* Before each decision: judges, and looks for new channels shortly before `soonest`, the earliest time of a
 * suspension. Returns when to look again at the latest; UINT64_MAX: no need to look. */
uint64_t suspend_look(uint64_t now, const struct work *work, uint64_t soonest);

#endif
