/* For unit tests: processes that obey orders and report when they have. */
#ifndef NVTASKSET_TESTS_PROCESS_H
#define NVTASKSET_TESTS_PROCESS_H

#include "../cases.h"

#include "base/proc.h"
#include "has.h"

struct process {
	pid_t pid;
	int orders, answers;
};

/* Those that processes_end ends, as a fixture. */
static struct process processes_started[128];
static size_t processes_count;

/* In such a process, which ends otherwise. */
static inline void must(bool is_so)
{
	if (!is_so)
		_exit(1);
}

/* When this returns, the process has obeyed the order 0. It ends with this process at the latest. */
static struct process process_start(void (*obey)(char order))
{
	int orders[2], answers[2];
	char order = 0;

	assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
	struct process process = {.pid = fork(), .orders = orders[1], .answers = answers[0]};

	if (process.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(orders[1]);
		close(answers[0]);
		do {
			obey(order);
			if (write(answers[1], &order, 1) != 1)
				_exit(1);
		} while (read(orders[0], &order, 1) == 1);
		_exit(0);
	}
	assert_true(process.pid > 0);
	close(orders[0]);
	close(answers[1]);
	assert_int_equal(read(process.answers, &order, 1), 1);
	assert_true(processes_count < COUNT_OF(processes_started));
	processes_started[processes_count++] = process;
	return process;
}

/* Inline, since some tests give no second order. */
static inline void process_order(const struct process *process, char order)
{
	assert_int_equal(write(process->orders, &order, 1), 1);
	assert_int_equal(read(process->answers, &order, 1), 1);
}

static inline void process_end(const struct process *process)
{
	pid_t pid = process->pid;
	size_t i = 0;

	close(process->orders);
	close(process->answers);
	end_child(pid);
	while (processes_started[i].pid != pid)
		i++;
	processes_started[i] = processes_started[--processes_count];
}

static inline void processes_end(void)
{
	while (processes_count > 0)
		process_end(&processes_started[processes_count - 1]);
}

/* Until it is stopped, has gone on or has ended; the next one who waits still sees it. */
static inline void process_wait(const struct process *process, int what)
{
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)process->pid, &info, what | WNOWAIT), 0);
}

static inline void *process_sleep(void *data)
{
	for (;;)
		pause();
	return data;
}

/* In such a process: another thread goes on. */
static inline void process_end_first_thread(void)
{
	pthread_t thread;

	must(pthread_create(&thread, NULL, process_sleep, NULL) == 0);
	pthread_exit(NULL);
}

/* Gives the order to do so, and waits until the first thread has ended. */
static inline void process_order_end_of_first_thread(const struct process *process, char order)
{
	char stat[PROC_STAT_TEXT];

	assert_int_equal(write(process->orders, &order, 1), 1);
	do {
		proc_stat_read(process->pid, stat);
	} while (proc_stat_state(stat) != 'Z');
}

#endif
