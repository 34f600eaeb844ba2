#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct keeper_memory {
	_Atomic size_t count;
	struct kept {
		pid_t pid;
		bool is_new; /* it is ended. Otherwise: */
		struct segment_revision before; /* all that is to be given back */
		struct segment_revision now;    /* as we have changed it last, */
		struct segment_revision next;   /* or are about to */
	} list[KEEPER_PROGRAMS];
};

/* Whether what is in force is ours: of the GPUs and of the time that we changed. */
static bool is_as(const struct segment_revision *in_force, const struct segment_revision *ours)
{
	struct segment_revision together = *in_force;

	together.group = ours->group;
	return segment_put_all(&together, ours, NULL) == 0 && together.count == in_force->count &&
	       memcmp(together.partitions, in_force->partitions, sizeof together.partitions) == 0 &&
	       memcmp(&together.quota, &in_force->quota, sizeof together.quota) == 0 &&
	       memcmp(&together.rank, &in_force->rank, sizeof together.rank) == 0 &&
	       memcmp(&together.lending, &in_force->lending, sizeof together.lending) == 0;
}

/* What we gave of the time, as it was before; what was never given then, as if it were not. */
static void take_time_back(struct segment_revision *wanted, const struct segment_revision *before, const struct segment_revision *ours)
{
	if (ours->quota.period_us > 0)
		wanted->quota = before->quota.period_us > 0 ? before->quota : (struct segment_quota){.run_us = 100000, .period_us = 100000};
	if (ours->rank.priority > 0)
		wanted->rank.priority = before->rank.priority > 0 ? before->rank.priority : segment_rank_of_priority(SEGMENT_PRIORITY_USUAL);
	if (ours->lending.lend_us > 0)
		wanted->lending.lend_us = before->lending.lend_us > 0 ? before->lending.lend_us : SEGMENT_LEND_OFF;
	if (ours->lending.borrows != SEGMENT_BORROW_NONE) {
		wanted->lending = (struct segment_lending){wanted->lending.lend_us, before->lending.borrows, before->lending.borrow};
		wanted->lending.borrows = segment_borrows(&before->lending) ? SEGMENT_BORROW_SET : SEGMENT_BORROW_OFF;
	}
}

/* --- the child ---------------------------------------------------------------------------------------------------------------- */

/* What we have not changed may be another's by now. */
static bool give_back(const struct kept *kept)
{
	struct segment_revision in_force, wanted = {.count = 0};
	struct editor editor;

	if (editor_open(&editor, kept->pid, NULL) != SEGMENT_FOUND || editor_read(&editor, &in_force, NULL) < 0 ||
	    !(is_as(&in_force, &kept->next) || is_as(&in_force, &kept->now)))
		return true;
	for (uint32_t i = 0; i < kept->next.count; i++)
		segment_put(&wanted, segment_find(&kept->before, kept->next.partitions[i].pci), NULL);
	take_time_back(&wanted, &kept->before, &kept->next);
	return editor_change(&editor, 1, &wanted, NULL) == 0 || editor_has_ended(&editor);
}

static bool end_program(pid_t pid)
{
	return kill(pid, SIGTERM) == 0 || errno == ESRCH;
}

static _Noreturn void watch(const struct keeper_memory *memory, int pipe)
{
	char byte;
	ssize_t got;
	bool all = true;

	do
		got = read(pipe, &byte, 1);
	while (got < 0 && errno == EINTR);
	for (size_t i = 0; i < memory->count && got <= 0; i++)
		all = (memory->list[i].is_new ? end_program(memory->list[i].pid) : give_back(&memory->list[i])) && all;
	_exit(all ? 0 : 1);
}

/* Nothing of ours stays open there: a reader of our output would wait for its end. */
static void leave(int pipe)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	prctl(PR_SET_NAME, "keeps-partition", 0, 0, 0); /* who kills all that are named nvtaskset does not mean this */
	for (int file = 0; file < 3; file++)
		dup2(nothing, file);
	close(nothing);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	close(pipe);
}

/* --- the parent --------------------------------------------------------------------------------------------------------------- */

int keeper_start(struct keeper *keeper, struct error *error)
{
	struct keeper_memory *memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ends[2];

	*keeper = (struct keeper){.child = -1, .memory = memory};
	if (memory == MAP_FAILED || pipe2(ends, O_CLOEXEC) < 0)
		return error_set_errno(error, "a child that gives partitions back");
	keeper->child = fork();
	if (keeper->child == 0) {
		leave(ends[1]);
		watch(memory, ends[0]);
	}
	close(ends[0]);
	keeper->pipe = ends[1];
	return keeper->child > 0 ? 0 : error_set_errno(error, "a child that gives partitions back");
}

int keeper_change(struct keeper *keeper, struct editor *editor, const struct segment_revision *whole, const struct segment_revision *wanted,
                  struct error *error)
{
	struct keeper_memory *memory = keeper->memory;
	struct kept *kept = memory->list, *end = memory->list + memory->count;
	struct segment_revision in_force;

	while (kept < end && kept->pid != editor->pid)
		kept++;
	if (editor_read(editor, &in_force, error) < 0)
		return -1;
	if (kept < end && !is_as(&in_force, &kept->now))
		return error_set(error, "pid %d: somebody else has changed its partition meanwhile", (int)editor->pid);
	if (kept == end) {
		*kept = (struct kept){.pid = editor->pid, .before = in_force, .now = in_force};
		segment_put_missing(&kept->before, whole);
	}
	kept->next = *wanted;
	if (kept == end)
		memory->count++;
	if (editor_change(editor, 1, wanted, error) < 0)
		return -1;
	kept->now = *wanted;
	return 0;
}

void keeper_add(struct keeper *keeper, pid_t pid)
{
	keeper->memory->list[keeper->memory->count] = (struct kept){.pid = pid, .is_new = true};
	keeper->memory->count++;
}

int keeper_end(struct keeper *keeper, bool gives_back)
{
	int status = 0;

	if (!keeper->memory || keeper->child <= 0)
		return 0;
	if (!gives_back && write(keeper->pipe, "", 1) != 1)
		status = 1;
	close(keeper->pipe);
	while (waitpid(keeper->child, &status, 0) < 0 && errno == EINTR)
		;
	keeper->child = 0;
	return status == 0 ? 0 : -1;
}
