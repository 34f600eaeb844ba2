#include "thread.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "base/futex.h"
#include "base/log.h"
#include "driver/hook.h"
#include "gate/keeper.h"
#include "launch/space/epoch.h"
#include "time/demand/company.h"
#include "time/demand/given.h"
#include "time/demand/peers.h"
#include "time/demand/wakeup.h"
#include "turns/eligibility.h"
#include "turns/kernel_access.h"
#include "turns/turns.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

#define MS UINT64_C(1000000)

/* After so many looks in a row without work, the thread asks for the next launch. After as many more, the thread
 * rests. By then a launch that was on the way has been seen. */
#define LOOKS_UNTIL_REST 10

/* The longest time until a look without work is repeated, and until ends of launches are seen. */
#define ATTENTION_NS (5 * MS)

/* How much too late the thread may wake. */
#define TIMER_SLACK_NS 1000UL

static atomic_bool exists;
static atomic_bool is_ending;
static uint64_t number; /* of the revision of the rules; 0: none yet */
static bool is_gated;   /* a client of MPS with a rule for the gate */
static unsigned int idle_looks;

/* --- its sleep --------------------------------------------------------------------------------------------------- */

/* When to look again, unless rung before. The thread of an idle program sleeps until the next launch. */
static uint64_t look_next(uint64_t until, bool is_idle)
{
	idle_looks = is_idle ? idle_looks + 1 : 0;
	if (idle_looks == LOOKS_UNTIL_REST) {
		/* The next launch or call with an announcement rings: all are decided anew, and see the question. */
		atomic_store(&time_news.seen, 0);
		epoch_raise();
	} else if (idle_looks > LOOKS_UNTIL_REST && atomic_load(&time_news.seen) != 0) {
		idle_looks = 0;
	}
	if (is_idle && idle_looks < 2 * LOOKS_UNTIL_REST)
		until = min_u64(until, process_clock_ns() + ATTENTION_NS);
	return idle_looks >= 2 * LOOKS_UNTIL_REST ? UINT64_MAX : until;
}

void time_thread_ring(void)
{
	if (atomic_load(&exists))
		wakeup_ring();
}

/* --- following edits --------------------------------------------------------------------------------------------- */

/* A client of MPS is held back, not suspended. A program that can never be suspended still takes part: peers give way,
 * and the program gives way by short time slices. */
static bool can_obey(const struct segment_revision *revision)
{
	return segment_time_limits(revision) &&
	       (eligibility_is_there() || segment_rank_is_given(revision->rank) || kernel_access_is_of_mps());
}

static bool is_for_gate(const struct segment_revision *revision)
{
	return kernel_access_is_of_mps() && (segment_time_holds_back(revision) || segment_shares(revision));
}

/* The first look at peers may take long, with many processes: the program is not suspended meanwhile. */
static void follow_rules(const struct segment_revision *revision)
{
	bool took_part = rules_take_part(given_rules()) || is_gated;

	given_follow(time_news.segment, revision, process_clock_ns());
	if (rules_take_part(given_rules()) && !took_part)
		turns_make_ready();
	/* Whether the rules concern peers. */
	if (rules_take_part(given_rules()) || (kernel_access_is_of_mps() && segment_shares(revision)))
		peers_join(&time_news.segment->group);
	else
		peers_leave();
	/* A daemon of MPS came: nobody looks at turns any more. */
	if (is_for_gate(revision) && !is_gated)
		turns_end();
	if (is_for_gate(revision))
		keeper_follow(time_news.segment, revision);
	else
		keeper_end();
}

/* Until the way to the kernel driver is known, or until the gate has looked: launches go before that. */
static enum segment_time_state state_of(const struct segment_revision *revision)
{
	enum segment_time_state state = SEGMENT_TIME_PENDING;

	if (!segment_time_limits(revision))
		state = SEGMENT_TIME_UNLIMITED;
	else if (!is_for_gate(revision) && !eligibility_is_there())
		state = eligibility_reason();
	return state;
}

/* Whether a rule still holds. An edit may have changed the rules. */
static bool rules_hold(void)
{
	struct segment_revision revision;
	uint64_t current;
	bool limits = true;

	if (company_has_left(time_news.segment, peers_have_a_number(), process_clock_ns()))
		number = 0;
	if (number != segment_revision_number(time_news.segment) &&
	    company_read(time_news.segment, &revision, &current)) {
		limits = segment_time_limits(&revision);
		if (limits)
			follow_rules(&revision);
		number = current;
		/* If the rules are taken away, the used time is still to be told. */
		is_gated = limits ? is_for_gate(&revision) : is_gated;
		segment_set_time_state(time_news.segment, state_of(&revision), number);
	}
	return limits && !atomic_load(&is_ending) &&
	       (eligibility_is_there() || rules_take_part(given_rules()) || is_gated);
}

