#include "host_bound.h"

#define MS UINT64_C(1000000)

#define BETWEEN_LOOKS_NS (MS * 2 / 5)
#define ANSWER_NS (200 * MS) /* for an answer, at least */
#define ANSWER_LOOKS 300
#define AGAIN_NS (10000 * MS)
#define IN_ROW_NS (MS / 10) /* launches in a row are no further apart */

/* Whether `count` is more than so many of a hundred looks. */
static bool is_more(const struct host_bound *host, unsigned int count, unsigned int of_hundred)
{
	return (uint64_t)count * 100 > (uint64_t)host->looks * of_hundred;
}

/* Without lent TPCs, while the answer is yes; and with. */
static bool is_bound(const struct host_bound *host)
{
	bool pauses = is_more(host, host->pauses, host->is ? 5 : 25);
	bool pauses_most = is_more(host, host->pauses, host->is ? 40 : 50);

	return (pauses_most || (pauses && is_more(host, host->several, 6))) && !is_more(host, host->waits, 25);
}

static void answer(struct host_bound *host, uint64_t now)
{
	bool is = now >= host->again && is_bound(host);

	if (host->is && !is)
		host->again = now + AGAIN_NS;
	host->is = is;
	host->began = now;
	host->looks = host->pauses = host->several = host->waits = 0;
}

static void count(struct host_bound *host, uint64_t passed, uint64_t more, uint64_t in_flight)
{
	bool is_in_row = more * IN_ROW_NS >= passed;

	host->looks += is_in_row || in_flight > 0;
	host->pauses += is_in_row && in_flight == 0;
	host->several += in_flight > 1;
	host->waits += more == 0 && in_flight > 0;
}

void host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight)
{
	uint64_t passed = now - host->looked;

	if (host->looked != 0 && passed < BETWEEN_LOOKS_NS)
		return;
	if (host->looked != 0)
		count(host, passed, launched - host->launched, in_flight);
	else
		host->began = now;
	host->looked = now;
	host->launched = launched;
	if (host->looks >= ANSWER_LOOKS && now - host->began >= ANSWER_NS)
		answer(host, now);
}
