#include "own_segment.h"

#include "bench.h"
#include "state/segment/edit.h"

#include <unistd.h>

#define PERIOD_US 10000000
#define RUN_US 9900000

struct segment *own_segment(void)
{
	static struct segment segment;
	static bool is_open;
	struct error error = {.reason = ""};

	if (!is_open && segment_open(&segment, getpid(), NULL, &error) != SEGMENT_FOUND)
		bench_fail("%s", error.reason);
	is_open = true;
	return &segment;
}

void own_segment_set_quota(bool on)
{
	const struct segment_revision wanted = {.quota = {.run_us = on ? RUN_US : PERIOD_US, .period_us = PERIOD_US}};
	struct error error;

	if (segment_change(own_segment(), &wanted, NULL, &error) < 0)
		bench_fail("%s", error.reason);
}

const char *own_segment_quota(bool on)
{
	return on ? "9900ms/10s" : "unlimited";
}

enum segment_time_state own_segment_time(void)
{
	struct segment_time time;

	segment_read_time(own_segment(), &time);
	return time.number == segment_revision_number(own_segment()) ? time.state : SEGMENT_TIME_PENDING;
}