/* --- its work ---------------------------------------------------------------------------------------------------- */

static uint64_t look_at_launches(bool *is_idle)
{
	uint64_t until = keeper_look(process_clock_ns(), is_idle);

	segment_set_time_state(time_news.segment, keeper_state(), number);
	return min_u64(until, process_clock_ns() + ATTENTION_NS);
}

static void stop_work(void)
{
	if (!is_gated)
		turns_report(number);
	turns_end();
	keeper_end();
	peers_leave();
	is_gated = false;
}

/* Until no rule can be obeyed. A ring after the read of `rings` ends the sleep at once. */
static void work(void)
{
	_Atomic uint32_t *rings = segment_rings(time_news.segment);

	for (uint32_t heard = atomic_load(rings); rules_hold(); heard = atomic_load(rings)) {
		bool is_idle = false;
		uint64_t until = is_gated ? look_at_launches(&is_idle) : turns_look(number, &is_idle);

		if (pool_is_there() && !is_idle)
			until = min_u64(until, process_clock_ns() + (is_gated ? POOL_LOOK_NS : POOL_TURN_NS));
		futex_wait_until(rings, heard, look_next(until, is_idle));
	}
	stop_work();
}

static bool has_rule(void)
{
	struct segment_revision revision;
	uint64_t current;

	return company_read(time_news.segment, &revision, &current) && can_obey(&revision);
}

/* A rule that comes while the thread ends is the thread's as well, unless a new thread is made for the rule. */
static void *run(void *unused)
{
	(void)unused;
	number = 0;
	idle_looks = 0;
	given_begin();
	turns_begin(time_news.segment);
	prctl(PR_SET_NAME, "nvtaskset");
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	hook_want_more();
	do {
		kernel_access_begin();
		work();
		kernel_access_end();
		atomic_store(&exists, false);
	} while (has_rule() && !atomic_load(&is_ending) && !atomic_exchange(&exists, true));
	return NULL;
}

/* --- making it --------------------------------------------------------------------------------------------------- */

/* Room for the thread, and for the thread-local variables of all libraries of the program. */
#define STACK_BYTES ((size_t)512 << 10)

/* Not the scheduling of the maker: the maker may keep its processor for itself. */
static void set_scheduling(pthread_attr_t *attributes)
{
	const struct sched_param usual = {.sched_priority = 0};
	cpu_set_t everywhere;

	memset(&everywhere, 0xff, sizeof everywhere);
	pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attributes, SCHED_OTHER);
	pthread_attr_setschedparam(attributes, &usual);
	pthread_attr_setaffinity_np(attributes, sizeof everywhere, &everywhere);
}

static bool create(const pthread_attr_t *attributes)
{
	pthread_t thread;

	return pthread_create(&thread, attributes, run, NULL) == 0;
}

/* Where no scheduling may be chosen, as in some sandboxes, the thread has the scheduling of its maker. */
static bool make_thread(void)
{
	pthread_attr_t attributes, of_maker;
	sigset_t all, before;
	bool done;

	sigfillset(&all);
	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	of_maker = attributes;
	set_scheduling(&attributes);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	done = create(&attributes) || create(&of_maker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return done;
}

static void report_no_thread(uint64_t of)
{
	static atomic_flag is_reported = ATOMIC_FLAG_INIT;

	segment_set_time_state(time_news.segment, SEGMENT_TIME_NO_THREAD, of);
	if (!atomic_flag_test_and_set(&is_reported))
		log_warning("quota, priority and weight are not in force: %s",
		            segment_time_text(SEGMENT_TIME_NO_THREAD));
}

/* An edit of a program that can obey no rule gets the reason. */
void time_thread_follow(const struct segment_revision *revision, uint64_t of)
{
	if (!can_obey(revision) && !eligibility_is_there()) {
		segment_set_time_state(time_news.segment, eligibility_reason(), of);
	} else if (atomic_exchange(&exists, true)) {
		time_thread_ring();
	} else if (!make_thread()) {
		atomic_store(&exists, false);
		report_no_thread(of);
	}
}

/* --- its life ---------------------------------------------------------------------------------------------------- */

bool time_thread_exists(void)
{
	return atomic_load(&exists);
}

void time_thread_end(void)
{
	atomic_store(&is_ending, true);
	time_thread_ring();
}

void time_thread_after_fork(void)
{
	atomic_store(&exists, false);
}
