/*
 * The number of kernels in flight, read while a second kernel is launched and ends. In every order, the reader
 * sees the kernel that runs all the time.
 *
 * sanitizers: no
 */
#include "orders.h"

#include "../../src/state/kernels/counts_read.c"

static struct counts_place place;
static uint64_t in_flight_seen;

static void begin(void)
{
	memset(&place, 0, sizeof place);
	place.state = COUNTS_IN_USE;
	place.used = 1;
	place.slots[0].plain = 1;
	orders_watch(&place.slots[0].plain);
	orders_watch(&place.ended[COUNTS_PLAIN].kernels);
}

/* The driver's doorbell, and then the GPU. */
static void launch_and_end(void)
{
	counts_launch(&place.slots[0].plain);
	atomic_thread_fence(memory_order_seq_cst);
	atomic_fetch_add(&place.ended[COUNTS_PLAIN].kernels, 1);
}

static void look(void)
{
	in_flight_seen = counts_place_in_flight(&place);
}

static void end(void)
{
	assert_in_range(in_flight_seen, 1, 2);
}

TEST(what_runs_all_the_time_is_in_flight)
{
	orders_try(begin, launch_and_end, look, end);
}

RUN_TESTS(NULL, NULL)
