#include "host_bound.h"

#define BETWEEN_NS UINT64_C(400000)  /* two looks, but the second of two */
#define SECOND_NS UINT64_C(100000)   /* from the first of two */
#define TELLS_NS UINT64_C(1000000)   /* the longest time between two looks that tells whether the host waits */
#define IN_ROW_NS UINT64_C(100000)   /* launches in a row are no further apart */
#define REST_NS UINT64_C(10000000)   /* without work, a phase ends */
#define SEVERAL 3                    /* launches in flight */

/* --- the program ------------------------------------------------------------------------------------------------- */

#define LOOKS 256
#define NO_DOUBT_NS UINT64_C(20000000000) /* after looks at a host that was not slow */

#define GPU_WAITS 8 /* in this part of the looks */
#define HOST_WAITS 4 /* in this part of the pauses */

/* Where the host waits for each launch, shorter launches gain; unless the GPU is idle half of the time. */
static bool are_in_turns(const struct host_looks *looks)
{
	return looks->several == 0 && looks->pauses * 2 < looks->all;
}

static bool is_in_doubt(const struct host_looks *looks)
{
	bool gpu_waits = looks->pauses * GPU_WAITS >= looks->all;
	bool host_waits = looks->waits * HOST_WAITS >= looks->pauses;

	return gpu_waits && !host_waits && !are_in_turns(looks);
}

static void answer(struct host_bound *host, uint64_t now)
{
	if (host->speed == HOST_IS_NOT_SLOW) {
		if (now >= host->doubted_from && is_in_doubt(&host->program))
			host->speed = HOST_MAY_BE_SLOW;
	} else if (host->program.waits >= host->program.pauses || are_in_turns(&host->program)) {
		host->speed = HOST_IS_NOT_SLOW;
		host->doubted_from = now + NO_DOUBT_NS;
	} else {
		host->speed = HOST_IS_SLOW;
	}
	host->program = (struct host_looks){.all = 0};
}

static void count_for_program(struct host_bound *host, uint64_t now, bool is_pause, bool is_wait, bool are_several)
{
	struct host_looks *looks = &host->program;

	looks->all++;
	looks->pauses += is_pause;
	looks->waits += is_wait;
	looks->several += are_several;
	if (looks->all == LOOKS)
		answer(host, now);
}

/* --- the phase --------------------------------------------------------------------------------------------------- */

#define PAUSES 3 /* of the last 8 looks, in a host-bound phase; without a pause in 8 looks the phase has ended */
#define AHEAD 8  /* launches in flight in two looks in a row: the phase has ended */

static void count_for_phase(struct host_bound *host, uint64_t in_flight)
{
	host->pauses = (uint8_t)(host->pauses << 1 | (in_flight == 0));
	host->ahead = (uint8_t)(host->ahead << 1 | (in_flight >= AHEAD));
	host->several = host->several << 1 | (in_flight >= SEVERAL);
	bool is_busy = (host->ahead & 3) == 3 || host->pauses == 0 || host->several == 0;

	if (is_busy)
		host->is_in_phase = false;
	else if (__builtin_popcount(host->pauses) >= PAUSES)
		host->is_in_phase = true;
	host->pauses = is_busy ? 0 : host->pauses;
}

static void end_phase(struct host_bound *host)
{
	host->is_in_phase = false;
	host->pauses = host->ahead = 0;
	host->several = 0;
}

/* --- looks -------------------------------------------------------------------------------------------------------- */

/* With work. While the program is in doubt, only a second look counts for the program, since a host may wait for much
 * less time than there is between looks. */
static void count(struct host_bound *host, uint64_t now, uint64_t launches, uint64_t in_flight)
{
	bool is_wait = in_flight > 0 && launches == 0;

	if (host->speed == HOST_IS_NOT_SLOW && now - host->looked <= TELLS_NS)
		count_for_program(host, now, in_flight == 0, is_wait, in_flight >= SEVERAL);
	count_for_phase(host, in_flight);
	host->worked = now;
}

uint64_t host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight, bool rests)
{
	uint64_t passed = now - host->looked, launches = launched - host->launched;
	bool is_work = in_flight > 0 || launches * IN_ROW_NS >= passed;
	bool is_second = host->is_first && passed <= TELLS_NS;

	if (passed < (is_second ? SECOND_NS : BETWEEN_NS))
		return is_second ? SECOND_NS - passed : HOST_BOUND_ANY_NS;
	if (now - host->worked > REST_NS)
		end_phase(host);
	if (host->speed != HOST_IS_NOT_SLOW && !rests)
		host->program = (struct host_looks){.all = 0};
	else if (is_second)
		count_for_program(host, now, host->was_idle, in_flight > 0 && launches == 0, in_flight >= SEVERAL);
	if (is_work && !is_second)
		count(host, now, launches, in_flight);
	host->is_first = !is_second && is_work && rests && host->speed != HOST_IS_NOT_SLOW;
	host->was_idle = in_flight == 0;
	host->is = host->speed != HOST_IS_NOT_SLOW || host->is_in_phase;
	host->looked = now;
	host->launched = launched;
	return host->is_first ? SECOND_NS : HOST_BOUND_ANY_NS;
}
