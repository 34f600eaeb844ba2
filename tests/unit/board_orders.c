/*
 * A place on the board is given up, or two processes take the place from a dead owner, while a process takes
 * the place. In every order, a place with an owner has its mark.
 *
 * sanitizers: no
 */
#include "orders.h"

#include "../../src/state/board/board.c"

#define FORMER 4711

static struct own own;

static void begin(void)
{
	static struct board_memory memory;

	memset(&memory, 0, sizeof memory);
	memory.places[0].who = FORMER;
	memory.used[0] = 1;
	board.file.memory = &memory;
	board.self.who = 42;
	own.place = NOWHERE;
	orders_watch(&memory.used[0]);
	orders_watch(&memory.places[0].who);
}

static void free_former(void)
{
	free_place(0, FORMER);
}

static void take(void)
{
	take_free_place(&own);
	mark(own.place);
}

static void free_and_take(void)
{
	free_former();
	take();
}

static void expect_mark(void)
{
	bool has = has_place(&own);

	assert_true(has && board.file.memory->used[own.place / 64] & used_bit(own.place));
}

TEST(a_place_is_taken_while_it_is_given_up)
{
	orders_try(begin, free_former, take, expect_mark);
}

TEST(two_take_it_from_the_dead_and_one_has_it)
{
	orders_try(begin, free_former, free_and_take, expect_mark);
}

RUN_TESTS(NULL, NULL)
