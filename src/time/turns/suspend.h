/*
 * How this program is suspended and resumed: all of its channels (driver/channels/channels.h), also those of contexts
 * that come meanwhile. It is judged by its effect: if kernels still end while it is suspended, that makes it ineligible
 * (eligibility.h), as does a kernel driver that refuses again and again. Nothing to suspend is no failure. While contexts come or
 * go, suspensions are put off. The rules say when (time/rules/rules.h).
 *
 * For our thread alone.
 */
#ifndef NVTASKSET_TIME_TURNS_SUSPEND_H
#define NVTASKSET_TIME_TURNS_SUSPEND_H

#include "time/demand/work.h"
#include "time/rules/suspension.h"

#include <stdbool.h>
#include <stdint.h>

/* From here on it is not suspended, and nothing was judged. */
void suspend_begin(void);

/* Whether it is suspended. The GPU lets go of a program some time after it was asked, before the call of the kernel driver ends;
 * it takes it up again by the end of the call. */
struct suspension suspend_state(void);

/* Suspends the program, whole or not at all. False if nothing has changed. */
bool suspend_now(void);

/* How often a suspension is tried that is put off or refused. */
#define SUSPEND_RETRY_NS UINT64_C(10000000)

/* Suspensions were put off for a second longer than the program was suspended. Half a second of suspension ends that at the
 * latest. */
bool suspend_is_put_off(void);

/* Resumes it. Where that is refused, it is ineligible, and still suspended. */
void suspend_resume(void);

/* Before each decision: judges, and looks for channels that are new, shortly before they are needed: the program is not suspended
 * before `soonest`. Returns when to look again at the latest; UINT64_MAX if nothing needs it. */
uint64_t suspend_look(uint64_t now, const struct work *work, uint64_t soonest);

#endif
