/*
 * The law of lending, and of priorities side by side. Pure: the caller gives the observations, and the time in ns.
 *
 *   claim    A program has a claim on the TPCs of its SET. Of two claims to a TPC the one of higher priority is higher;
 *            a lender's is always higher than a borrower's. A claim wants from the announcement of a launch to the end.
 *   wide     While a higher claim is idle, launches of a second program may use the TPCs: these launches are wide. A
 *            launch is wide from the write of the mask to the end of the launch, or until a narrow mask is written
 *            before the GPU fetches the launch.
 *   window   The unended wide launches of a borrower last W/n at most: W is the claim's idle time beyond 0.25 ms, and
 *            LIMIT at most; n borrowers had work of late. So a returning claim waits no longer, and less long than the
 *            claim was idle, but in a pool, where news are late. A program between two short kernels lends nothing:
 *            a part of each gap would add up.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* --- claim ------------------------------------------------------------------------------------------------------- */

#define LENDING_FOR_LONG UINT64_MAX /* so long that the exact time does not matter */

/* A higher claim, as seen by this process. One thread at a time. All zero: not seen yet. */
struct lending_claim {
	uint64_t launches; /* when the claim was idle: a number that changes with each launch */
	uint64_t since;    /* idle since then at least; 0: not idle */
};

/* Whether the claim is idle for long, without a look at the clock. `launches` was read before. */
static inline bool lending_is_at_rest(const struct lending_claim *claim, uint64_t launches)
{
	return claim->since == LENDING_FOR_LONG && claim->launches == launches;
}

/* How long the claim has been idle; 0: the claim wants. `launches` was read before `wants`. After `long_ns` the claim
 * is at rest. */
uint64_t lending_idle_ns(struct lending_claim *claim, uint64_t launches, bool wants, uint64_t now, uint64_t long_ns);

/* --- window ------------------------------------------------------------------------------------------------------ */

/* So long an idle claim lends nothing: 0.25 ms, or less where LIMIT is less than 2 ms. */
static inline uint64_t lending_first_ns(uint64_t limit_ns)
{
	return limit_ns / 8 < 250000 ? limit_ns / 8 : 250000;
}

/* After so long without work, a claim lends LIMIT. */
static inline uint64_t lending_rest_ns(uint64_t limit_ns)
{
	return lending_first_ns(limit_ns) + limit_ns;
}

/* W/n: n is `borrowers`, a divisor. */
uint64_t lending_window_ns(uint64_t idle_ns, uint64_t limit_ns, uint64_t borrowers);

/* Guesses the length of a launch on `more` TPCs, from the length on `part` TPCs: for one launch, whose length is then
 * known. */
uint64_t lending_guess_ns(uint64_t part_ns, unsigned int part, unsigned int more);

/* --- waits of programs without TPCs of their own ----------------------------------------------------------------- */

#define LENDING_ROW_NS UINT64_C(50000) /* launches of a higher priority in a row are no further apart */
#define LENDING_EPISODE_NS UINT64_C(100000000) /* the longest wait: then all programs go */
#define LENDING_FREE_NS UINT64_C(10000000)     /* the time for which all programs go */
