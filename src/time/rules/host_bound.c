#include "host_bound.h"

#define BETWEEN_NS UINT64_C(400000)   /* two looks */
#define LONG_NS UINT64_C(20000000)    /* after so long, a look does not tell how often the program launches */
#define IN_ROW_NS UINT64_C(100000)    /* launches in a row are no further apart */
#define FULL 768                      /* kernels in flight: the queue makes the host wait; a ring holds 1024 */

/* --- answers ------------------------------------------------------------------------------------------------------ */

#define LOOKS 256
#define GPU_WAITS 8                       /* in this part of the looks: doubt */
#define COST_NS 5000                      /* of a launch; twice, since with twice the TPCs half of a wait stays */
#define NO_DOUBT_NS UINT64_C(20000000000) /* once the host was not slow */
#define DOUBT_NS UINT64_C(2000000000)     /* with too few looks until then, the host is not slow */

static void set_speed(struct host_bound *host, enum host_speed speed, uint64_t until)
{
	host->speed = speed;
	host->until = until;
	host->looks = (struct host_looks){.all = 0};
}

static void answer(struct host_bound *host, uint64_t now)
{
	const struct host_looks *looks = &host->looks;
	bool gpu_waits = looks->pauses * GPU_WAITS >= LOOKS;
	bool waiting_pays = looks->waits * looks->ns / LOOKS > looks->launches * COST_NS;

	if (host->speed != HOST_IS_NOT_SLOW)
		set_speed(host, waiting_pays ? HOST_IS_NOT_SLOW : HOST_IS_SLOW, now + NO_DOUBT_NS);
	else if (gpu_waits && now >= host->until)
		set_speed(host, HOST_MAY_BE_SLOW, now + DOUBT_NS);
	else
		set_speed(host, HOST_IS_NOT_SLOW, host->until);
}

/* --- looks -------------------------------------------------------------------------------------------------------- */

static void count(struct host_bound *host, uint64_t now, const struct host_look *look)
{
	struct host_looks *looks = &host->looks;

	looks->all++;
	looks->pauses += look->in_flight == 0;
	looks->waits += (look->is_blocked && look->in_flight > 0) || look->in_flight >= FULL;
	looks->launches += look->launched - host->launched;
	looks->ns += now - host->looked;
	if (looks->all == LOOKS)
		answer(host, now);
}

void host_bound_look(struct host_bound *host, uint64_t now, const struct host_look *look, bool rests)
{
	uint64_t passed = now - host->looked, launches = look->launched - host->launched;
	bool is_work = look->in_flight > 0 || launches * IN_ROW_NS >= passed;

	if (passed < BETWEEN_NS)
		return;
	if (host->speed != HOST_IS_NOT_SLOW && !rests)
		host->looks = (struct host_looks){.all = 0};
	else if (is_work && passed <= LONG_NS)
		count(host, now, look);
	/* Without work there is no answer. */
	if (host->speed == HOST_MAY_BE_SLOW && rests && passed > LONG_NS)
		host->until += passed;
	if (host->speed == HOST_MAY_BE_SLOW && now >= host->until)
		set_speed(host, HOST_IS_NOT_SLOW, now + NO_DOUBT_NS);
	host->looked = now;
	host->launched = look->launched;
}
