/* The end of a call goes to the listeners of the begin (src/driver/hook.c), whichever announcements are missing. */
#include "../cases.h"

#include "../../src/driver/hook.c"

#define OUTER CALL_GRAPH_LAUNCH
#define INNER CALL_LAUNCH
#define ANOTHER 2

static unsigned int wanted[CALLS_MAX], begun, ended, ended_by;

static unsigned int want(int id)
{
	return wanted[id];
}

static void note_begin(const struct call *call)
{
	begun++;
}

static void note_end(const struct call *call)
{
	ended++;
	ended_by = call->wanted_by;
}

static void listen(int id, unsigned int by)
{
	wanted[id] = by;
	ask_who_wants(id);
}

FIXTURE(begin)
{
	events = (struct hook_events){.wants_call = want, .call_begins = note_begin, .call_ended = note_end};
	heard = 0;
	memset(wanted, 0, sizeof wanted);
	begun = ended = ended_by = 0;
	listen(OUTER, 1);
	listen(INNER, 0);
}

static void announce(int id, uint32_t phase)
{
	void *arguments[16] = {NULL};
	CUresult result = CUDA_SUCCESS;
	const struct call_words words = {
		.size = sizeof words, .result = &result, .arguments = arguments, .phase = phase};

	on_call(id, &words);
}

static void call_begins(int id)
{
	announce(id, 0);
}

static void call_ends(int id)
{
	announce(id, 1);
}

TEST(listeners_change_in_the_middle)
{
	call_begins(OUTER);
	listen(OUTER, ANOTHER);
	call_ends(OUTER);
	assert_each(ended, 1, ended_by, 1);
	call_begins(OUTER);
	listen(OUTER, 0);
	call_ends(OUTER);
	assert_each(ended, 2, ended_by, ANOTHER);
}

TEST(an_end_without_a_begin)
{
	listen(INNER, ANOTHER);
	call_ends(INNER);
	assert_int_equal(ended, 0);
	call_begins(OUTER);
	call_ends(INNER);
	assert_int_equal(ended, 0);
	call_ends(OUTER);
	assert_each(ended, 1, ended_by, 1);
}

TEST(a_begin_without_an_end)
{
	listen(INNER, ANOTHER);
	call_begins(OUTER);
	call_begins(INNER);
	call_ends(OUTER);
	assert_each(ended, 1, ended_by, 1);
	call_begins(INNER);
	call_ends(INNER);
	assert_each(ended, 2, ended_by, ANOTHER);
	call_ends(OUTER);
	assert_int_equal(ended, 2);
}

/* Also after many jumps out of calls. */
TEST(many_begins_without_an_end)
{
	for (unsigned int i = 0; i < 9; i++)
		call_begins(OUTER);
	listen(INNER, ANOTHER);
	call_begins(INNER);
	call_ends(INNER);
	assert_each(ended, 1, ended_by, ANOTHER);
}

static CUresult do_enable(uint32_t on, uint32_t handle, int domain, int id)
{
	return CUDA_SUCCESS;
}

/* A tool leaves while a thread is in a call that nobody wants any more: the end is to come. */
TEST(calls_stay_announced)
{
	entries[SLOT_ENABLE] = (void *)do_enable;
	hook_want_more();
	listen(OUTER, 0);
	hook_want_more();
	assert_each(is_ours(DOMAIN_CALL, OUTER), true, is_ours(DOMAIN_CALL, INNER), false);
}

RUN_TESTS(begin, NULL)
