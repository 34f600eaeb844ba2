/*
 * A program with a number marks neighbours on its GPUs; and how long a mark lasts.
 *
 * link: -Wl,--wrap=segment_raise
 */
#include "../cases.h"
#include "../peer.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "time/demand/company.h"

#include <malloc.h>

#define SECOND UINT64_C(1000000000)

static const struct pci_address pci = {.bus = 7}, elsewhere = {.bus = 8};
static pid_t neighbour;
static int ends[2];
static uint64_t now = SECOND;

/* The linker leads the call here. With the new revision, a neighbour also sees the mark. */
int __real_segment_raise(struct segment *segment, struct error *error);
WRAP(int, segment_raise, struct segment *segment, struct error *error)
{
	assert_true(segment_has_company(segment));
	return __real_segment_raise(segment, error);
}

static void be_neighbour(void)
{
	struct peer_process peer;

	peer_begin(&peer, pci);
	close(ends[1]);
	for (;;)
		pause();
}

/* Until the neighbour has closed its end, with its segment made. */
static int start_neighbour(void **state)
{
	char byte;

	if (pipe(ends) < 0)
		return -1;
	neighbour = fork();
	if (neighbour == 0)
		be_neighbour();
	close(ends[1]);
	return read(ends[0], &byte, 1) == 0 ? close(ends[0]) : -1;
}

static int end_neighbour(void **state)
{
	end_child(neighbour);
	company_forget();
	return 0;
}

static struct segment open_segment(void)
{
	struct segment segment;

	assert_int_equal(segment_open(&segment, neighbour, NULL, NULL), SEGMENT_FOUND);
	return segment;
}

/* One whole walk, and the begin of another one. */
static bool is_marked_by(struct pci_address own)
{
	struct segment segment = open_segment();
	struct work work = {.gpu_count = 1, .gpus[0].pci = own};

	segment_set_company(&segment, false);
	uint64_t number = segment_revision_number(&segment);

	for (unsigned int i = 0; i < 10000; i++)
		company_call(now += SECOND / 1000, &work);
	bool is_marked = segment_has_company(&segment);

	assert_int_equal(segment_revision_number(&segment), number + is_marked);
	segment_close(&segment);
	return is_marked;
}

static void edit(struct segment_revision wanted)
{
	struct segment segment = open_segment();
	struct error error;

	assert_done(segment_change(&segment, &wanted, NULL, &error));
	segment_close(&segment);
}

TEST(neighbours_are_marked)
{
	assert_false(is_marked_by(elsewhere));
	assert_true(is_marked_by(pci));
	edit((struct segment_revision){.quota = {.run_us = 1000, .period_us = 10000}});
	assert_true(is_marked_by(pci));
	edit((struct segment_revision){.rank.weight = 300});
	assert_false(is_marked_by(pci));
}

/* The allocator keeps freed lists of several lengths. */
#define KEPT_BYTES 4096

static size_t used_after_walks(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		is_marked_by(elsewhere);
	company_forget();
	return mallinfo2().uordblks;
}

/* A list has 48 bytes at least. */
TEST(walks_leave_no_memory)
{
	size_t used = used_after_walks(1);

	assert_in_range(used_after_walks(200), 0, used + KEPT_BYTES);
}

TEST(marked_ones_have_the_usual_number)
{
	struct segment segment = open_segment();
	struct segment_revision revision;
	uint64_t number;

	assert_true(company_read(&segment, &revision, &number));
	assert_false(segment_rank_is_given(revision.rank));
	segment_set_company(&segment, true);
	assert_true(company_read(&segment, &revision, &number));
	assert_int_equal(segment_rank_priority(revision.rank), SEGMENT_PRIORITY_USUAL);
	assert_int_equal(segment_rank_weight(revision.rank), SEGMENT_WEIGHT_USUAL);
	assert_false(company_is_number(segment_rank_priority(revision.rank), segment_rank_weight(revision.rank)));
	edit((struct segment_revision){.rank.priority = segment_rank_of_priority(20)});
	assert_true(company_read(&segment, &revision, &number));
	assert_int_equal(segment_rank_priority(revision.rank), 20);
	segment_close(&segment);
}

TEST(marks_last_for_a_while)
{
	struct segment segment = open_segment();

	assert_false(company_has_left(&segment, false, 10 * SECOND));
	segment_set_company(&segment, true);
	assert_false(company_has_left(&segment, false, 10 * SECOND + SECOND / 2));
	assert_false(company_has_left(&segment, true, 11 * SECOND));
	assert_false(company_has_left(&segment, false, 12 * SECOND - 1));
	assert_true(company_has_left(&segment, false, 12 * SECOND));
	assert_false(segment_has_company(&segment));
	assert_false(company_has_left(&segment, false, 20 * SECOND));
	segment_close(&segment);
}

RUN_TESTS(start_neighbour, end_neighbour)
