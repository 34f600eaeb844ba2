#include "host_bound.h"

#define BETWEEN_LOOKS_NS UINT64_C(400000)
#define IN_ROW_NS UINT64_C(100000) /* launches in a row are no further apart */
#define REST_NS UINT64_C(10000000)  /* without work, a phase ends */

/* The looks that count are those with work in flight, or launches in a row. */
#define PAUSES 3  /* of the last 8 looks, in a host-bound phase; without a pause in 8 looks the phase has ended */
#define AHEAD 8   /* launches in flight in two looks in a row: the phase has ended */
#define SEVERAL 3 /* launches in flight: seen now and then, unless the host waits for each of its launches */

static void answer(struct host_bound *host)
{
	bool is_busy = (host->ahead & 3) == 3 || host->pauses == 0 || host->several == 0;

	if (is_busy)
		host->is = false;
	else if (__builtin_popcount(host->pauses) >= PAUSES)
		host->is = true;
	host->pauses = is_busy ? 0 : host->pauses;
}

static void count(struct host_bound *host, uint64_t in_flight)
{
	host->pauses = (uint8_t)(host->pauses << 1 | (in_flight == 0));
	host->ahead = (uint8_t)(host->ahead << 1 | (in_flight >= AHEAD));
	host->several = host->several << 1 | (in_flight >= SEVERAL);
}

void host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight)
{
	uint64_t passed = now - host->looked;
	bool is_in_row = (launched - host->launched) * IN_ROW_NS >= passed;

	if (passed < BETWEEN_LOOKS_NS)
		return;
	if (now - host->worked > REST_NS)
		*host = (struct host_bound){.is = false};
	if (in_flight > 0 || is_in_row) {
		count(host, in_flight);
		host->worked = now;
		answer(host);
	}
	host->looked = now;
	host->launched = launched;
}
