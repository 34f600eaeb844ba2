#include "host_bound.h"

#define MS UINT64_C(1000000)

#define APART_LOOKS_NS (MS * 2 / 5)
#define WINDOW_NS (100 * MS)
#define LOOKS 32 /* for an answer, at least */
#define AGAIN_NS (10000 * MS)

/* Launches in a row are so far apart at most. A host that is so many launches ahead waits for the GPU in the end. */
#define APART_NS UINT64_C(25000)
#define AHEAD 64

/* Of the looks, to become host-bound, and to stay. */
static bool are_enough(const struct host_bound *host)
{
	return host->is ? host->waits * 2 > host->looks : host->waits * 4 > host->looks * 3;
}

static void answer(struct host_bound *host, uint64_t now)
{
	bool is = now >= host->again && are_enough(host);

	if (host->is && !is)
		host->again = now + AGAIN_NS;
	host->is = is;
	host->began = now;
	host->looks = host->waits = 0;
}

void host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight)
{
	uint64_t passed = now - host->looked, more = launched - host->launched;
	bool is_first = host->looked == 0, is_in_row = more * APART_NS >= passed;

	if (!is_first && passed < APART_LOOKS_NS)
		return;
	host->looked = now;
	host->launched = launched;
	if (is_first)
		host->began = now;
	else if (in_flight > 0 || is_in_row)
		host->looks++;
	if (!is_first && is_in_row && in_flight < AHEAD)
		host->waits++;
	if (host->looks >= LOOKS && now - host->began >= WINDOW_NS)
		answer(host, now);
}
