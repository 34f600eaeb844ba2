#include "host_bound.h"

#define SHORTEST_NS UINT64_C(400000) /* between two looks */
#define LONGEST_NS UINT64_C(1000000) /* between two looks that tell whether the host waits */
#define SECOND_NS UINT64_C(500000)   /* between two looks at a slow program, one of them long after the last */
#define IN_ROW_NS UINT64_C(100000)   /* launches in a row are no further apart */
#define REST_NS UINT64_C(10000000)   /* without work, a phase ends */
#define SEVERAL 3                    /* launches in flight */

/* --- the program ------------------------------------------------------------------------------------------------- */

#define LOOKS 256
#define NO_DOUBT_NS UINT64_C(20000000000) /* after a look at a host that was not slow */

/* In these parts of the looks. */
#define GPU_WAITS 8
#define GPU_WAITS_SELDOM 64
#define HOST_WAITS 16

/* Where the host waits for each launch, shorter launches gain; unless the GPU is idle half of the time. */
static bool is_in_doubt(const struct host_looks *looks)
{
	bool gpu_waits = looks->pauses * GPU_WAITS >= looks->all, host_waits = looks->waits * 4 >= looks->pauses;
	bool is_in_turns = looks->several == 0 && looks->pauses * 2 < looks->all;

	return gpu_waits && !host_waits && !is_in_turns;
}

/* The program rests. */
static bool gains(const struct host_looks *looks)
{
	return looks->waits * HOST_WAITS >= looks->all || looks->pauses * GPU_WAITS_SELDOM < looks->all;
}

static void answer(struct host_bound *host, uint64_t now)
{
	if (host->speed == HOST_IS_NOT_SLOW) {
		if (now >= host->doubted_from && is_in_doubt(&host->program))
			host->speed = HOST_MAY_BE_SLOW;
	} else if (gains(&host->program)) {
		host->speed = HOST_IS_NOT_SLOW;
		host->doubted_from = now + NO_DOUBT_NS;
	} else {
		host->speed = HOST_IS_SLOW;
	}
	host->program = (struct host_looks){.all = 0};
}

static void count_for_program(struct host_bound *host, uint64_t now, uint64_t launches, uint64_t in_flight)
{
	struct host_looks *looks = &host->program;

	looks->all++;
	looks->pauses += in_flight == 0;
	looks->waits += in_flight > 0 && launches == 0;
	looks->several += in_flight >= SEVERAL;
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

uint64_t host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight)
{
	uint64_t passed = now - host->looked, launches = launched - host->launched;
	bool is_work = in_flight > 0 || launches * IN_ROW_NS >= passed;

	if (passed < SHORTEST_NS)
		return HOST_BOUND_ANY_NS;
	if (now - host->worked > REST_NS)
		end_phase(host);
	if (is_work && passed <= LONGEST_NS)
		count_for_program(host, now, launches, in_flight);
	if (is_work) {
		count_for_phase(host, in_flight);
		host->worked = now;
	}
	host->is = host->speed != HOST_IS_NOT_SLOW || host->is_in_phase;
	host->looked = now;
	host->launched = launched;
	return host->speed == HOST_IS_SLOW && is_work && passed > LONGEST_NS ? SECOND_NS : HOST_BOUND_ANY_NS;
}
