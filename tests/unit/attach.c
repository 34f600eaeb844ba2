/*
 * Attaching to a program, wherever its threads are: the program loses nothing. The library that is loaded says who called
 * it, refuses, and is unloaded again. Programs and library are those of tests/attach.
 *
 * ATTACH_STRIDE is how many of the attacher's system calls lie between two of its deaths, 1 to 50.
 */
#include "attach/attach.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char directory[512], library[600], slow_library[600];

struct program {
	pid_t pid;
	int input, output;
};

static void pause_for_ms(long milliseconds)
{
	const struct timespec pause = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

/* Reads up to the end of a line that starts so; fails at the program's end. */
static void expect_line(const struct program *program, const char *wanted)
{
	char line[200] = "";
	size_t length = 0;

	while (strncmp(line, wanted, strlen(wanted)) != 0) {
		for (length = 0; length < sizeof line - 1 && read(program->output, line + length, 1) == 1 &&
		                 line[length] != '\n'; length++)
			;
		line[length] = '\0';
		if (length == 0 || strncmp(line, "lost", 4) == 0)
			fail_msg("instead of '%s': '%s'", wanted, line);
	}
}

/* `arguments` are one string, with blanks in between. */
static struct program start(const char *name, const char *arguments)
{
	struct program program;
	char path[600], copy[200], *words[16] = {path}, *rest = copy;
	int input[2], output[2];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	snprintf(copy, sizeof copy, "%s", arguments);
	for (int i = 1; rest && i < 15; i++)
		words[i] = strsep(&rest, " ");
	assert_int_equal(pipe2(input, O_CLOEXEC), 0);
	assert_int_equal(pipe2(output, O_CLOEXEC), 0);
	program.pid = fork();
	if (program.pid == 0) {
		dup2(input[0], STDIN_FILENO);
		dup2(output[1], STDOUT_FILENO);
		execv(path, words);
		_exit(127);
	}
	close(input[0]);
	close(output[1]);
	program.input = input[1];
	program.output = output[0];
	expect_line(&program, "ready");
	return program;
}

/* A line of /proc/PID/status that starts so. */
static bool has_status(const struct program *program, const char *wanted)
{
	char path[40], line[200];

	snprintf(path, sizeof path, "/proc/%d/status", (int)program->pid);
	FILE *status = fopen(path, "re");
	bool found = false;

	assert_non_null(status);
	while (!found && fgets(line, sizeof line, status))
		found = strncmp(line, wanted, strlen(wanted)) == 0;
	fclose(status);
	return found;
}

static void wait_until(const struct program *program, const char *status)
{
	while (!has_status(program, status))
		pause_for_ms(1);
}

#define ASLEEP          "State:\tS"
#define HANDLES_SIGUSR1 "SigCgt:\t0000000000000200"

static void end(const struct program *program)
{
	int status = 0;

	if (write(program->input, "x", 1) < 0)
		assert_int_equal(errno, EPIPE);
	close(program->input);
	expect_line(program, "intact");
	close(program->output);
	assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
	assert_int_equal(status, 0);
}

#define WORDS 2000 /* more than a page */

static const char *tell_words(void)
{
	static char text[WORDS * 5 + 1];

	for (size_t i = 0; i < sizeof text - 1; i++)
		text[i] = "word "[i % 5];
	return text;
}

/* Attaches, and returns the thread that was borrowed. The library ends what it says with something that a terminal would
 * obey. */
static pid_t attach(const struct program *program)
{
	struct attach_report report;
	struct error error = {.reason = ""};
	char expected[100];

	assert_int_equal(attach_load(program->pid, library, tell_words(), &report, &error), -1);
	snprintf(expected, sizeof expected, "pid %d: called on thread %d, told %d words?", (int)program->pid,
	         (int)report.thread, WORDS);
	assert_string_equal(error.reason, expected);
	return report.thread;
}

static void assert_refused(pid_t pid, const char *reason)
{
	struct attach_report report;
	struct error error = {.reason = ""};

	assert_int_equal(attach_load(pid, library, "", &report, &error), -1);
	if (!strstr(error.reason, reason))
		fail_msg("'%s' is not in '%s'", reason, error.reason);
}

/* --- one thread, always in the same place ------------------------------------------------------------------------ */

static void attach_to_alone(const char *what, long after_ms)
{
	struct program program = start("alone", what);

	pause_for_ms(after_ms);
	for (int i = 0; i < 3; i++)
		assert_int_equal(attach(&program), program.pid);
	end(&program);
}

/* Each waits for 4 seconds, and notices when it starts over. */
static void test_timed_waits(void **state)
{
	static const char *const waits[] = {"nanosleep", "poll", "select", "futex"};
	struct program programs[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		programs[i] = start("alone", waits[i]);
	pause_for_ms(1500);
	/* More than once: the second time, the rest of the wait is interrupted. */
	for (int i = 0; i < 12; i++)
		attach(&programs[i % 4]);
	for (int i = 0; i < 4; i++)
		end(&programs[i]);
}

static void test_waits(void **state)
{
	(void)state;
	attach_to_alone("read", 50);
	attach_to_alone("epoll", 50);
	attach_to_alone("wait", 50);
}

static void test_running_thread(void **state)
{
	(void)state;
	attach_to_alone("spin", 50);
}

static void test_signal_handler(void **state)
{
	struct program program = start("alone", "handler");

	(void)state;
	wait_until(&program, HANDLES_SIGUSR1);
	kill(program.pid, SIGUSR1);
	wait_until(&program, ASLEEP);
	for (int i = 0; i < 3; i++)
		attach(&program);
	end(&program);
}

/* What holds a lock that loading needs, or may hold one, is not borrowed. */
static void test_in_the_middle(void **state)
{
	struct program in_libc = start("alone", "handler-in-libc"), constructing = start("alone", "construct"),
	               loading = start("alone", "load");
	struct attach_report report;

	(void)state;
	wait_until(&in_libc, ASLEEP);
	wait_until(&constructing, ASLEEP);
	assert_refused(in_libc.pid, "none of its threads could be borrowed");
	assert_refused(constructing.pid, "none of its threads could be borrowed");
	/* It may come by its own code for a moment. */
	attach_load(loading.pid, library, "", &report, NULL);
	end(&in_libc);
	end(&constructing);
	end(&loading);
}

static void test_between_calls(void **state)
{
	(void)state;
	attach_to_alone("allocate", 50);
}

static void attach_and_signal(const char *what, int signal)
{
	struct program program = start("alone", what);

	wait_until(&program, ASLEEP);
	attach(&program);
	kill(program.pid, signal);
	end(&program);
}

static void test_waits_for_signals(void **state)
{
	(void)state;
	attach_and_signal("pause", SIGUSR1);
	attach_and_signal("sigsuspend", SIGUSR2);
	attach_and_signal("sigwait", SIGUSR2);
}

static bool has_vsyscall(void)
{
	char line[300];
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;

	while (maps && fgets(line, sizeof line, maps))
		found = found || strstr(line, "[vsyscall]");
	if (maps)
		fclose(maps);
	return found;
}

static void test_vsyscall(void **state)
{
	(void)state;
	if (!has_vsyscall())
		skip();
	struct program program = start("alone", "vsyscall");

	for (int i = 0; i < 20; i++)
		attach(&program);
	end(&program);
}

/* --- many threads ---------------------------------------------------------------------------------------------------- */

static const char everything[] = "allocate=3 load=1 sleep=3 hold=1 poll=2 epoll=2 read=2 wait=3 signal=1";

static void test_many_cycles(void **state)
{
	struct program program = start("busy", everything);

	(void)state;
	for (int i = 0; i < 1000; i++)
		attach(&program);
	end(&program);
}

static void test_only_one_kind(void **state)
{
	static const char *const kinds[] = {"epoll=4", "hold=2", "signal=2", "wait=4", "load=2 allocate=2"};

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		struct program program = start("busy", kinds[i]);

		for (int j = 0; j < 20; j++)
			attach(&program);
		end(&program);
	}
}

/* --- deaths ------------------------------------------------------------------------------------------------------------- */

/* Attaches in a process of its own, which stops at the begin and end of each of its system calls. */
static pid_t start_attacher(pid_t target)
{
	struct attach_report report;
	pid_t attacher = fork();

	if (attacher == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		attach_load(target, library, "", &report, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(attacher, NULL, 0), attacher);
	return attacher;
}

/* Lets it make so many steps. False where it has ended before; waited for then. */
static bool let_step(pid_t attacher, int steps)
{
	int status = 0;
	bool lives = true;

	for (int i = 0; i < steps && lives; i++) {
		int signal = i > 0 && WSTOPSIG(status) != SIGTRAP ? WSTOPSIG(status) : 0;

		assert_int_equal(ptrace(PTRACE_SYSCALL, attacher, NULL, (long)signal), 0);
		assert_int_equal(waitpid(attacher, &status, 0), attacher);
		lives = WIFSTOPPED(status);
	}
	return lives;
}

static int stride(void)
{
	const char *text = getenv("ATTACH_STRIDE");

	return text ? atoi(text) : 5;
}

/* The attacher dies after 1 step, 1 + stride, …, until it has come to its end. */
static void die_everywhere(const char *name, const char *arguments)
{
	struct program program = start(name, arguments);
	bool died = true;

	pause_for_ms(50);
	for (int steps = 1; died; steps += stride()) {
		pid_t attacher = start_attacher(program.pid);

		died = let_step(attacher, steps);
		if (died) {
			kill(attacher, SIGKILL);
			waitpid(attacher, NULL, 0);
		}
	}
	/* And nobody stands in the way of the next one. */
	attach(&program);
	end(&program);
}

/* Lets the slow library go on, wherever it has come to: what it does not read, the program reads and does not mind. */
static void feed_for_ms(const struct program *program, long milliseconds)
{
	for (long past = 0; past < milliseconds; past += 50) {
		assert_int_equal(write(program->input, "1", 1), 1);
		pause_for_ms(50);
	}
}

/* The library is finished while its attacher does not run: the thread waits for a second, and goes back then. Another try
 * finds out what the library has against it. */
static void test_attacher_that_is_late(void **state)
{
	struct program program = start("busy", "sleep=1");
	struct attach_report report;
	struct error error = {.reason = ""};
	pid_t attacher = fork();
	int status;

	(void)state;
	if (attacher == 0) {
		attach_load(program.pid, slow_library, "", &report, &error);
		_exit(strstr(error.reason, "nvtaskset_attached") ? 0 : 1);
	}
	pause_for_ms(200);
	kill(attacher, SIGSTOP);
	feed_for_ms(&program, 1500);
	kill(attacher, SIGCONT);
	while (waitpid(attacher, &status, WNOHANG) == 0)
		feed_for_ms(&program, 50);
	assert_int_equal(status, 0);
	end(&program);
}

static void test_death_of_the_attacher(void **state)
{
	(void)state;
	die_everywhere("alone", "read");
	die_everywhere("alone", "spin");
	/* Without those that a death can disturb: see attach.h. */
	die_everywhere("busy", "allocate=3 load=1 sleep=3 hold=1 poll=2 read=2 wait=3 signal=1");
}

static void test_death_of_the_target(void **state)
{
	bool died = true;

	(void)state;
	for (int steps = 1; died; steps += 7 * stride()) {
		struct program program = start("alone", "read");
		pid_t attacher = start_attacher(program.pid);

		died = let_step(attacher, steps);
		kill(program.pid, SIGKILL);
		if (died) {
			int status = 0;

			ptrace(PTRACE_DETACH, attacher, NULL, NULL);
			assert_int_equal(waitpid(attacher, &status, 0), attacher);
			assert_int_equal(status, 0);
		}
		assert_int_equal(waitpid(program.pid, NULL, 0), program.pid);
		close(program.input);
		close(program.output);
	}
}

/* --- refusals ------------------------------------------------------------------------------------------------------------ */

static void test_no_process(void **state)
{
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_refused(child, "it has ended");
}

static void test_debugged(void **state)
{
	struct program program = start("alone", "read");
	char reason[60];

	(void)state;
	assert_int_equal(ptrace(PTRACE_SEIZE, program.pid, NULL, NULL), 0);
	snprintf(reason, sizeof reason, "is being debugged by pid %d", (int)getpid());
	assert_refused(program.pid, reason);
	ptrace(PTRACE_INTERRUPT, program.pid, NULL, NULL);
	waitpid(program.pid, NULL, 0);
	ptrace(PTRACE_DETACH, program.pid, NULL, NULL);
	end(&program);
}

static void test_stopped(void **state)
{
	struct program program = start("alone", "read");

	(void)state;
	kill(program.pid, SIGSTOP);
	waitpid(program.pid, NULL, WUNTRACED);
	assert_refused(program.pid, "is stopped: continue it first");
	kill(program.pid, SIGCONT);
	end(&program);
}

/* Programs that cannot load our library. Not every compiler makes all of them, nor does every kernel run them. */
static void refuse_program(const char *name, const char *reason)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	if (access(path, X_OK) < 0) {
		print_message("# %s could not be built\n", name);
		skip();
	}
	struct program program = start(name, "read");

	assert_refused(program.pid, reason);
	end(&program);
}

static void test_static_program(void **state)
{
	(void)state;
	refuse_program("alone-static", "it is linked statically");
}

static void test_32_bits(void **state)
{
	(void)state;
	refuse_program("alone32", "is a 32-bit program");
}

static void test_other_library(void **state)
{
	(void)state;
	refuse_program("plain-musl", "its C library is not glibc");
}

static void test_no_library(void **state)
{
	struct program program = start("alone", "read");
	struct attach_report report;
	struct error error;

	(void)state;
	assert_int_equal(attach_load(program.pid, "/nonexistent", "", &report, &error), -1);
	assert_string_equal(error.reason, "/nonexistent: No such file or directory");
	/* The dynamic linker's own words. */
	assert_int_equal(attach_load(program.pid, "/proc/self/exe", "", &report, &error), -1);
	assert_non_null(strstr(error.reason, "cannot dynamically load"));
	attach(&program);
	end(&program);
}

/* Another user's program, where another user gets at the library at all: in root's home, nobody else does. */
static void test_not_permitted(void **state)
{
	const int out_of_reach = 77;
	int status = 0;

	(void)state;
	if (geteuid() != 0)
		skip();
	struct program program = start("alone", "read");
	pid_t child = fork();

	if (child == 0) {
		struct attach_report report;
		struct error error = {.reason = ""};

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		if (access(library, R_OK) < 0)
			_exit(out_of_reach);
		attach_load(program.pid, library, "", &report, &error);
		_exit(strstr(error.reason, "run 'sudo nvtaskset --attach") ? 0 : 1);
	}
	waitpid(child, &status, 0);
	end(&program);
	if (WIFEXITED(status) && WEXITSTATUS(status) == out_of_reach)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timed_waits),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_running_thread),
		cmocka_unit_test(test_signal_handler),
		cmocka_unit_test(test_in_the_middle),
		cmocka_unit_test(test_between_calls),
		cmocka_unit_test(test_waits_for_signals),
		cmocka_unit_test(test_vsyscall),
		cmocka_unit_test(test_many_cycles),
		cmocka_unit_test(test_only_one_kind),
		cmocka_unit_test(test_attacher_that_is_late),
		cmocka_unit_test(test_death_of_the_attacher),
		cmocka_unit_test(test_death_of_the_target),
		cmocka_unit_test(test_no_process),
		cmocka_unit_test(test_debugged),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_static_program),
		cmocka_unit_test(test_32_bits),
		cmocka_unit_test(test_other_library),
		cmocka_unit_test(test_no_library),
		cmocka_unit_test(test_not_permitted),
	};
	const char *build = getenv("BUILD");

	snprintf(directory, sizeof directory, "%s/tests/attach", build ? build : "build");
	snprintf(library, sizeof library, "%s/library.so", directory);
	snprintf(slow_library, sizeof slow_library, "%s/slow.so", directory);
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
