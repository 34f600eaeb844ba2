#include "time_change.h"

#include "base/clock.h"
#include "mps/reach.h"
#include "time_given.h"

#define WAIT_MS 10

int time_check_policy(const struct segment_revision *has, const struct segment_revision *wanted, struct error *error)
{
	struct segment_revision after = {.quota = has->quota, .rank = has->rank, .lending = has->lending};

	segment_put_time(&after, wanted);
	return !segment_policy_is_given(wanted->rank) || segment_time_holds_back(&after)
	               ? 0
	               : error_set(error, "--policy: nothing is held back without a quota or a priority; give one with it");
}

int time_check(pid_t pid, const struct segment_revision *has, const struct segment_revision *wanted, struct error *error)
{
	bool wants_weight = wanted->rank.weight > 0, wants_policy = segment_policy_is_given(wanted->rank);
	bool wants_lending = segment_shares(wanted), is_client = (wants_weight || wants_policy || wants_lending) && mps_reaches(pid);
	int result = time_check_policy(has, wanted, error);

	if (result < 0)
		error_reword(error, "pid %d: %.250s", (int)pid, error->reason);
	else if (wants_weight && is_client)
		result = error_set(error, "pid %d: --weight: clients of MPS take no turns that could be shared; start it with "
		                          "--mps off, or give it a partition's size", (int)pid);
	else if (wants_policy && !is_client)
		result = error_set(error, "pid %d: --policy: launches are held back under MPS only, and this program takes turns; start "
		                          "it with --mps on", (int)pid);
	else if (wants_lending && !is_client)
		result = error_set(error, "pid %d: %s: TPCs are lent under MPS only, and this program takes turns; start it with --mps on",
		                   (int)pid, wanted->lending.borrows > 0 ? "--borrow" : "--lend");
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

/* Whether others give way to a program of this state, although it is never suspended itself. */
static bool can_go_first(enum segment_time_state state)
{
	return state == SEGMENT_TIME_MANAGED || state == SEGMENT_TIME_SHARED || state == SEGMENT_TIME_OLDER ||
	       state == SEGMENT_TIME_MPS_CLIENT || state == SEGMENT_TIME_PAGEABLE || state == SEGMENT_TIME_UNSEEN;
}

/* A priority holds in part where only suspending is impossible. */
static bool is_refused(enum segment_time_state state, const struct segment_revision *revision)
{
	bool has_priority_only = !segment_quota_limits(revision->quota) && revision->rank.weight == 0;

	return state > SEGMENT_TIME_HELD && state != SEGMENT_TIME_TOO_LONG && !(has_priority_only && can_go_first(state));
}

const char *time_refusal(const struct segment_time *time, const struct segment_revision *revision)
{
	return segment_time_limits(revision) && is_refused(time->state, revision) ? segment_time_text(time->state) : NULL;
}
