/*
 * Launches read the program's masks without a lock while a thread writes the masks; and the child of a
 * fork can set a mask, even where a thread of the parent has the lock.
 *
 * link: -Wl,--wrap=epoch_raise_masks
 * sanitizers: no
 */
#include "orders.h"

#include "../../src/launch/space/app_masks.c"
#include "../../src/base/table.c"

#define STREAM ((CUstream)0x5000)

static const struct app_mask none, old = {{1, 1}}, new = {{2, 2}};
static struct app_mask seen;
static struct stream_mask *of_stream;
static bool is_vacant;

static void begin(void)
{
	free(of_stream);
	memset(&of_streams, 0, sizeof of_streams);
	assert_int_equal(add_stream(STREAM, &old), 0);
	of_stream = find_stream(STREAM);
	orders_watch(&of_stream->entry.handle);
	orders_watch(&of_stream->mask.current);
	orders_watch(&of_stream->mask.places[2][0]);
	seen = none;
	is_vacant = false;
}

static bool is_equal(struct app_mask a, struct app_mask b)
{
	return memcmp(&a, &b, sizeof a) == 0;
}

static void set_new(void)
{
	set_for_stream(STREAM, &new);
}

static void set_none(void)
{
	set_for_stream(STREAM, &none);
}

static void look(void)
{
	seen = mask_of_stream(STREAM);
}

static void expect_old_or_new(void)
{
	assert_true(is_equal(seen, old) || is_equal(seen, new));
	assert_true(is_equal(mask_of_stream(STREAM), new));
}

TEST(a_mask_is_seen_whole)
{
	orders_try(begin, set_new, look, expect_old_or_new);
}

/* The entry may belong to a new stream next. */
static void look_into_vacant_entry(void)
{
	is_vacant = !find_stream(STREAM);
	seen = read_mask(&of_stream->mask);
}

static void expect_no_mask(void)
{
	assert_true(!is_vacant || !is_set(&seen));
}

TEST(who_finds_an_entry_vacant_finds_no_mask_in_it)
{
	orders_try(begin, set_none, look_into_vacant_entry, expect_no_mask);
}

/* --- fork --------------------------------------------------------------------------------------------------------- */

static int is_inside[2], may_go_on[2];
static atomic_bool stays_inside;

/* The linker leads the call here, with the lock held. */
WRAP(void, epoch_raise_masks, void)
{
	char byte = 0;

	if (stays_inside && (write(is_inside[1], &byte, 1) != 1 || read(may_go_on[0], &byte, 1) != 1))
		abort();
}

static int set_for_all(void)
{
	return nvtaskset_set_mask_1(APP_MASKS_ALL, NULL, new.words);
}

static void *set_and_stay(void *unused)
{
	return set_for_all() == 0 ? NULL : unused;
}

TEST(fork_while_another_thread_sets_a_mask)
{
	char byte;

	assert_true(pipe2(is_inside, O_CLOEXEC) == 0 && pipe2(may_go_on, O_CLOEXEC) == 0);
	app_masks_open(false);
	stays_inside = true;
	pthread_t setter = thread_start(set_and_stay, &byte);

	assert_int_equal(read(is_inside[0], &byte, 1), 1);
	pid_t child = fork();

	if (child == 0) {
		stays_inside = false;
		app_masks_after_fork();
		exit(set_for_all());
	}
	assert_ends_well(child);
	assert_int_equal(write(may_go_on[1], &byte, 1), 1);
	pthread_join(setter, NULL);
}

RUN_TESTS(NULL, NULL)
