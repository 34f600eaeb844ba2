/*
 * The law of lending, and of priorities side by side. Pure: what the caller sees, and when, in ns.
 *
 *   claim    A program has a claim on the TPCs of its SET. For a TPC in two SETs the higher priority is the higher claim;
 *            against a borrower the lender's always is. A claim wants from the announcement of a launch to its last end.
 *   wide     While a higher claim is idle, launches of another program may use its TPCs: these launches are wide. A launch
 *            counts as wide from the write of its mask on until it has ended, also after it was made narrow again.
 *   window   All wide launches of a borrower that have not ended last W/n at most: W is half of the time for which the claim
 *            has been idle, and LIMIT at most; n borrowers had work of late. So a claim that comes back waits no longer than
 *            that, and a program that pauses between its steps is hardly disturbed in each pause.
 *   debt     A borrower adds up for how long its wide launches kept claims waiting. Beyond a fiftieth of the time, W is halved
 *            for a while.
 */
#ifndef NVTASKSET_TIME_RULES_LENDING_H
#define NVTASKSET_TIME_RULES_LENDING_H

#include <stdbool.h>
#include <stdint.h>

/* --- claim ------------------------------------------------------------------------------------------------------- */

#define LENDING_FOR_LONG UINT64_MAX

/* A higher claim, as this process has seen it. One thread at a time. All zero: not seen yet. */
struct lending_claim {
	uint64_t launches; /* a number that changes with each of its launches: when it was idle */
	uint64_t since;    /* it has been idle, at least; LENDING_FOR_LONG: for so long that it does not matter; 0: it is not */
};

/* Whether the claim is idle for long, without a look at the clock. `launches` was read before. */
static inline bool lending_is_at_rest(const struct lending_claim *claim, uint64_t launches)
{
	return claim->since == LENDING_FOR_LONG && claim->launches == launches;
}

/* Otherwise: for how long it has been idle; 0: it wants. `launches` was read before it was seen whether it does. After
 * `long_ns` it is at rest. */
uint64_t lending_idle_ns(struct lending_claim *claim, uint64_t launches, bool wants, uint64_t now, uint64_t long_ns);

/* --- window ------------------------------------------------------------------------------------------------------ */

#define LENDING_IDLE_PART 2 /* of the time for which the claim has been idle */

/* W/n. */
uint64_t lending_window_ns(uint64_t idle_ns, uint64_t limit_ns, uint64_t borrowers);

/* A length, where what it was in its own part is known: on so many TPCs, once, to learn what it is there. */
uint64_t lending_guess_ns(uint64_t part_ns, unsigned int part, unsigned int more);

/* --- debt -------------------------------------------------------------------------------------------------------- */

#define LENDING_DEBT_NS UINT64_C(10000000000)
#define LENDING_DEBT_PART 50

struct lending_debt {
	uint64_t began, waited_ns; /* since then */
	uint64_t halved_until;
};

/* A claim came back, and waits for so long. */
void lending_kept_waiting(struct lending_debt *debt, uint64_t now, uint64_t ns);

static inline bool lending_is_halved(const struct lending_debt *debt, uint64_t now)
{
	return now < debt->halved_until;
}

/* --- waits of programs without TPCs of their own ----------------------------------------------------------------- */

#define LENDING_ROW_NS UINT64_C(50000) /* launches in a row of a higher priority are no further apart */
#define LENDING_EPISODE_NS UINT64_C(100000000) /* nobody waits for longer: then all go */
#define LENDING_FREE_NS UINT64_C(10000000)     /* for so long */

#endif
