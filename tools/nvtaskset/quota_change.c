#include "quota_change.h"

#include "base/clock.h"
#include "mps/reach.h"
#include "quota.h"

#define WAIT_MS 10

int quota_check(pid_t pid, struct segment_quota quota, struct error *error)
{
	return segment_quota_limits(quota) && mps_reaches(pid)
	               ? error_set(error, "pid %d: --quota: clients of MPS cannot be put aside each for itself; start it with --mps off",
	                           (int)pid)
	               : 0;
}

double quota_wait_end(void)
{
	return clock_ms() + WAIT_MS;
}

static bool is_seen(const struct segment *segment)
{
	struct segment_time time;

	segment_read_time(segment, &time);
	return time.number >= segment_revision_number(segment) && time.state != SEGMENT_TIME_PENDING;
}

void quota_wait(const struct segment *segment, double end_ms)
{
	while (!is_seen(segment) && clock_ms() < end_ms)
		clock_pause_us(1000);
}

const char *quota_refusal(const struct segment_time *time, struct segment_quota quota)
{
	return segment_quota_limits(quota) && quota_is_refused(time->state) ? segment_time_text(time->state) : NULL;
}
