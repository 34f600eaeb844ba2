#include "host_bound.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

#define BETWEEN_LOOKS_NS (MS * 2 / 5)
#define LONGEST_NS (50 * MS) /* between two looks that count */
#define ANSWER_NS SECOND     /* active, for an answer */
#define STAYS_NS (20 * SECOND)
#define IN_ROW_NS (MS / 10)  /* launches in a row are no further apart */
#define PAUSED_PART 6        /* of the time, in a program that may be host-bound */

/* With lent TPCs: whether to see how fast the program is without. */
static void try(struct host_bound *host, uint64_t rate)
{
	host->is = host->paused_ns * PAUSED_PART > host->active_ns;
	host->rate = host->is ? rate : 0;
}

/* Without lent TPCs, for the first time since. A thirtieth is the program's own unevenness. */
static void compare(struct host_bound *host, uint64_t rate, uint64_t now)
{
	host->is = rate + rate / 30 >= host->rate;
	host->rate = 0;
	host->until = now + STAYS_NS;
}

static void answer(struct host_bound *host, uint64_t now)
{
	uint64_t rate = host->launches * SECOND / host->active_ns;

	if (host->rate != 0)
		compare(host, rate, now);
	else if (now >= host->until && !host->is)
		try(host, rate);
	else if (now >= host->until)
		host->is = false;
	host->active_ns = host->paused_ns = host->launches = 0;
}

static void count(struct host_bound *host, uint64_t passed, uint64_t more, uint64_t in_flight)
{
	bool is_in_row = more * IN_ROW_NS >= passed;

	if ((is_in_row || in_flight > 0) && passed <= LONGEST_NS) {
		host->active_ns += passed;
		host->paused_ns += in_flight == 0 ? passed : 0;
		host->launches += more;
	}
}

void host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight)
{
	uint64_t passed = now - host->looked;

	if (passed < BETWEEN_LOOKS_NS)
		return;
	count(host, passed, launched - host->launched, in_flight);
	host->looked = now;
	host->launched = launched;
	if (host->active_ns >= ANSWER_NS)
		answer(host, now);
}
