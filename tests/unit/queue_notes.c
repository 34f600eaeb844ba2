/*
 * The note of a launch is read while the place goes to a later launch. A reader gets a whole note, or learns
 * of the later launch. A child reads, or writes, one instruction at a time; in between, a thousand launches pass,
 * or a whole read. Each order of both is tried, too.
 *
 * sanitizers: no
 */
#include "orders.h"
#include "steps.h"

/* Plain stores behind a release fence act at once here. So the fence writes all stores in front of the fence. */
#undef atomic_thread_fence
#define atomic_thread_fence(order) orders_write_all()
#include "../../src/driver/pushbuffer/queue.c"

static struct shared {
	struct queue queue;
	struct note seen;
	bool was_read;
	uint64_t guard;
} *shared;

static uint32_t qmd[QMD_SIZE / sizeof(uint32_t)];
static struct gpu gpu;

static void note_turn(uint64_t turn)
{
	const struct launch launch = {.gpu = &gpu, .function = (void *)turn, .qmd = qmd};
	const struct submission submission = {.commands = qmd, .bytes = sizeof qmd};

	shared->queue.turns = turn - 1;
	assert_int_equal(note_in(&shared->queue, &launch, &submission, (struct launch_end){&shared->guard, turn}),
	                 QUEUE_NOTED);
}

FIXTURE(begin)
{
	static const struct qmd_mask none;

	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	gpu.family = qmd_family_for(9, 0);
	((uint8_t *)qmd)[72] = 0x40; /* version 4 */
	const struct qmd_change change = {.disable = &none, .is_exact = true};

	assert_int_not_equal(qmd_write(gpu.family, qmd, &change, NULL).mask, QMD_UNKNOWN_VERSION);
}

static void read_first(void)
{
	shared->was_read = read_note(&shared->queue, 1, &shared->seen);
}

static void note_last(void)
{
	note_turn(1 + LAUNCHES);
}

static void note_first(void)
{
	note_turn(1);
	shared->was_read = false;
}

static void begin_order(void)
{
	note_first();
	orders_watch(&shared->queue.notes[1].turn);
}

static void expect_whole(void)
{
	if (shared->was_read)
		assert_each((uintptr_t)shared->seen.function, 1, shared->seen.end.number, 1,
		            shared->seen.tag.word[2], 1);
}

TEST(in_each_order)
{
	orders_try(begin_order, note_last, read_first, expect_whole);
}

#define STRIDE 3

/* At each place of `one`, all of `other`. */
static void try_places(void (*one)(void), void (*other)(void))
{
	unsigned int whole = 0, gone = 0;
	bool is_there = true;

	for (unsigned int place = 0; is_there; place += STRIDE) {
		ROW("place %u", place);
		note_first();
		pid_t child = steps_start(one);

		is_there = steps_take(child, place);
		if (is_there) {
			other();
			steps_finish(child);
		}
		expect_whole();
		whole += shared->was_read;
		gone += !shared->was_read;
	}
	assert_true(whole > 0 && gone > 0);
}

TEST(written_while_it_is_read)
{
	try_places(read_first, note_last);
}

TEST(read_while_it_is_written)
{
	try_places(note_last, read_first);
}

RUN_TESTS(begin, NULL)
