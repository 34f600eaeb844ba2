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

static char commands[64], contexts[2];

static void write_commands(CUcontext context)
{
	const struct submission_words words = {sizeof words, context, commands, sizeof commands, 3};

	on_submission(SUBMISSION_WRITTEN, &words);
}

static void ring(CUcontext context)
{
	const struct ring_words words = {sizeof words, context, NULL};

	on_submission(SUBMISSION_RING, &words);
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
	ring(context_of(0));
	assert_int_equal(told, 1);
}

TEST(a_ring_of_another_context)
{
	write_commands(context_of(0));
	ring(context_of(1));
	assert_int_equal(told, 0);
}

/* Of a driver that knows less. */
TEST(fewer_words)
{
	const struct submission_words few = {sizeof few - 1, context_of(0), commands, sizeof commands, 3};
	const struct ring_words small = {sizeof small - 1, context_of(0), NULL};

	on_submission(SUBMISSION_WRITTEN, &few);
	ring(context_of(0));
	write_commands(context_of(0));
	on_submission(SUBMISSION_RING, &small);
	assert_int_equal(told, 0);
}

RUN_TESTS(begin, NULL)
