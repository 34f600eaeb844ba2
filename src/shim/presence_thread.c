#include "presence_thread.h"

#include "aside.h"
#include "base/extremes.h"
#include "base/log.h"
#include "base/process_clock.h"
#include "bell.h"
#include "held.h"
#include "memory_use.h"
#include "neighbours.h"
#include "obstacle.h"
#include "reaching.h"
#include "rules.h"
#include "sight.h"
#include "slices.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>

#define MS UINT64_C(1000000)

/* How long at most until edits are seen; and until the way to the kernel driver is looked for again. */
#define ATTENTION_NS (5 * MS)
#define REACHING_NS (10 * MS)

/* By how much later than asked for it may wake. */
#define TIMER_SLACK_NS 1000UL

static const struct segment *segment;
static atomic_bool exists;
static atomic_bool is_ending;
static uint64_t number;       /* of the revision that the rules are from; 0: none yet */
static bool knows_gpus;
static bool said_obstacle;
static bool is_held;          /* it is a client of MPS, and has a rule for which launches are held */

/* --- its sleep -------------------------------------------------------------------------------------------------------- */

void presence_thread_ring(void)
{
	if (atomic_load(&exists))
		bell_ring();
}

/* --- its work --------------------------------------------------------------------------------------------------------- */

static bool is_free(void)
{
	return obstacle_get() == SEGMENT_TIME_NONE;
}

static void put_aside(void)
{
	struct aside_call call;

	if (aside_put(&call))
		rules_put_aside(call.begin, call.end);
}

static void take_back(void)
{
	struct aside_call call;

	aside_take_back(&call);
	rules_taken_back(call.end);
}

/* Whether something was done: then it is time to look again. While it is aside, another time slice disturbs nobody. */
static bool obey(const struct wish *wish, const struct sight *sight)
{
	bool acts = true;

	if (wish->is_aside && !aside_is() && is_free())
		put_aside();
	else if (slices_obey(wish->slice_us, sight))
		acts = true;
	else if (!wish->is_aside && aside_is())
		take_back();
	else
		acts = false;
	return acts;
}

static struct neighbours see_neighbours(uint64_t now, const struct sight *sight)
{
	struct neighbours_self self = rules_self();

	self.is_aside = aside_is();
	self.is_client = obstacle_get() == SEGMENT_TIME_MPS_CLIENT;
	return rules_take_part() ? neighbours_look(now, sight, &self) : neighbours_none;
}

/* `can_act`: the way to the kernel driver is known. Returns when to look again. */
static uint64_t look(bool can_act)
{
	uint64_t now = process_clock_ns(), aside_wake = UINT64_MAX;
	struct sight sight = sight_see();

	if (!sight.is_counted)
		obstacle_found(SEGMENT_TIME_UNCOUNTED);
	struct neighbours neighbours = see_neighbours(now, &sight);
	struct wish wish = rules_ask(now, &sight, &neighbours);

	if (can_act && is_free())
		aside_wake = aside_look(now, &sight, wish.soonest);
	bool acts = can_act && obey(&wish, &sight);

	rules_tell(segment);
	return acts ? now : min_u64(min_u64(wish.until, aside_wake), now + ATTENTION_NS);
}

/* A client of MPS is held back instead of being put aside. Another program that can never be put aside may still be given way
 * to, and give way by short time slices. */
static bool can_obey(const struct segment_revision *revision)
{
	return segment_time_limits(revision) &&
	       (is_free() || segment_rank_is_given(revision->rank) || reaching_is_of_mps());
}

/* Launches are not held for a weight. */
static bool holds(const struct segment_revision *revision)
{
	return reaching_is_of_mps() && segment_time_holds_back(revision);
}

/* The first look at neighbours may take long, where there are many processes: the program is not aside meanwhile. */
static void follow_rules(const struct segment_revision *revision)
{
	bool took_part = rules_take_part();

	rules_follow(segment, revision, process_clock_ns());
	neighbours_have(revision);
	if (rules_take_part() && !took_part && aside_is())
		take_back();
	if (rules_take_part())
		neighbours_join();
	else
		neighbours_leave();
	if (holds(revision))
		held_follow(revision, process_clock_ns());
	else
		held_end();
}

/* Until the way to the kernel driver is known. */
static enum segment_time_state state_of(const struct segment_revision *revision)
{
	enum segment_time_state state = is_free() ? SEGMENT_TIME_PENDING : obstacle_get();

	if (!segment_time_limits(revision))
		state = SEGMENT_TIME_UNLIMITED;
	else if (holds(revision))
		state = SEGMENT_TIME_HELD;
	return state;
}

/* Whether there still is a rule; an edit may have changed it. */
static bool follow(void)
{
	struct segment_revision revision;
	uint64_t current;
	bool limits = true;

	if (number != segment_revision_number(segment) && segment_read(segment, &revision, &current)) {
		limits = segment_time_limits(&revision);
		if (limits)
			follow_rules(&revision);
		number = current;
		/* Of what is taken away, what was used is still to be told. */
		is_held = limits ? holds(&revision) : is_held;
		segment_set_time_state(segment, state_of(&revision), number);
	}
	return limits && !atomic_load(&is_ending) && (is_free() || rules_take_part() || is_held);
}

