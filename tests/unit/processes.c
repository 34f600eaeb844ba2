/* What the views show of a process that ends while it is examined: nothing. */
#include "../cases.h"
#include "base/proc.h"
#include "state/kernels/counts_read.h"
#include "state/segment/find.h"
#include "state/segment/layout.h"

#include <pwd.h>

/* The functions by which a process is examined tell that they are called. */
static void reach(const char *function);

#define segment_obstacle(...) (reach("segment_obstacle"), segment_obstacle(__VA_ARGS__))
#define counts_read(...) (reach("counts_read"), counts_read(__VA_ARGS__))
#define proc_owner(...) (reach("proc_owner"), proc_owner(__VA_ARGS__))
#define getpwuid(...) (reach("getpwuid"), getpwuid(__VA_ARGS__))
#define proc_read(...) (reach("proc_read"), proc_read(__VA_ARGS__))
#include "../../tools/nvtaskset/show/processes.c"
#include "../../tools/nvtaskset/terminal/text.c"
#include "own_segment.h"

static struct {
	pid_t pid;
	const char *ends_at; /* the function; NULL: it does not end */
	int how;             /* for waitid: with WNOWAIT, /proc still shows it */
} examined;

static void reach(const char *function)
{
	siginfo_t end;

	if (examined.ends_at && strcmp(function, examined.ends_at) == 0) {
		examined.ends_at = NULL;
		assert_int_equal(kill(examined.pid, SIGKILL), 0);
		assert_int_equal(waitid(P_PID, (id_t)examined.pid, &end, WEXITED | examined.how), 0);
	}
}

/* With a partition and counts. It ends with this process at the latest. */
static void start(void)
{
	static struct counts_areas areas;
	int ready[2];
	char byte = 0;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	examined.pid = fork();
	if (examined.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		struct segment segment = make_segment();

		counts_begin(counts_take(&areas, &segment, first, UINT64_MAX, 0, NULL));
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

static struct processes collect(void)
{
	struct processes processes;
	struct error error;

	assert_int_equal(processes_collect(&processes, true, &error), 0);
	return processes;
}

TEST(it_goes_on)
{
	start();
	struct processes processes = collect();
	const struct process *found = processes_find(&processes, examined.pid);

	assert_non_null(found);
	assert_each(found->counts.count, 1, found->counts.gaps, 0);
	assert_null(found->not_in_force);
	assert_string_not_equal(found->command, "?");
	processes_free(&processes);
	kill(examined.pid, SIGKILL);
	waitpid(examined.pid, NULL, 0);
}

/* When its parent has waited for it, or not. */
TEST(it_ends)
{
	const char *const functions[] = {"segment_obstacle", "counts_read", "proc_owner", "getpwuid", "proc_read"};

	for (unsigned int i = 0; i < 2 * COUNT_OF(functions); i++) {
		start();
		examined.ends_at = functions[i / 2];
		examined.how = i % 2 ? WNOWAIT : 0;
		struct processes processes = collect();

		assert_null(examined.ends_at);
		assert_null(processes_find(&processes, examined.pid));
		processes_free(&processes);
		if (examined.how == WNOWAIT)
			waitpid(examined.pid, NULL, 0);
	}
}

RUN_TESTS(NULL, NULL)
