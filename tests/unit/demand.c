/* Demand: what a process has in flight, as it is seen by somebody that reads its numbers again and again. */
#include "../cases.h"

#include "state/kernels/counts_read.h"
#include "time/demand/work.h"

#define MS UINT64_C(1000000)
#define NOW (1000 * 1000 * MS)

static struct demand demand;
static struct counts_of_gpu counts;

FIXTURE(begin)
{
	demand = (struct demand){.looked = 0};
	counts = (struct counts_of_gpu){.launched = 0};
}

/* The process's numbers. */
static void launch(uint64_t kernels)
{
	counts.launched += kernels;
	counts.in_flight += kernels;
}

static void end(uint64_t kernels)
{
	counts.ended += kernels;
	counts.in_flight -= kernels;
}

/* Kernels that nobody announced have ended. */
static void end_unheard(uint64_t kernels)
{
	counts.launched += kernels;
	counts.ended += kernels;
	counts.unheard += kernels;
}

static void look(uint64_t at)
{
	demand_note(&demand, NOW + at, &counts);
}

static void assert_wants(uint64_t at, bool wants)
{
	ROW("at %.1f ms", (double)at / (double)MS);
	look(at);
	assert_true(demand.wants == wants);
}

static void assert_idle(uint64_t at, uint64_t ns)
{
	assert_wants(at, false);
	assert_int_equal(demand_idle_ns(&demand), ns);
}

/* It is idle since the first look that saw these numbers and nothing in flight: never longer than it really is. */
TEST(idle_since)
{
	assert_idle(0, 0);
	assert_idle(3 * MS, 3 * MS);
	assert_idle(7 * MS, 7 * MS);
	launch(1);
	assert_wants(8 * MS, true);
	assert_int_equal(demand_idle_ns(&demand), 0);
	end(1);
	assert_idle(10 * MS, 0);
	assert_idle(11 * MS, 1 * MS);
	/* Work between two looks: it ended at any time between them. */
	launch(1);
	end(1);
	assert_idle(20 * MS, 0);
	assert_idle(20 * MS + 1, 1);
}

/* --- what is not known exactly ------------------------------------------------------------------------------------ */

TEST(gaps)
{
	counts.gaps = 1 << COUNTS_NO_SLOTS;
	launch(1);
	assert_wants(0, false);
	assert_false(demand.is_known);
	launch(1);
	assert_wants(10 * MS, true);
	assert_int_equal(demand_idle_ns(&demand), 0);
	assert_wants(10 * MS + DEMAND_UNKNOWN_NS - 1, true);
	assert_idle(10 * MS + DEMAND_UNKNOWN_NS, 0);
	assert_idle(11 * MS + DEMAND_UNKNOWN_NS, MS);
	/* Every one that moves begins anew. */
	for (uint64_t at = 200 * MS; at < 1000 * MS; at += 99 * MS) {
		launch(1);
		assert_wants(at, true);
		assert_wants(at + 98 * MS, true);
	}
	assert_false(demand.is_known);
}

/* They may be in flight at any time, and are counted when they end. */
TEST(unheard)
{
	assert_wants(0, false);
	end_unheard(1);
	assert_wants(MS, true);
	assert_false(demand.is_known);
	assert_wants(MS + DEMAND_UNKNOWN_NS - 1, true);
	assert_idle(MS + DEMAND_UNKNOWN_NS, 0);
	end_unheard(1);
	assert_wants(200 * MS, true);
}

/* What was announced is still known to be in flight, for however long. */
TEST(unheard_beside_others)
{
	end_unheard(5);
	launch(1);
	for (uint64_t at = 0; at < 1000 * MS; at += 50 * MS)
		assert_wants(at, true);
	end(1);
	assert_wants(1000 * MS, true);
	assert_idle(1000 * MS + DEMAND_UNKNOWN_NS, 0);
}

/* --- history ------------------------------------------------------------------------------------------------------ */

/* A look each millisecond; '1': it has work. */
static void live(const char *text)
{
	for (uint64_t at = 0; text[at]; at++) {
		counts.in_flight = text[at] == '1';
		look(at * MS);
	}
}

TEST(a_bit_for_each_look)
{
	live("1101");
	assert_int_equal(demand.history, 0xd);
	/* One that comes too soon after the last is no other. */
	look(3 * MS + DEMAND_LOOK_NS - 1);
	assert_int_equal(demand.history, 0xd);
	look(3 * MS + DEMAND_LOOK_NS);
	assert_int_equal(demand.history, 0x1b);
}

/* One that was seen without work is taken to pause for a while, and so is one that has just come. */
TEST(pauses)
{
	counts.in_flight = 1;
	for (uint64_t at = 0; at < DEMAND_GAPS_NS; at += MS) {
		look(at);
		assert_true(demand_pauses(&demand));
	}
	look(DEMAND_GAPS_NS);
	assert_false(demand_pauses(&demand));
	counts.in_flight = 0;
	look(DEMAND_GAPS_NS + MS);
	counts.in_flight = 1;
	look(2 * DEMAND_GAPS_NS);
	assert_true(demand_pauses(&demand));
	look(2 * DEMAND_GAPS_NS + MS);
	assert_false(demand_pauses(&demand));
}

static bool is_present_after(const char *text)
{
	begin(NULL);
	ROW("%s", text);
	live(text);
	return demand_is_present(&demand);
}

TEST(present)
{
	static const char *const present[] = {"1", "00000001", "1111", "111110", "1111100", "10101110"};
	static const char *const absent[] = {"", "0", "10", "11110", "11111000", "10101010", "1111111000", "1111111100000000"};

	for (size_t i = 0; i < COUNT_OF(present); i++)
		assert_true(is_present_after(present[i]));
	for (size_t i = 0; i < COUNT_OF(absent); i++)
		assert_false(is_present_after(absent[i]));
}

RUN_TESTS(begin, NULL)
