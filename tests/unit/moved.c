/*
 * A segment is edited while the owner moves to a new file. In every order, the copy has the edit, or the
 * editor learns of the move.
 *
 * sanitizers: no
 */
#include "orders.h"

#include "../../src/state/segment/edit.c"
#include "../../src/state/segment/owner.c"

static struct segment_memory former, moved;
static struct segment segment = {.memory = &former};
static int result;

static void begin(void)
{
	memset(&former, 0, sizeof former);
	former.magic = SEGMENT_MAGIC;
	former.number = 1;
	former.owner = identity_own();
	orders_watch(&former.magic);
	orders_watch(&former.number);
}

static void edit(void)
{
	const struct segment_revision revision = {.count = 1};

	result = publish(&segment, 2, &revision, NULL);
}

static void move(void)
{
	mark_moved(&former, true);
	copy_content(&moved, &former);
}

static void end(void)
{
	assert_true(moved.number == 2 || result < 0);
}

TEST(no_edit_is_lost)
{
	orders_try(begin, edit, move, end);
}

RUN_TESTS(NULL, NULL)
