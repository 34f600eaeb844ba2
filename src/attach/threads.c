#include "threads.h"

#include "attach/moment.h"
#include "base/identity.h"
#include "base/proc.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_in_driver(const struct target *target, uint64_t stack)
{
	uint64_t words[256];
	bool found = false;

	if (memory_read(&target->memory, stack, words, sizeof words)) {
		for (size_t i = 0; i < sizeof words / sizeof words[0] && !found; i++)
			found = range_has(&target->driver, words[i]);
	}
	return found;
}

static enum thread_rank rank_waiting(const struct target *target, long call, uint64_t stack)
{
	enum thread_rank rank = RANK_NONE;
	bool goes_on = false;

	if (moment_is_wait(call, &goes_on) && !goes_on)
		rank = RANK_BREAKS_OFF;
	else if (goes_on)
		rank = is_in_driver(target, stack) ? RANK_WAITS_IN_DRIVER : RANK_WAITS;
	return rank;
}

struct asleep {
	long call;
	unsigned long stack, instruction;
};

/* Reads the number of the system call, the stack pointer and the instruction pointer. 1 if the thread sleeps, 0 if the
 * thread runs, -1 if the thread has ended. */
static int look_at(const struct target *target, pid_t thread, struct asleep *asleep)
{
	char text[256];
	int answer = -1;

	proc_read_text(text, sizeof text, "/proc/%d/task/%d/syscall", (int)target->pid, (int)thread);
	if (strncmp(text, "running", 7) == 0)
		answer = 0;
	else if (sscanf(text, "%ld %*x %*x %*x %*x %*x %*x %lx %lx", &asleep->call, &asleep->stack,
	                &asleep->instruction) == 3)
		answer = 1;
	return answer;
}

static enum thread_rank rank_of(const struct target *target, pid_t thread)
{
	struct asleep asleep;
	int answer = look_at(target, thread, &asleep);
	enum thread_rank rank = answer == 0 ? RANK_RUNS : RANK_NONE;

	if (answer > 0)
		rank = rank_waiting(target, asleep.call, asleep.stack);
	return rank;
}

static int compare_ranks(const void *a, const void *b)
{
	const struct thread_candidate *left = a, *right = b;

	return (left->rank > right->rank) - (left->rank < right->rank);
}

static DIR *open_threads(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	return opendir(path);
}

static size_t list(const struct target *target, DIR *directory, struct thread_candidate **candidates)
{
	size_t count = 0, room = 0;
	struct dirent *entry;

	while ((entry = readdir(directory))) {
		struct thread_candidate candidate = {.thread = atoi(entry->d_name), .rank = RANK_NONE};

		if (candidate.thread > 0)
			candidate.rank = rank_of(target, candidate.thread);
		if (candidate.rank != RANK_NONE && count == room) {
			struct thread_candidate *larger = realloc(*candidates, (room = 2 * room + 64) * sizeof *larger);

			if (!larger)
				break;
			*candidates = larger;
		}
		if (candidate.rank != RANK_NONE)
			(*candidates)[count++] = candidate;
	}
	return count;
}

size_t threads_choose(const struct target *target, struct thread_candidate **threads)
{
	DIR *directory = open_threads(target->pid);
	size_t count = 0;

	*threads = NULL;
	if (directory && !moment_loader_is_busy(target))
		count = list(target, directory, threads);
	if (count > 0)
		qsort(*threads, count, sizeof **threads, compare_ranks);
	if (directory)
		closedir(directory);
	return count;
}

int threads_check_filters(const struct target *target, struct error *error)
{
	DIR *directory = open_threads(target->pid);
	bool found = false, unfiltered;
	struct dirent *entry;
	int result = 0;

	while (directory && !found && (entry = readdir(directory))) {
		pid_t thread = atoi(entry->d_name);

		if (thread > 0 && proc_has_program(thread)) {
			result = target_check_filters(target->pid, thread, &unfiltered, error);
			found = result == 0;
		}
	}
	if (directory)
		closedir(directory);
	return result;
}

bool threads_is_outside(const struct target *target, uint64_t inner_id, const struct range *range)
{
	DIR *directory = open_threads(target->pid);
	bool outside = directory;
	struct dirent *entry;
	struct asleep asleep;

	while (outside && (entry = readdir(directory))) {
		pid_t thread = atoi(entry->d_name);

		if (thread > 0 && identity_inner(thread) == inner_id)
			outside = look_at(target, thread, &asleep) > 0 && !range_has(range, asleep.instruction);
	}
	if (directory)
		closedir(directory);
	return outside;
}
