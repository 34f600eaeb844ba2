/* What all looks of a process may keep (monitor/parts.h). */
#include "../cases.h"
#include "monitor/parts.h"

#define PIECE ((size_t)1 << 20)

static size_t take_all(struct monitor *look)
{
	size_t pieces = 0;

	while (monitor_reserve_memory(look, PIECE))
		pieces++;
	return pieces;
}

TEST(nobody_gets_more_than_stays_free_for_others)
{
	static struct monitor first = {.user = 1000}, second = {.user = 1000}, other = {.user = 1001};
	size_t pieces = take_all(&first);

	assert_in_range(pieces, 64, 1024);
	assert_int_equal(take_all(&second), 0);
	/* Half of what is left, and so on. */
	assert_in_range(take_all(&other), pieces / 2 - 1, pieces / 2 + 1);
	monitor_return_memory(&first, first.reserved);
	assert_in_range(take_all(&second), pieces / 2, pieces);
	monitor_return_memory(&second, second.reserved);
	monitor_return_memory(&other, other.reserved);
	assert_int_equal(take_all(&second), pieces);
	monitor_return_memory(&second, second.reserved);
}

TEST(many_users_share_an_account)
{
	static struct monitor looks[200];
	size_t all = 0;

	for (unsigned int i = 0; i < 200; i++) {
		looks[i].user = i;
		all += take_all(&looks[i]);
	}
	assert_in_range(all, 64, 1024);
	for (unsigned int i = 0; i < 200; i++)
		monitor_return_memory(&looks[i], looks[i].reserved);
	assert_in_range(take_all(&looks[0]), 64, 1024);
}

RUN_TESTS(NULL, NULL)
