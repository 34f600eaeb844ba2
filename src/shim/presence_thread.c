#include "presence_thread.h"

#include "aside.h"
#include "base/log.h"
#include "base/process_clock.h"
#include "memory_use.h"
#include "obstacle.h"
#include "reaching.h"
#include "rules.h"
#include "sight.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

/* How long at most until edits are seen; and until the way to the kernel driver is looked for again. */
#define ATTENTION_NS (5 * MS)
#define REACHING_NS (10 * MS)

static const struct segment *segment;
static atomic_bool exists;
static atomic_bool is_ending;
static _Atomic uint32_t bell; /* what it sleeps on */
static uint64_t number;       /* of the revision that the rules are from; 0: none yet */
static bool knows_gpus;

/* --- its sleep -------------------------------------------------------------------------------------------------------- */

void presence_thread_ring(void)
{
	if (atomic_load(&exists)) {
		atomic_fetch_add(&bell, 1);
		syscall(SYS_futex, &bell, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, 0);
	}
}

static void sleep_until(uint64_t wake, uint32_t heard)
{
	const struct timespec until = {.tv_sec = (time_t)(wake / SECOND), .tv_nsec = (long)(wake % SECOND)};

	syscall(SYS_futex, &bell, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, heard, &until, NULL, FUTEX_BITSET_MATCH_ANY);
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

/* Whether something was done: then it is time to look again. */
static bool obey(const struct wish *wish)
{
	bool acts = wish->is_aside != aside_is();

	if (acts && wish->is_aside)
		put_aside();
	else if (acts)
		take_back();
	return acts;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns when to look again. */
static uint64_t look(void)
{
	uint64_t now = process_clock_ns(), wake = now;
	struct sight sight = sight_see();

	if (!sight.is_counted)
		obstacle_found(SEGMENT_TIME_UNCOUNTED);
	struct wish wish = rules_ask(now, sight.wants);
	uint64_t aside_wake = aside_look(now, &sight, wish.soonest);

	if (is_free() && !obey(&wish))
		wake = sooner(wish.until, aside_wake);
	rules_tell(segment);
	return sooner(wake, now + ATTENTION_NS);
}

/* Whether there still is a rule; an edit may have changed it. */
static bool follow(void)
{
	struct segment_revision revision;
	uint64_t current;
	bool limits = true;

	if (number != segment_revision_number(segment) && segment_read(segment, &revision, &current)) {
		limits = rules_limit(&revision);
		if (limits)
			rules_follow(segment, &revision, process_clock_ns());
		number = current;
		segment_set_time_state(segment, limits ? SEGMENT_TIME_PENDING : SEGMENT_TIME_UNLIMITED, number);
	}
	return limits && !atomic_load(&is_ending) && is_free();
}

/* The driver is asked before anything is put aside: while something is, a call may wait for it. */
static bool reach(void)
{
	bool is_done = reaching_is_done();

	if (is_done && !knows_gpus) {
		obstacle_found(memory_use_of_gpus());
		knows_gpus = true;
	}
	segment_set_time_state(segment, is_done && is_free() ? SEGMENT_TIME_IN_FORCE : SEGMENT_TIME_PENDING, number);
	return is_done;
}

/* Until there is no rule, or the program can never be put aside. */
static void work(void)
{
	uint64_t said = 0;

	while (follow()) {
		uint32_t heard = atomic_load(&bell);
		bool is_reached = (said == number && said != 0) || reach();
		uint64_t wake = is_reached ? look() : process_clock_ns() + REACHING_NS;

		said = is_reached ? number : 0;
		if (is_free())
			sleep_until(wake, heard);
	}
	if (aside_is())
		take_back();
	rules_tell(segment);
}

static void say_obstacle(void)
{
	enum segment_time_state why = obstacle_get();

	if (why != SEGMENT_TIME_NONE) {
		log_warning("the quota is not in force: %s", segment_time_text(why));
		segment_set_time_state(segment, why, number);
	}
}

static bool has_rule(void)
{
	struct segment_revision revision;
	uint64_t current;

	return segment_read(segment, &revision, &current) && rules_limit(&revision);
}

/* A rule that comes while the thread ends is the thread's, too, unless another thread is made for it. */
static void *run(void *unused)
{
	(void)unused;
	number = 0;
	knows_gpus = false;
	rules_reset();
	aside_begin();
	prctl(PR_SET_NAME, "nvtaskset");
	do {
		reaching_begin();
		work();
		reaching_end();
		say_obstacle();
		atomic_store(&exists, false);
	} while (has_rule() && !atomic_load(&is_ending) && is_free() && !atomic_exchange(&exists, true));
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

/* An edit that gives something to a program that can never be put aside gets the reason. */
void presence_thread_follow(uint64_t revision)
{
	if (!is_free()) {
		segment_set_time_state(segment, obstacle_get(), revision);
	} else if (atomic_exchange(&exists, true)) {
		presence_thread_ring();
	} else if (!make_thread()) {
		atomic_store(&exists, false);
		segment_set_time_state(segment, SEGMENT_TIME_NO_THREAD, revision);
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
