/*
 * Promises of the segment that are tested at every step, not by chance: no read is torn; an editor that dies anywhere
 * leaves the old set or the new one; an owner that moves to a new file is found complete or not yet.
 *
 * A child does the work one machine instruction at a time (ptrace); between any two of its instructions the parent
 * overruns it with edits, kills it or looks at it. That this finds damage is shown by tests/mutants.
 *
 * takes: long
 * sanitizers: no
 */
#include "../cases.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/owner.h"
#include "steps.h"

/* To try every place between two instructions takes minutes: `make check-steps`. Otherwise one place of so many is
 * tried. The numbers are primes, so that loops are hit in all their parts. A reader copies a set in some 16 instructions. */
#define STRIDE_DEFAULT 31
#define STRIDE_READ 7

static unsigned long usual_stride;

#define OLD UINT64_C(0x1111111111111111)
#define NEW UINT64_C(0x2222222222222222)

static const struct pci_address pci = {.bus = 0x3b};

/* What the child has read. */
static struct shared {
	struct tpcset answer;
	bool answered;
} *shared;

/* The owner's segment, and the child's, which has a descriptor of its own, since a lock on an inherited one would be
 * the parent's, too. */
static struct segment segment, own_editor, editor;

static struct tpcset pattern(uint64_t word)
{
	return (struct tpcset){{word, word, word, word}};
}

static bool is_whole(const struct tpcset *set)
{
	struct tpcset of_first_word = pattern(set->words[0]);

	return tpcset_equal(set, &of_first_word);
}

static bool read_set(struct tpcset *set)
{
	struct segment_revision revision;
	uint64_t number;
	bool whole = segment_read(&segment, &revision, &number);

	if (whole)
		*set = revision.partitions[0].set;
	return whole;
}

static int write_set(struct segment *by, uint64_t word)
{
	const struct segment_revision revision = {.count = 1, .partitions = {{.pci = pci, .set = pattern(word)}}};

	return segment_change(by, &revision, NULL, NULL);
}

/* --- stepping ---------------------------------------------------------------------------------------- */

static void read_in_child(void)
{
	shared->answered = read_set(&shared->answer);
}

static void write_in_child(void)
{
	write_set(&editor, NEW);
}

static pid_t start_child(void (*work)(void))
{
	pid_t child = fork();

	if (child == 0) {
		if (segment_open(&editor, getppid(), NULL, NULL) != SEGMENT_FOUND)
			_exit(1);
		steps_begin();
		work();
		_exit(0);
	}
	return steps_stopped(child);
}

/* At how many places between two instructions of a read `edits` edits led to a torn set. */
static unsigned int count_torn_reads(unsigned int edits, unsigned long stride)
{
	unsigned int torn = 0;
	bool running = true;

	for (unsigned long place = 0; running; place += stride) {
		assert_int_equal(write_set(&own_editor, OLD), 0);
		shared->answered = false;
		pid_t child = start_child(read_in_child);

		running = steps_take(child, place);
		if (running) {
			for (unsigned int i = 0; i < edits; i++)
				assert_int_equal(write_set(&own_editor, NEW + i), 0);
			steps_finish(child);
			torn += shared->answered && !is_whole(&shared->answer);
		}
	}
	return torn;
}

TEST(read_is_whole)
{
	/* One edit; nearly once round the ring of eight; once round; a little more. */
	static const unsigned int edits[] = {1, 7, 8, 9};

	for (size_t i = 0; i < COUNT_OF(edits); i++)
		assert_int_equal(count_torn_reads(edits[i], usual_stride < STRIDE_READ ? usual_stride : STRIDE_READ), 0);
}

/* To write would fail if the dead editor's lock was not free. */
TEST(dead_editor_leaves_old_or_new)
{
	bool running = true;

	for (unsigned long place = 0; running; place += usual_stride) {
		/* Another one each time, so that a place of the ring that was not filled shows. */
		const uint64_t old = OLD + place;
		struct tpcset set = pattern(0);

		assert_int_equal(write_set(&own_editor, old), 0);
		pid_t child = start_child(write_in_child);

		running = steps_take(child, place);
		if (running)
			end_child(child);
		assert_true(read_set(&set) && is_whole(&set) && (set.words[0] == old || set.words[0] == NEW));
	}
}

static pid_t start_mover(void)
{
	struct segment_revision revision = {.count = 1, .partitions = {{.pci = pci, .set = pattern(OLD)}}};
	struct segment own;
	pid_t child = fork();

	if (child == 0) {
		close_range(3, ~0U, 0);
		if (segment_create(&own, &revision, NULL, -1, -1, NULL) < 0)
			_exit(1);
		close(own.file);
		steps_begin();
		_exit(segment_keep_findable(&own, NULL) < 0);
	}
	return steps_stopped(child);
}

TEST(moving_segment_is_found_whole_or_not_at_all)
{
	pid_t child = start_mover();
	unsigned int found = 0, absent = 0;

	while (steps_take(child, usual_stride)) {
		struct error error = {.reason = ""};
		enum segment_state moving = segment_open(&editor, child, NULL, &error);
		struct segment_revision revision;
		uint64_t number;

		if (moving == SEGMENT_FOUND) {
			assert_true(segment_read(&editor, &revision, &number));
			assert_int_equal(revision.partitions[0].set.words[0], OLD);
			segment_close(&editor);
		} else if (moving != SEGMENT_NO_CUDA && moving != SEGMENT_NOT_READY) {
			fail_msg("state %d: %s", moving, error.reason);
		}
		found += moving == SEGMENT_FOUND;
		absent += moving != SEGMENT_FOUND;
	}
	assert_true(found > 0 && absent > 0);
}

FIXTURE(set_up)
{
	struct segment_revision revision = {.count = 1};
	const char *wanted = getenv("SEGMENT_STRIDE");

	usual_stride = wanted ? strtoul(wanted, NULL, 10) : STRIDE_DEFAULT;
	revision.partitions[0] = (struct segment_partition){.pci = pci, .set = pattern(OLD)};
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_int_equal(segment_create(&segment, &revision, NULL, -1, -1, NULL), 0);
	assert_int_equal(segment_open(&own_editor, getpid(), NULL, NULL), SEGMENT_FOUND);
}

RUN_TESTS_IN(set_up, NULL, NULL, NULL)
