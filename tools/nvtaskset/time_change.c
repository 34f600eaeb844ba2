#include "time_change.h"

#include "base/clock.h"
#include "mps/reach.h"
#include "time_given.h"

#include <stdio.h>

#define WAIT_MS 10

int time_check(pid_t pid, const struct segment_revision *wanted, struct error *error)
{
	int result = 0;

	if (!segment_time_limits(wanted) || !mps_reaches(pid))
		return 0;
	if (segment_quota_limits(wanted->quota))
		result = error_set(error, "pid %d: --quota: clients of MPS cannot be put aside each for itself; start it with --mps off",
		                   (int)pid);
	else if (wanted->rank.weight > 0)
		result = error_set(error, "pid %d: --weight: clients of MPS take no turns that could be shared; start it with "
		                          "--mps off, or give it a partition's size", (int)pid);
	else
		fprintf(stderr, "nvtaskset: pid %d: --priority: others give way to it; as a client of MPS it cannot give way itself yet\n",
		        (int)pid);
	return result;
}

double time_wait_end(void)
{
	return clock_ms() + WAIT_MS;
}

static bool is_seen(const struct segment *segment)
{
	struct segment_time time;

	segment_read_time(segment, &time);
	return time.number >= segment_revision_number(segment) && time.state != SEGMENT_TIME_PENDING;
}

void time_wait(const struct segment *segment, double end_ms)
{
	while (!is_seen(segment) && clock_ms() < end_ms)
		clock_pause_us(1000);
}

/* Whether others give way to a program of this state, although it is never put aside itself. */
static bool can_go_first(enum segment_time_state state)
{
	return state == SEGMENT_TIME_MANAGED || state == SEGMENT_TIME_SHARED || state == SEGMENT_TIME_OLDER ||
	       state == SEGMENT_TIME_MPS_CLIENT || state == SEGMENT_TIME_PAGEABLE;
}

/* A priority holds in part where only putting aside is impossible. */
static bool is_refused(enum segment_time_state state, const struct segment_revision *revision)
{
	bool has_priority_only = !segment_quota_limits(revision->quota) && revision->rank.weight == 0;

	return state > SEGMENT_TIME_IN_FORCE && !(has_priority_only && can_go_first(state));
}

const char *time_refusal(const struct segment_time *time, const struct segment_revision *revision)
{
	return segment_time_limits(revision) && is_refused(time->state, revision) ? segment_time_text(time->state) : NULL;
}
