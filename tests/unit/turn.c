/* Runs of -n that wait for each other: each looks at all processes only when the one in front has come off. */
#include "../cases.h"
#include "base/clock.h"
#include "base/pids.h"
#include "process.h"

#define RUNS 8
#define PAUSES_EACH 50

static pid_t runs[RUNS]; /* in front, in the order of their numbers */
static bool last_ends_first;
static unsigned int looks, pauses;

static int list_runs(struct pids *pids, struct error *why)
{
	looks++;
	*pids = (struct pids){.count = 0};
	for (int i = 0; i < RUNS; i++)
		assert_true(runs[i] == 0 || pids_add(pids, runs[i], why) == 0);
	return 0;
}

/* Each is in front for so many pauses: time is what it takes. */
static void pass(void)
{
	unsigned int ended = ++pauses / PAUSES_EACH - 1, which = last_ends_first ? RUNS - 1 - ended : ended;

	if (pauses % PAUSES_EACH == 0 && ended < RUNS) {
		kill(runs[which], SIGKILL);
		waitpid(runs[which], NULL, 0);
		runs[which] = 0;
	}
}

#define pids_all(pids, error) list_runs(pids, error)
#define clock_pause_us(us) pass()
#define clock_ms() ((double)pauses)
#include "../../tools/nvtaskset/select/turn.c"

static uint64_t its_number; /* of the run that begins next */

static void be_a_run(char order)
{
	const uint64_t ticket[] = {its_number, its_number};
	int file = memfd_create(TICKET_NAME, MFD_CLOEXEC);

	if (write(file, ticket, sizeof ticket) < 0 || fcntl(file, F_OFD_SETLK, &whole) < 0)
		_exit(1);
}

/* How often one that comes then looks; 0 if it gets no turn. A process has one turn, so it is another process. */
static int looks_behind_them(bool wanted)
{
	struct error error;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		last_ends_first = wanted;
		for (int i = 0; i < RUNS; i++) {
			its_number = (uint64_t)i + 1;
			runs[i] = process_start(be_a_run).pid;
		}
		_exit(turn_wait("-n", "name them", &error) == 0 ? (int)looks : 0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

TEST(one_behind_many_looks_no_more_often_than_behind_one)
{
	/* To take a number, to see who is in front, and when it is gone. */
	assert_int_equal(looks_behind_them(false), 3);
	/* Where the one in front gives up, the next one is looked for. */
	assert_int_equal(looks_behind_them(true), 2 + RUNS);
}

RUN_TESTS(NULL, NULL)
