/* The driver announces submissions: the hook tells each submission once, with the right ring. */
#include "../cases.h"

#include "../../src/driver/hook.c"

static unsigned int told;
static struct submission last;

static void note(struct launch *launch, const struct submission *submission)
{
	told++;
	last = *submission;
}

FIXTURE(begin)
{
	events = (struct hook_events){.submits = note};
	told = 0;
	submitted = (struct submission){.commands = NULL};
}

#define ENTRY 5

static char commands[64], contexts[2];
static volatile unsigned char ring_entries[RING_ENTRIES][ENTRY_BYTES];

static void write_commands(CUcontext context)
{
	const struct submission_words words = {sizeof words, context, commands, sizeof commands, 3, 0, ENTRY};

	on_submission(SUBMISSION_WRITTEN, &words);
}

/* The ring has gone round. */
static void ring_at(CUcontext context, uint32_t entry)
{
	const struct {
		uint64_t unused;
		uint32_t entry, number;
		volatile unsigned char (*ring)[ENTRY_BYTES];
	} place = {0, entry + RING_ENTRIES, 1, ring_entries};
	const struct ring_words words = {sizeof words, context, (const void *)&place};

	on_submission(SUBMISSION_RING, &words);
}

static void ring(CUcontext context)
{
	ring_at(context, ENTRY);
}

static CUcontext context_of(int number)
{
	return (CUcontext)(void *)&contexts[number];
}

TEST(once)
{
	write_commands(context_of(0));
	assert_int_equal(told, 0);
	ring(context_of(0));
	assert_each(told, 1, last.bytes, sizeof commands);
	assert_ptr_equal(last.commands, commands);
	assert_ptr_equal(last.context, context_of(0));
	assert_ptr_equal(last.sync, &ring_entries[ENTRY][7]);
	ring(context_of(0));
	assert_int_equal(told, 1);
}

/* The driver says twice which entry the commands have. */
TEST(another_entry)
{
	write_commands(context_of(0));
	ring_at(context_of(0), ENTRY + 1);
	assert_int_equal(told, 0);
}

TEST(a_ring_of_another_context)
{
	write_commands(context_of(0));
	ring(context_of(1));
	assert_int_equal(told, 0);
}

/* Of a driver with shorter parameters. */
TEST(fewer_words)
{
	const struct submission_words few = {sizeof few - 1, context_of(0), commands, sizeof commands, 3, 0, ENTRY};
	const struct ring_words small = {sizeof small - 1, context_of(0), NULL};

	on_submission(SUBMISSION_WRITTEN, &few);
	ring(context_of(0));
	write_commands(context_of(0));
	on_submission(SUBMISSION_RING, &small);
	assert_int_equal(told, 0);
}

RUN_TESTS(begin, NULL)
