/*
 * Graphs in a program whose memory runs out: what our library cannot remember then is not counted, and the reason is
 * said, and no other one.
 */
#include "../cases.h"
#include "state/kernels/counts.h"
#include "support/graph.h"
#include "support/timed.h"

#include <dlfcn.h>

static bool is_refused;
static unsigned int refusals;

/* The program's functions come before the C library's. A sanitizer has functions of its own. */
#if !SANITIZED
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

/* What our library asks for: inside nvtaskset, the driver has another name. */
static bool refuse(void *caller)
{
	Dl_info from;
	bool refused = is_refused && dladdr(caller, &from) != 0 && strstr(from.dli_fname, "/libcuda.so.1");

	refusals += refused;
	if (refused)
		errno = ENOMEM;
	return refused;
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
	return refuse(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void *realloc(void *memory, size_t size)
{
	return refuse(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, size);
}
#endif

static void refuse_memory(bool wanted)
{
	is_refused = wanted;
	if (!wanted)
		assert_true(refusals > 0);
}

static uint32_t at_begin; /* the GPU may have no slots that count */

static void open_in_child(void)
{
	graph_set_up(NULL);
	at_begin = gpu_kernels(&gpu).gaps;
	assert_true(at_begin == 0 || at_begin == 1 << COUNTS_NO_SLOTS);
}

static void run_without_memory(void (*body)(void))
{
	if (SANITIZED)
		gpu_skip("the sanitizer has the functions of memory");
	timed_run_on_simulator(body);
}

TIMED_BY(run_without_memory, at_its_first_launch)
{
	open_in_child();
	CUgraphExec exec = graph_instantiate(graph_make());

	refuse_memory(true);
	gpu_check(cuGraphLaunch(exec, NULL));
	refuse_memory(false);
	gpu_check(cuGraphLaunch(exec, NULL));
	assert_int_equal(gpu_kernels(&gpu).gaps, at_begin | 1 << COUNTS_NO_MEMORY);
}

/* Nobody knows how often the nodes of a graph that is not known run, unless the GPU counts them. */
TIMED_BY(run_without_memory, as_it_is_made)
{
	open_in_child();
	CUgraph graph = graph_make();

	refuse_memory(true);
	CUgraphExec exec = graph_instantiate(graph);

	refuse_memory(false);
	gpu_check(cuGraphLaunch(exec, NULL));
	assert_int_equal(gpu_kernels(&gpu).gaps, at_begin | 1 << COUNTS_NO_MEMORY | (at_begin ? 1 << COUNTS_UNSEEN : 0));
}

RUN_TESTS(NULL, NULL)
