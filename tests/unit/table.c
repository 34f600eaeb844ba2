/* The table by handle. */
#include "../cases.h"
#include "base/table.h"

struct known {
	int value;
	struct table_entry entry;
};

static const void *handle(uintptr_t number)
{
	return (const void *)(number << 8);
}

static struct known *find(const struct table *table, uintptr_t number)
{
	return TABLE_CONTENT(table_find(table, handle(number)), struct known, entry);
}

#define MANY (4 * TABLE_BUCKETS)

TEST(forgets_what_was_removed)
{
	static struct known all[MANY];
	static struct table table;

	for (uintptr_t i = 0; i < MANY; i++)
		table_add(&table, &all[i].entry, handle(i + 1));
	for (uintptr_t i = 0; i < MANY; i += 2)
		table_remove(&table, &all[i].entry);
	for (uintptr_t i = 0; i < MANY; i++)
		assert_ptr_equal(find(&table, i + 1), i % 2 == 0 ? NULL : &all[i]);
}

TEST(finds_the_last_of_several)
{
	struct known first = {.value = 1}, second = {.value = 2};
	struct table table = {.buckets = {NULL}};

	table_add(&table, &first.entry, handle(1));
	table_add(&table, &second.entry, handle(1));
	assert_int_equal(find(&table, 1)->value, 2);
	table_remove(&table, &second.entry);
	assert_int_equal(find(&table, 1)->value, 1);
}

/* Only in its own bucket. */
TEST(occupies_what_was_vacated)
{
	struct known known = {.value = 1};
	struct table table = {.buckets = {NULL}};
	uintptr_t same = 2, other = 2;

	while (table_bucket(handle(same)) != table_bucket(handle(1)))
		same++;
	while (table_bucket(handle(other)) == table_bucket(handle(1)))
		other++;
	table_add(&table, &known.entry, handle(1));
	assert_null(table_find_vacant(&table, handle(same)));
	table_vacate(&known.entry);
	assert_null(find(&table, 1));
	assert_null(table_find_vacant(&table, handle(other)));
	assert_ptr_equal(table_find_vacant(&table, handle(same)), &known.entry);
	assert_true(table_occupy(&known.entry, handle(same)));
	assert_false(table_occupy(&known.entry, handle(1)));
	assert_ptr_equal(find(&table, same), &known);
}

#define THREADS 4

static struct table shared;
static struct known of_threads[THREADS][MANY];

static void *add_many(void *data)
{
	uintptr_t thread = (uintptr_t)data;

	for (uintptr_t i = 0; i < MANY; i++)
		table_add(&shared, &of_threads[thread][i].entry, handle(1 + i * THREADS + thread));
	return NULL;
}

TEST(loses_nothing_that_threads_add)
{
	threads_run(THREADS, add_many, NULL, 1);
	for (uintptr_t i = 0; i < MANY * THREADS; i++)
		assert_ptr_equal(find(&shared, 1 + i), &of_threads[i % THREADS][i / THREADS]);
}

RUN_TESTS(NULL, NULL)
