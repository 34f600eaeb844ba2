/* TPCs in use: a program that begins between the two looks at all processes counts. */
#include "../cases.h"
#include "../alone.h"
#include "base/pids.h"
#include "process.h"
#include "own_segment.h"
#define process shown_process /* process.h has a `process`, too */
#include "show/processes.h"
#undef process

static struct process newcomer;
static unsigned int looks;

/* The program begins to work once the first look is over. */
static void look_begins(void)
{
	if (++looks == 2)
		process_order(&newcomer, 'b');
}

#define pids_all(...) (look_begins(), pids_all(__VA_ARGS__))
#define processes_collect(...) (look_begins(), processes_collect(__VA_ARGS__))
#define process shown_process
#include "../../tools/nvtaskset/select/occupied.c"
#undef process

/* 0: the environment says TPCs 0-7, as at the start; 'b': the program works in TPCs of a later edit. */
static void obey(char order)
{
	static struct segment own;
	struct segment_partition partition = partition_of(first, 20, 23);
	struct segment_revision revision = revision_of(&partition);

	if (order == 'b')
		must(segment_create(&own, &revision, NULL, -1, -1, NULL) == 0);
	else
		must(snprintf(environ[0], 64, SEGMENT_ENVIRONMENT "=0000:3b:00.0=0-7") < 64);
}

TEST(a_program_that_begins_meanwhile)
{
	struct topology_list list = {.count = 1};
	struct segment_revision occupied;
	const struct set_limits limits = {.group = NULL};
	bool some_are_hidden;
	struct error error;

	list.gpus[0] = (struct topology){.pci = first, .tpc_count = 66};
	newcomer = process_start(obey);
	assert_done(occupied_find(&occupied, &list, &limits, &some_are_hidden, &error));
	struct segment_partition wanted = partition_of(first, 20, 23);

	assert_int_equal(looks, 2);
	assert_true(tpcset_is_subset(&wanted.set, &occupied.partitions[0].set));
	process_end(&newcomer);
}

RUN_TESTS_ALONE(NULL, NULL, NULL, NULL)
