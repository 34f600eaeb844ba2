/* Which streams wait, by their handles. */
#include "../cases.h"

#include "driver/streams.h"

#define STREAM ((CUstream)0x5000)
#define OTHER ((CUstream)0x6008)
#define FIRST ((CUcontext)0x7f0010)
#define SECOND ((CUcontext)0x7f1020)

FIXTURE(begin)
{
	streams_forget();
}

static bool waits(CUstream stream, CUcontext context)
{
	return streams_may_wait(stream, context, false);
}

TEST(until_what_came_behind_has_ended)
{
	streams_wait(STREAM, FIRST);
	assert_true(waits(STREAM, FIRST));
	assert_false(waits(OTHER, FIRST));
	/* Nothing was launched behind it. */
	assert_true(streams_may_wait(STREAM, FIRST, true));
	streams_launch(STREAM, FIRST);
	assert_true(waits(STREAM, FIRST));
	assert_false(streams_may_wait(STREAM, FIRST, true));
	assert_int_equal(atomic_load(&streams_waiting), 0);
	/* It waits again before that has ended. */
	streams_wait(STREAM, FIRST);
	streams_launch(STREAM, FIRST);
	streams_wait(STREAM, FIRST);
	assert_true(streams_may_wait(STREAM, FIRST, true));
}

/* Events matter while another stream waits for the host, and no longer because of events. */
TEST(events)
{
	assert_false(streams_wait_for_event(OTHER, FIRST, false));
	assert_false(waits(OTHER, FIRST));
	assert_true(streams_wait_for_event(OTHER, FIRST, true));
	assert_true(waits(OTHER, FIRST));
	begin(NULL);
	streams_wait(STREAM, FIRST);
	assert_true(streams_wait_for_event(OTHER, FIRST, false));
	assert_true(waits(OTHER, FIRST));
	streams_launch(STREAM, FIRST);
	assert_true(streams_wait_for_event(OTHER, FIRST, false));
	assert_true(streams_may_wait(OTHER, FIRST, true));
	assert_false(streams_wait_for_event(OTHER, FIRST, false));
	streams_launch(OTHER, FIRST);
	assert_false(streams_may_wait(OTHER, FIRST, true));
	assert_int_equal(atomic_load(&streams_waiting), 0);
}

/* It waits for them, and they for it; in its context alone. */
TEST(legacy_stream)
{
	streams_wait(CU_STREAM_LEGACY, FIRST);
	assert_true(waits(STREAM, FIRST));
	assert_false(waits(STREAM, SECOND));
	begin(NULL);
	streams_wait(STREAM, FIRST);
	assert_true(waits(CU_STREAM_LEGACY, FIRST));
}

/* The first launch behind a wait, and no later launch. */
TEST(the_next_one)
{
	assert_false(streams_next_waits(STREAM, FIRST));
	streams_wait(STREAM, FIRST);
	assert_true(streams_next_waits(STREAM, FIRST));
	assert_false(streams_next_waits(OTHER, FIRST));
	assert_true(streams_next_waits(CU_STREAM_LEGACY, FIRST));
	streams_launch(STREAM, FIRST);
	assert_false(streams_next_waits(STREAM, FIRST));
	assert_true(waits(STREAM, FIRST));
	streams_wait(STREAM, FIRST);
	assert_true(streams_next_waits(STREAM, FIRST));
}

static void *number_of_other_thread(void *number)
{
	*(uintptr_t *)number = streams_number(CU_STREAM_PER_THREAD, FIRST);
	return NULL;
}

TEST(handles_of_many)
{
	uintptr_t other = 0;

	threads_run(1, number_of_other_thread, &other, 0);
	assert_true(streams_number(CU_STREAM_PER_THREAD, FIRST) != other);
	assert_true(streams_number(CU_STREAM_PER_THREAD, FIRST) != streams_number(CU_STREAM_PER_THREAD, SECOND));
	assert_true(streams_number(CU_STREAM_LEGACY, FIRST) != streams_number(CU_STREAM_LEGACY, SECOND));
	assert_true(streams_number(STREAM, FIRST) == streams_number(STREAM, SECOND));
}

RUN_TESTS(begin, NULL)
