/* A lock for which nobody waits long. What must not happen is provoked: each thread says when it is where it should be. */
#include "../cases.h"
#include "base/brief_lock.h"

#include "base/clock.h"
#include "base/process_clock.h"

static struct brief_lock lock;
static unsigned int counter; /* under the lock */

#define THREADS 4
#define ROUNDS 20000

static void *count(void *unused)
{
	unsigned int *missed = unused;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		if (brief_lock(&lock)) {
			counter++;
			brief_unlock(&lock);
		} else {
			(*missed)++;
		}
	}
	return NULL;
}

/* Where the machine is so busy that a holder does not run for long, some go on without. */
TEST(excludes)
{
	unsigned int missed[THREADS] = {0}, all = 0;

	threads_run(THREADS, count, missed, sizeof *missed);
	for (unsigned int i = 0; i < THREADS; i++)
		all += missed[i];
	assert_each(counter + all, THREADS * ROUNDS, counter > 0, true);
}

/* Its holder does not run. */
TEST(holder_stands)
{
	assert_true(brief_lock(&lock));
	uint64_t begin = process_clock_ns();

	errno = EDOM;
	assert_false(brief_lock(&lock));
	assert_int_equal(errno, EDOM);
	assert_true(process_clock_ns() - begin >= BRIEF_LOCK_NS);
	/* Nobody waits a second time. */
	begin = process_clock_ns();
	for (unsigned int i = 0; i < 10000; i++)
		assert_false(brief_lock(&lock));
	assert_true(process_clock_ns() - begin < 10000 * BRIEF_LOCK_NS);
	brief_unlock(&lock);
	assert_true(brief_lock(&lock));
	brief_unlock(&lock);
}

static void *unlock_soon(void *unused)
{
	(void)unused;
	clock_pause_us(2000);
	brief_unlock(&lock);
	return NULL;
}

/* Who waits is woken. */
TEST(waits)
{
	bool was_woken = false;

	for (unsigned int tries = 0; tries < 20 && !was_woken; tries++) {
		assert_true(brief_lock(&lock));
		uint64_t begin = process_clock_ns();
		pthread_t thread = thread_start(unlock_soon, NULL);
		bool taken = brief_lock(&lock);

		was_woken = taken && process_clock_ns() - begin < BRIEF_LOCK_NS;
		assert_int_equal(pthread_join(thread, NULL), 0);
		if (taken)
			brief_unlock(&lock);
	}
	assert_true(was_woken);
}

RUN_TESTS(NULL, NULL)
