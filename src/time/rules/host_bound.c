#include "host_bound.h"

#define BETWEEN_NS UINT64_C(400000) /* two looks, but the second of two */
#define SECOND_NS UINT64_C(50000)   /* from the first of two: more than most hosts need from launch to launch */
#define LATE_NS UINT64_C(1000000)   /* the second of two looks does not tell whether the host waits */
#define IN_ROW_NS UINT64_C(100000)  /* launches in a row are no further apart */

/* --- answers ------------------------------------------------------------------------------------------------------ */

#define LOOKS 256
#define GPU_WAITS 8                       /* in this part of the looks: doubt */
#define HOST_WAITS 4                      /* in this part of the GPU's waits, or less often: the host is slow */
#define NO_DOUBT_NS UINT64_C(20000000000) /* once the host was not slow */
#define DOUBT_NS UINT64_C(2000000000)     /* with too few looks until then, the host is not slow */

static void set_speed(struct host_bound *host, enum host_speed speed, uint64_t until)
{
	host->speed = speed;
	host->until = until;
	host->looks = (struct host_looks){.all = 0};
}

static void trust(struct host_bound *host, uint64_t now)
{
	set_speed(host, HOST_IS_NOT_SLOW, now + NO_DOUBT_NS);
}

static void answer(struct host_bound *host, uint64_t now)
{
	bool gpu_waits = host->looks.pauses * GPU_WAITS >= LOOKS;
	bool host_waits = host->looks.waits * HOST_WAITS >= host->looks.pauses;

	if (host->speed == HOST_IS_NOT_SLOW && gpu_waits && now >= host->until)
		set_speed(host, HOST_MAY_BE_SLOW, now + DOUBT_NS);
	else if (host->speed == HOST_IS_NOT_SLOW)
		set_speed(host, HOST_IS_NOT_SLOW, host->until);
	else if (host_waits)
		trust(host, now);
	else
		set_speed(host, HOST_IS_SLOW, host->until);
}

/* --- looks -------------------------------------------------------------------------------------------------------- */

static void count(struct host_bound *host, uint64_t now, bool is_pause, bool is_wait)
{
	struct host_looks *looks = &host->looks;

	looks->all++;
	looks->pauses += is_pause;
	looks->waits += is_wait;
	if (looks->all == LOOKS)
		answer(host, now);
}

/* While the program is in doubt, only a second look counts, since a host may wait for much less time than there is
 * between looks. */
uint64_t host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, bool is_busy, bool rests)
{
	uint64_t passed = now - host->looked, launches = launched - host->launched;
	bool is_work = is_busy || launches * IN_ROW_NS >= passed, is_in_doubt = host->speed != HOST_IS_NOT_SLOW;
	bool is_second = host->is_first && passed <= LATE_NS;
	bool is_pause = is_second ? host->was_idle : !is_busy;

	if (passed < (is_second ? SECOND_NS : BETWEEN_NS))
		return is_second ? SECOND_NS - passed : HOST_BOUND_ANY_NS;
	if (is_in_doubt && !rests)
		host->looks = (struct host_looks){.all = 0};
	else if (is_in_doubt ? is_second : is_work)
		count(host, now, is_pause, is_busy && launches == 0);
	if (host->speed == HOST_MAY_BE_SLOW && now >= host->until)
		trust(host, now);
	host->is_first = !is_second && is_work && rests && host->speed != HOST_IS_NOT_SLOW;
	host->was_idle = !is_busy;
	host->looked = now;
	host->launched = launched;
	return host->is_first ? SECOND_NS : HOST_BOUND_ANY_NS;
}
