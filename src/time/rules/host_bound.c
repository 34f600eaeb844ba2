#include "host_bound.h"

#define BETWEEN_NS UINT64_C(400000) /* two looks, but the second of two */
#define SECOND_NS UINT64_C(50000)   /* from the first of two: more than most hosts need from launch to launch */
#define LATE_NS UINT64_C(1000000)   /* the second of two looks does not tell whether the host waits */
#define IN_ROW_NS UINT64_C(100000)  /* launches in a row are no further apart */

/* --- answers ------------------------------------------------------------------------------------------------------ */

#define LOOKS 256
#define NO_DOUBT_NS UINT64_C(20000000000) /* after looks at a host that was not slow */

#define GPU_WAITS 8 /* in this part of the looks */

static void answer(struct host_bound *host, uint64_t now)
{
	if (host->speed == HOST_IS_NOT_SLOW) {
		if (now >= host->doubted_from && host->looks.pauses * GPU_WAITS >= LOOKS)
			host->speed = HOST_MAY_BE_SLOW;
	} else if (host->looks.waits >= host->looks.pauses) {
		host->speed = HOST_IS_NOT_SLOW;
		host->doubted_from = now + NO_DOUBT_NS;
	} else {
		host->speed = HOST_IS_SLOW;
	}
	host->looks = (struct host_looks){.all = 0};
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
uint64_t host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight, bool rests)
{
	uint64_t passed = now - host->looked, launches = launched - host->launched;
	bool is_work = in_flight > 0 || launches * IN_ROW_NS >= passed, is_in_doubt = host->speed != HOST_IS_NOT_SLOW;
	bool is_second = host->is_first && passed <= LATE_NS;
	bool is_pause = is_second ? host->was_idle : in_flight == 0;

	if (passed < (is_second ? SECOND_NS : BETWEEN_NS))
		return is_second ? SECOND_NS - passed : HOST_BOUND_ANY_NS;
	if (is_in_doubt && !rests)
		host->looks = (struct host_looks){.all = 0};
	else if (is_in_doubt ? is_second : is_work)
		count(host, now, is_pause, in_flight > 0 && launches == 0);
	host->is_first = !is_second && is_work && rests && host->speed != HOST_IS_NOT_SLOW;
	host->was_idle = in_flight == 0;
	host->looked = now;
	host->launched = launched;
	return host->is_first ? SECOND_NS : HOST_BOUND_ANY_NS;
}