/* The program is back, and this is said once. */
static void heed_obstacle(void)
{
	if (is_free() || is_held)
		return;
	if (aside_is())
		take_back();
	if (!said_obstacle) {
		log_warning("quota, priority and weight are not in force: %s", segment_time_text(obstacle_get()));
		segment_set_time_state(segment, obstacle_get(), number);
		said_obstacle = true;
	}
}

/* A client of MPS must not use it; and where the driver library is not as we know it, there is none. */
static bool may_reach(void)
{
	return obstacle_get() != SEGMENT_TIME_MPS_CLIENT && obstacle_get() != SEGMENT_TIME_UNREACHABLE;
}

/* The driver is asked before anything is put aside: while something is, a call may wait for it. */
static bool reach(void)
{
	bool is_done = may_reach() && reaching_is_done();

	if (is_done && !knows_gpus) {
		obstacle_found(memory_use_of_gpus());
		knows_gpus = true;
	}
	if (is_free())
		segment_set_time_state(segment, is_done ? SEGMENT_TIME_IN_FORCE : SEGMENT_TIME_PENDING, number);
	return is_done;
}

/* Returns when to look again. */
static uint64_t look_if_reached(bool is_reached)
{
	uint64_t wake = is_reached || rules_take_part() ? look(is_reached) : UINT64_MAX;

	return is_reached ? wake : min_u64(wake, process_clock_ns() + REACHING_NS);
}

/* `said`: the revision of which the segment says that it is in force. */
static uint64_t look_at_channels(uint64_t *said)
{
	bool is_reached = (*said == number && *said != 0) || reach();
	uint64_t wake = look_if_reached(is_reached);

	*said = is_reached ? number : 0;
	heed_obstacle();
	if (!aside_is())
		slices_say_refusal();
	return wake;
}

/* Of a client of MPS. */
static uint64_t look_at_launches(void)
{
	uint64_t now = process_clock_ns();
	struct sight sight = sight_see();
	uint64_t wake = held_look(now, &sight);

	segment_set_time_state(segment, held_state(), number);
	held_tell(segment);
	return min_u64(wake, now + ATTENTION_NS);
}

static void stop_work(void)
{
	heed_obstacle();
	if (aside_is())
		take_back();
	slices_end();
	held_end();
	neighbours_leave();
}

/* Until there is no rule, or none that could be obeyed. */
static void work(void)
{
	uint64_t said = 0;

	while (follow()) {
		uint32_t heard = bell_heard();

		bell_sleep(heard, is_held ? look_at_launches() : look_at_channels(&said));
	}
	stop_work();
	if (is_held)
		held_tell(segment);
	else
		rules_tell(segment);
	is_held = false;
}

static bool has_rule(void)
{
	struct segment_revision revision;
	uint64_t current;

	return segment_read(segment, &revision, &current) && can_obey(&revision);
}

/* A rule that comes while the thread ends is the thread's, too, unless another thread is made for it. */
static void *run(void *unused)
{
	(void)unused;
	number = 0;
	knows_gpus = said_obstacle = false;
	rules_reset();
	aside_begin();
	slices_begin();
	prctl(PR_SET_NAME, "nvtaskset");
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	do {
		reaching_begin();
		work();
		reaching_end();
		atomic_store(&exists, false);
	} while (has_rule() && !atomic_load(&is_ending) && !atomic_exchange(&exists, true));
	return NULL;
}

/* --- making it -------------------------------------------------------------------------------------------------------- */

/* Room for what the thread needs, and for the thread-local variables of all libraries of the program. */
#define STACK_BYTES ((size_t)512 << 10)

static bool make_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	bool done;

	sigfillset(&all);
	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	done = pthread_create(&thread, &attributes, run, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return done;
}

/* An edit that gives something to a program that can obey nothing gets the reason. */
void presence_thread_follow(const struct segment_revision *revision, uint64_t of)
{
	if (!can_obey(revision) && !is_free()) {
		segment_set_time_state(segment, obstacle_get(), of);
	} else if (atomic_exchange(&exists, true)) {
		presence_thread_ring();
	} else if (!make_thread()) {
		atomic_store(&exists, false);
		segment_set_time_state(segment, SEGMENT_TIME_NO_THREAD, of);
	}
}

/* --- its life --------------------------------------------------------------------------------------------------------- */

void presence_thread_use(const struct segment *wanted)
{
	segment = wanted;
}

bool presence_thread_exists(void)
{
	return atomic_load(&exists);
}

void presence_thread_end(void)
{
	atomic_store(&is_ending, true);
	presence_thread_ring();
}

void presence_thread_after_fork(void)
{
	atomic_store(&exists, false);
}
