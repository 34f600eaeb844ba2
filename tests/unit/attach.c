/*
 * Attaching to a program, whatever its threads are doing: the program loses nothing. The library that is loaded reports
 * which thread called it, refuses, and is unloaded again. Programs and library are those of tests/attach.
 *
 * ATTACH_STRIDE is the number of the attacher's system calls between two places where it is killed, 1 to 50.
 * ATTACH_TIMES is how often a test attaches if once may succeed by luck.
 *
 * needs: tests/attach/all
 * processes: no
 * takes: long
 */
#include "../cases.h"
#include "attach/attach.h"
#include "base/proc.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

static char directory[PATH_MAX], library[PATH_MAX], slow_library[PATH_MAX];

/* A number from the environment. */
static int setting(const char *name, int usual)
{
	const char *text = getenv(name);

	return text ? atoi(text) : usual;
}

static int times(void)
{
	return setting("ATTACH_TIMES", 20);
}

static int stride(void)
{
	return setting("ATTACH_STRIDE", 7);
}

struct program {
	pid_t pid;
	int input, output;
};

static void pause_for_ms(long milliseconds)
{
	const struct timespec pause = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

/* Reads up to the end of a line with this start; fails if the program ends. */
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

/* If a test fails, its program ends with this process: a reader that waits for the end of our output would otherwise wait for the
 * program, too. */
static struct program start(const char *name, const char *arguments)
{
	const char *command = text_of("exec '%s/%s' %s", directory, name, arguments);
	struct program program;
	int input[2], output[2];

	assert_int_equal(pipe2(input, O_CLOEXEC), 0);
	assert_int_equal(pipe2(output, O_CLOEXEC), 0);
	program.pid = fork();
	if (program.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(input[0], STDIN_FILENO);
		dup2(output[1], STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	close(input[0]);
	close(output[1]);
	program.input = input[1];
	program.output = output[0];
	expect_line(&program, "ready");
	return program;
}

/* What the program's directory in /proc has by this name. */
static const char *proc_path(const struct program *program, const char *name)
{
	return text_of("/proc/%d/%s", (int)program->pid, name);
}

static FILE *open_proc(const struct program *program, const char *name)
{
	FILE *file = fopen(proc_path(program, name), "re");

	assert_non_null(file);
	return file;
}

/* Whether /proc/PID/status has a line with this start. */
static bool has_status(const struct program *program, const char *wanted)
{
	FILE *status = open_proc(program, "status");
	bool found = false;
	char line[200];

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

#define ASLEEP            "State:\tS"
#define STOPPED           "State:\tT"
#define STOPPED_BY_TRACER "State:\tt"
#define HANDLES_SIGUSR1   "SigCgt:\t0000000000000200"
#define HANDLES_ONE_WITH_NUMBER "SigCgt:\t0000000400000000" /* SIGRTMIN + 1 */

static void end_input(const struct program *program)
{
	if (write(program->input, "x", 1) < 0)
		assert_int_equal(errno, EPIPE);
	close(program->input);
}

static void end(const struct program *program)
{
	int status = 0;

	end_input(program);
	expect_line(program, "intact");
	close(program->output);
	assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
	assert_int_equal(status, 0);
}

#define WORDS 2000 /* more than a page */

/* Attaches, and returns the thread that was borrowed. The library's message ends with a control sequence, which must
 * not reach a terminal. */
static pid_t attach(const struct program *program)
{
	static char words[WORDS * 5 + 1];
	struct attach_report report;
	struct error error = {.reason = ""};

	for (size_t i = 0; i < sizeof words - 1; i++)
		words[i] = "word "[i % 5];
	assert_int_equal(attach_load(program->pid, library, words, &report, &error), -1);
	assert_string_equal(error.reason,
	                    text_of("pid %d: called on thread %d, told %d words?", program->pid, report.thread, WORDS));
	return report.thread;
}

/* Why this library was not loaded, or does not stay. */
static const char *reason_of(pid_t pid, const char *path)
{
	static struct error error;
	struct attach_report report;

	error.reason[0] = '\0';
	assert_int_equal(attach_load(pid, path, "", &report, &error), -1);
	return error.reason;
}

static void assert_has(const char *reason, const char *wanted)
{
	if (!strstr(reason, wanted))
		fail_msg("'%s' is not in '%s'", wanted, reason);
}

static bool attaching_says(pid_t pid, const char *wanted)
{
	return strstr(reason_of(pid, library), wanted);
}

/* Expects a refusal that takes long, in a process of its own; this ends with 0. */
static pid_t start_refusal(pid_t pid, const char *wanted)
{
	pid_t child = fork();

	if (child == 0)
		_exit(attaching_says(pid, wanted) ? 0 : 1);
	return child;
}

/* --- traces that attaching may not leave --------------------------------------------------------------------------- */

static uint64_t hash(uint64_t so_far, const char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		so_far = (so_far ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
	return so_far;
}

/* A checksum of all its code and of its addresses, up to the ends of the pages. */
static uint64_t code_of(const struct program *program)
{
	static char page[4096];
	char line[400];
	unsigned long from, to;
	uint64_t so_far = 0;
	FILE *maps = open_proc(program, "maps");
	int memory = open(proc_path(program, "mem"), O_RDONLY | O_CLOEXEC);

	assert_true(memory >= 0);
	while (fgets(line, sizeof line, maps)) {
		if (!strstr(line, " r-xp ") || !strchr(line, '/') || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		so_far = hash(so_far, line, strlen(line));
		for (; from < to; from += sizeof page) {
			assert_int_equal(pread(memory, page, sizeof page, (off_t)from), sizeof page);
			so_far = hash(so_far, page, sizeof page);
		}
	}
	close(memory);
	fclose(maps);
	return so_far;
}

/* The number of its descriptor for the library's file; -1 if none. */
static int library_file(const struct program *program)
{
	char link[300];
	int number = -1;
	DIR *files = opendir(proc_path(program, "fd"));
	struct dirent *entry;

	assert_non_null(files);
	while ((entry = readdir(files))) {
		if (proc_read_link(link, sizeof link, "/proc/%d/fd/%s", (int)program->pid, entry->d_name) && strstr(link, "/memfd:nvtaskset"))
			number = atoi(entry->d_name);
	}
	closedir(files);
	return number;
}

static void wait_for_library(const struct program *program)
{
	while (library_file(program) < 0)
		pause_for_ms(1);
}

/* In these programs, only our memory is executable and belongs to no file. */
static bool has_our_memory(const struct program *program)
{
	char line[400];
	bool found = false;
	FILE *maps = open_proc(program, "maps");

	while (fgets(line, sizeof line, maps))
		found = found || strstr(line, "/memfd:nvtaskset") || (strstr(line, " r-xp ") && !strpbrk(line, "/["));
	fclose(maps);
	return found;
}

/* A thread whose attacher has died may need a second. */
static void assert_nothing_left(const struct program *program)
{
	for (int waited = 0; waited < 5000 && (library_file(program) >= 0 || has_our_memory(program)); waited++)
		pause_for_ms(1);
	assert_int_equal(library_file(program), -1);
	assert_false(has_our_memory(program));
}

/* Its code is what it was before, and it ends as it should. */
static void end_unchanged(const struct program *program, uint64_t code)
{
	assert_true(code_of(program) == code);
	assert_nothing_left(program);
	end(program);
}

/* --- an attacher that can be made to die ------------------------------------------------------------------------------ */

static void set_filter(struct sock_filter *code, size_t count)
{
	struct sock_fprog program = {.len = (unsigned short)count, .filter = code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Makes the kernel stop us for our tracer when we are about to seize a thread. `spared` looks to us as if it was
 * gone. */
static void tell_when_seizing(pid_t spared)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PTRACE_SEIZE, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)spared, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ESRCH),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	set_filter(code, COUNT_OF(code));
}

/* Attaches in a process of its own, which let_step and let_seize stop. It borrows any thread but `spared`. */
static pid_t start_attacher(pid_t target, pid_t spared)
{
	struct attach_report report;
	pid_t attacher = fork();

	if (attacher == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		tell_when_seizing(spared);
		attach_load(target, library, "", &report, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(attacher, NULL, 0), attacher);
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, attacher, NULL, (long)PTRACE_O_TRACESECCOMP), 0);
	return attacher;
}

/* Lets it run until it is about to seize a thread. */
static void let_seize(pid_t attacher)
{
	int status = 0;

	while (status >> 8 != (SIGTRAP | PTRACE_EVENT_SECCOMP << 8)) {
		assert_int_equal(ptrace(PTRACE_CONT, attacher, NULL, NULL), 0);
		assert_int_equal(waitpid(attacher, &status, 0), attacher);
		assert_true(WIFSTOPPED(status));
	}
}

/* Lets it make so many steps; each ends at the beginning or the end of a system call. False if it has ended before;
 * then it has been waited for. */
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

/* Lets it run to its end, untraced. */
static void let_finish(pid_t attacher)
{
	assert_int_equal(ptrace(PTRACE_DETACH, attacher, NULL, NULL), 0);
	assert_ends_well(attacher);
}

/* Attaches and is killed so many steps after the start, or after it was about to seize a thread. False if it has ended
 * before. */
static bool attach_and_die(const struct program *program, bool after_seizing, int steps)
{
	pid_t attacher = start_attacher(program->pid, 0);

	if (after_seizing)
		let_seize(attacher);
	bool died = let_step(attacher, steps);

	if (died) {
		kill(attacher, SIGKILL);
		waitpid(attacher, NULL, 0);
	}
	return died;
}

/* --- one thread, always in the same place ------------------------------------------------------------------------ */

static void attach_to_alone(const char *what)
{
	struct program program = start("alone", what);

	pause_for_ms(50);
	for (int i = 0; i < 3; i++)
		assert_int_equal(attach(&program), program.pid);
	end(&program);
}

/* Whether it ended as it should, but for a wait that was too long. */
static bool ends_in_time(const struct program *program)
{
	char line[200] = "";
	ssize_t length;
	int status;

	end_input(program);
	length = read(program->output, line, sizeof line - 1);
	close(program->output);
	assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
	if (length <= 0 || (strcmp(line, "intact\n") != 0 && strncmp(line, "lost: a wait started over", 25) != 0))
		fail_msg("it says '%s'", line);
	return strcmp(line, "intact\n") == 0;
}

/* Each call waits for 4 seconds, and the program notices if a wait starts again. */
static bool waits_go_on(void)
{
	bool all_do = true;
	static const char *const waits[] = {"nanosleep", "poll", "select", "futex"};
	struct program programs[4], abandoned[4];

	for (int i = 0; i < 4; i++) {
		programs[i] = start("alone", waits[i]);
		abandoned[i] = start("alone", waits[i]);
	}
	pause_for_ms(1500);
	/* More than once: the second time, the rest of the wait is interrupted. */
	for (int i = 0; i < 12; i++)
		attach(&programs[i % 4]);
	/* The same if the attacher dies while the thread works for it; the next attacher sends it back at once. */
	for (int i = 0; i < 4; i++) {
		attach_and_die(&abandoned[i], true, 180 + 50 * i);
		attach(&abandoned[i]);
	}
	for (int i = 0; i < 4; i++) {
		all_do &= ends_in_time(&programs[i]);
		all_do &= ends_in_time(&abandoned[i]);
	}
	return all_do;
}

/* On a machine that has no time for a program, its wait is long, too; one that starts again is so in each try. */
TEST(timed_waits)
{
	int tries = 1;

	while (!waits_go_on())
		assert_int_not_equal(tries++, 5);
}

TEST(waits)
{
	attach_to_alone("read");
	attach_to_alone("epoll");
	attach_to_alone("wait");
}

TEST(running_thread)
{
	attach_to_alone("spin");
}

TEST(signal_handler)
{
	struct program program = start("alone", "handler");

	wait_until(&program, HANDLES_SIGUSR1);
	kill(program.pid, SIGUSR1);
	wait_until(&program, ASLEEP);
	for (int i = 0; i < 3; i++)
		attach(&program);
	end(&program);
}

/* A thread that holds, or may hold, a lock that loading needs is not borrowed. */
TEST(in_the_middle)
{
	const char *reason = "none of its threads could be borrowed";
	struct program in_libc = start("alone", "handler-in-libc"), constructing = start("alone", "construct"),
	               loading = start("alone", "load");
	struct attach_report report;

	wait_until(&in_libc, ASLEEP);
	wait_until(&constructing, ASLEEP);
	pid_t one = start_refusal(in_libc.pid, reason), other = start_refusal(constructing.pid, reason);

	/* The thread may run its own code for a moment. */
	attach_load(loading.pid, library, "", &report, NULL);
	assert_ends_well(one);
	assert_ends_well(other);
	end(&in_libc);
	end(&constructing);
	end(&loading);
}

static void attach_and_signal(const char *what, int signal)
{
	struct program program = start("alone", what);

	wait_until(&program, ASLEEP);
	attach(&program);
	kill(program.pid, signal);
	end(&program);
}

TEST(waits_for_signals)
{
	attach_and_signal("pause", SIGUSR1);
	attach_and_signal("sigsuspend", SIGUSR2);
	attach_and_signal("sigwait", SIGUSR2);
}

static bool send_number(pid_t receiver, int number)
{
	return sigqueue(receiver, SIGRTMIN + 1, (union sigval){.sival_int = number}) == 0;
}

/* Signals with the numbers 1, 2, … come every now and then, also while a thread is seized or released. */
TEST(no_signal_is_lost)
{
	struct program program = start("alone", "signals");

	wait_until(&program, HANDLES_ONE_WITH_NUMBER);
	pid_t sender = fork();

	if (sender == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int number = 1;; usleep(20))
			number += send_number(program.pid, number);
	}
	for (int i = 0; i < 2 * times(); i++)
		attach(&program);
	end_child(sender);
	end(&program);
}

/* A signal that comes after the thread was seized and before it was told to stop: the signal stops it. */
TEST(signal_before_the_stop)
{
	struct program program = start("alone", "signals");

	wait_until(&program, HANDLES_ONE_WITH_NUMBER);
	pid_t attacher = start_attacher(program.pid, 0);
	const char *held = text_of("TracerPid:\t%d\n", (int)attacher);

	let_seize(attacher);
	while (!has_status(&program, held))
		assert_true(let_step(attacher, 1));
	assert_true(send_number(program.pid, 1));
	wait_until(&program, STOPPED_BY_TRACER);
	let_finish(attacher);
	/* If the first signal was lost, the program expects another number. */
	assert_true(send_number(program.pid, 2));
	end(&program);
}

/* The thread sleeps most of the time; otherwise it runs its own code. */
static void attach_to_small(const char *stack)
{
	struct program program = start("small", stack);
	uint64_t code = code_of(&program);

	for (int i = 0; i < times(); i++)
		assert_int_equal(attach(&program), program.pid);
	end_unchanged(&program, code);
}

TEST(small_stacks)
{
	attach_to_small("context 2048");
	attach_to_small("handler 4096");
	attach_to_small("handler 8192");
}

static void skip_unless_built(const char *name, const char *reason)
{
	if (access(text_of("%s/%s", directory, name), X_OK) < 0)
		skip_because(reason);
}

TEST(goroutines)
{
	skip_unless_built("goroutines", "needs go");
	struct program program = start("goroutines", "");
	uint64_t code = code_of(&program);
	bool was_first = false;

	/* Other threads than the first may sleep in the runtime. */
	for (int i = 0; i < times() || !was_first; i++)
		was_first = attach(&program) == program.pid || was_first;
	end_unchanged(&program, code);
}

/* With such a low limit the library is loaded, or the error contains this text. The program lives on. */
static void attach_within(enum __rlimit_resource resource, rlim_t limit, const char *reason)
{
	struct program program = start("alone", "read");
	struct rlimit limits;
	uint64_t code = code_of(&program);

	wait_until(&program, ASLEEP);
	assert_int_equal(prlimit(program.pid, resource, NULL, &limits), 0);
	limits.rlim_cur = limit;
	assert_int_equal(prlimit(program.pid, resource, &limits, NULL), 0);
	const char *said = reason_of(program.pid, library), *start = text_of("pid %d: ", (int)program.pid);

	assert_memory_equal(said, start, strlen(start));
	assert_has(said, reason);
	end_unchanged(&program, code);
}

TEST(limits)
{
	const char *loaded = "called on thread", *memory = "of memory for us: Cannot allocate memory: see its limits";

	attach_within(RLIMIT_FSIZE, 0, "may write files of 0 bytes at most (RLIMIT_FSIZE)");
	attach_within(RLIMIT_FSIZE, 4096, "--fsize=unlimited'");
	attach_within(RLIMIT_FSIZE, 1 << 20, loaded);
	attach_within(RLIMIT_NOFILE, 0, "no file in memory for the library: Too many open files");
	attach_within(RLIMIT_NOFILE, 3, "no file in memory for the library: Too many open files");
	attach_within(RLIMIT_NOFILE, 4, ": cannot open shared object file: Too many open files");
	attach_within(RLIMIT_AS, 4096, memory);
	attach_within(RLIMIT_DATA, 4096, memory);
	attach_within(RLIMIT_MEMLOCK, 0, loaded);
	attach_within(RLIMIT_STACK, 4096, loaded);
	attach_within(RLIMIT_NPROC, 0, loaded);
	attach_within(RLIMIT_SIGPENDING, 0, loaded);
}

/* The number of the system call that this thread is in; -1 if it runs. */
static long call_of(const struct program *program, pid_t thread)
{
	FILE *file = open_proc(program, text_of("task/%d/syscall", (int)thread));
	long call = -1;

	if (fscanf(file, "%ld", &call) != 1)
		call = -1;
	fclose(file);
	return call;
}

/* Threads whose wait for events would end early if the attacher died are not borrowed while others wait for something
 * else. */
TEST(calls_that_break_off_come_last)
{
	struct program program = start("busy", "epoll=8");

	for (int i = 0; i < 3 * times(); i++) {
		pid_t thread = attach(&program);

		assert_int_not_equal(call_of(&program, thread), SYS_epoll_wait);
	}
	end(&program);
}

static pid_t second_thread(const struct program *program)
{
	pid_t found = 0;
	DIR *threads = opendir(proc_path(program, "task"));
	struct dirent *entry;

	assert_non_null(threads);
	while ((entry = readdir(threads))) {
		pid_t thread = atoi(entry->d_name);

		if (thread > 0 && thread != program->pid)
			found = thread;
	}
	closedir(threads);
	return found;
}

static void wait_until_in(const struct program *program, pid_t thread, long call)
{
	while (call_of(program, thread) != call)
		pause_for_ms(1);
}

/* The first thread has no filter. The filter of the better choice ends the program. */
TEST(filter_of_a_single_thread)
{
	struct program program = start("beside", "filtered");

	wait_until_in(&program, program.pid, SYS_epoll_wait);
	wait_until_in(&program, second_thread(&program), SYS_read);
	for (int i = 0; i < 3; i++)
		attach(&program);
	end(&program);
}

TEST(first_thread_has_ended)
{
	struct program program = start("beside", "ended");
	pid_t thread = second_thread(&program);

	wait_until_in(&program, thread, SYS_read);
	for (int i = 0; i < 3; i++)
		assert_int_equal(attach(&program), thread);
	end(&program);
}

/* --- deaths ------------------------------------------------------------------------------------------------------------- */

/* The attacher is killed after 1 step, 1 + stride, …, until it reaches its end. Before it seizes a thread, it only
 * reads, so larger steps are enough. */
static void die_everywhere(const char *name, const char *arguments)
{
	struct program program = start(name, arguments);

	for (int steps = 1; attach_and_die(&program, false, steps);)
		steps += 10 * stride();
	for (int steps = 1; attach_and_die(&program, true, steps);)
		steps += stride();
	/* The next attacher succeeds. */
	attach(&program);
	assert_nothing_left(&program);
	end(&program);
}

/* Lets the slow library go on, wherever it waits. Input that it does not read is read by the program, which ignores
 * it. */
static void feed_for_ms(const struct program *program, long milliseconds)
{
	for (long past = 0; past < milliseconds; past += 50) {
		assert_int_equal(write(program->input, "1", 1), 1);
		pause_for_ms(50);
	}
}

/* The library finishes while its attacher does not run: the thread waits for a second and then goes back. A second try
 * gets the library's reason. */
TEST(attacher_that_is_late)
{
	struct program program = start("busy", "sleep=1");
	pid_t attacher = fork();
	int status;

	if (attacher == 0)
		_exit(!strstr(reason_of(program.pid, slow_library), "nvtaskset_attached"));
	wait_for_library(&program);
	/* Moves to descriptor numbers that no program relies on. */
	pause_for_ms(50);
	assert_true(library_file(&program) >= 48);
	kill(attacher, SIGSTOP);
	feed_for_ms(&program, 1500);
	kill(attacher, SIGCONT);
	while (waitpid(attacher, &status, WNOHANG) == 0)
		feed_for_ms(&program, 50);
	assert_int_equal(status, 0);
	end(&program);
}

TEST(death_of_the_attacher)
{
	die_everywhere("alone", "read");
	die_everywhere("alone", "spin");
	/* Without the system calls that an attacher's death can disturb: see attach.h. */
	die_everywhere("busy", "allocate=3 load=1 sleep=3 hold=1 poll=2 read=2 wait=3 signal=1");
}

/* A signal that came while the attacher died is delivered on the way back, when the thread has its own stack again. */
TEST(signal_on_the_way_back)
{
	struct program program = start("alone", "pause");
	struct attach_report report;

	wait_until(&program, HANDLES_SIGUSR1);
	wait_until(&program, ASLEEP);
	pid_t attacher = fork();

	if (attacher == 0) {
		attach_load(program.pid, slow_library, "", &report, NULL);
		_exit(0);
	}
	wait_for_library(&program);
	kill(attacher, SIGKILL);
	waitpid(attacher, NULL, 0);
	kill(program.pid, SIGUSR1);
	assert_int_equal(write(program.input, "1", 1), 1);
	attach(&program);
	assert_nothing_left(&program);
	/* The first signal may have come just before the call that it is to interrupt. */
	kill(program.pid, SIGUSR1);
	end(&program);
}

/* From now on, our children are in this process's PID namespace. */
static void have_children_beside(pid_t pid)
{
	int namespace = open(proc_path(&(const struct program){.pid = pid}, "ns/pid"), O_RDONLY | O_CLOEXEC);

	assert_int_equal(setns(namespace, CLONE_NEWPID), 0);
	close(namespace);
}

/* The attacher is killed when this thread has just begun its way back. We keep the thread at this place: it is stopped
 * with its process, and we trace it when the process goes on. */
static void keep_on_its_way(const struct program *program, pid_t thread, pid_t attacher)
{
	let_seize(attacher);
	while (call_of(program, thread) != SYS_mmap)
		assert_true(let_step(attacher, 1));
	kill(program->pid, SIGSTOP);
	wait_until(program, STOPPED);
	end_child(attacher);
	assert_int_equal(ptrace(PTRACE_SEIZE, thread, NULL, NULL), 0);
	assert_int_equal(waitpid(thread, NULL, __WALL), thread);
	kill(program->pid, SIGCONT);
	wait_until(program, ASLEEP);
}

/* An attacher that knows the thread by another id does not think that it has ended, nor that its way back is no longer
 * needed. */
TEST(death_in_another_namespace)
{
	if (unshare(CLONE_NEWPID) < 0)
		skip_because("namespaces are not permitted");
	struct program program = start("busy", "sleep=1");
	pid_t thread = second_thread(&program);

	have_children_beside(getpid());
	keep_on_its_way(&program, thread, start_attacher(program.pid, program.pid));
	have_children_beside(program.pid);
	pid_t other = fork();

	if (other == 0) {
		/* With its /proc, to the namespace's first process. */
		bool sees_it = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		               mount("proc", "/proc", "proc", 0, NULL) == 0;

		_exit(sees_it && attaching_says(1, "called on thread") ? 0 : 1);
	}
	have_children_beside(getpid());
	assert_ends_well(other);
	assert_int_equal(ptrace(PTRACE_DETACH, thread, NULL, NULL), 0);
	assert_nothing_left(&program);
	end(&program);
}

TEST(death_of_the_target)
{
	bool died = true;

	for (int steps = 1; died; steps += 7 * stride()) {
		struct program program = start("alone", "read");
		pid_t attacher = start_attacher(program.pid, 0);

		died = let_step(attacher, steps);
		kill(program.pid, SIGKILL);
		if (died)
			let_finish(attacher);
		assert_int_equal(waitpid(program.pid, NULL, 0), program.pid);
		close(program.input);
		close(program.output);
	}
}

/* --- refusals ------------------------------------------------------------------------------------------------------------ */

TEST(no_process)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_has(reason_of(child, library), "it has ended");
}

TEST(stopped)
{
	struct program program = start("alone", "read");

	kill(program.pid, SIGSTOP);
	waitpid(program.pid, NULL, WUNTRACED);
	assert_has(reason_of(program.pid, library), "is stopped: continue it first");
	kill(program.pid, SIGCONT);
	end(&program);
}

/* Programs that cannot load our library. */
static void refuse_program(const char *name, const char *reason)
{
	struct program program = start(name, "read");

	assert_has(reason_of(program.pid, library), reason);
	end(&program);
}

TEST(static_program)
{
	refuse_program("alone-static", "it is linked statically");
}

/* Not where the kernel was built without them. */
static void skip_unless_executed(const char *name, const char *reason)
{
	const char *path = text_of("%s/%s", directory, name);
	char failed = 0;
	int news[2];

	assert_int_equal(pipe2(news, O_CLOEXEC), 0);
	pid_t child = fork();

	if (child == 0) {
		execl(path, path, (char *)NULL);
		failed = errno == ENOEXEC;
		_exit(write(news[1], &failed, 1) != 1);
	}
	close(news[1]);
	if (read(news[0], &failed, 1) < 0)
		failed = 0;
	close(news[0]);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (failed)
		skip_because(reason);
}

TEST(32_bits)
{
	skip_unless_built("alone32", "this compiler makes no 32-bit programs");
	skip_unless_executed("alone32", "this kernel executes no 32-bit programs");
	refuse_program("alone32", "is a 32-bit program");
}

TEST(other_library)
{
	skip_unless_built("plain-musl", "needs musl-gcc");
	refuse_program("plain-musl", "its C library is not glibc");
}

/* A program under the attacher's own filter can be attached to. If it has another filter, the kernel may kill it. */
TEST(other_filters)
{
	struct sock_filter all_through = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	pid_t child = fork();

	if (child == 0) {
		set_filter(&all_through, 1);
		struct program same = start("alone", "read"), other = start("busy", "filter=1 sleep=1");
		bool right = attaching_says(same.pid, "called on thread") && attaching_says(other.pid, "filtered (seccomp) by other filters");

		kill(same.pid, SIGKILL);
		kill(other.pid, SIGKILL);
		_exit(!right);
	}
	assert_ends_well(child);
}

/* In the test's mount namespace, the process seems to run on a kernel before 5.9. */
static bool hide_number_of_filters(pid_t pid)
{
	char path[] = "/tmp/nvtaskset-status-XXXXXX", line[4096];
	const char *hidden = text_of("/proc/%d/status", (int)pid);
	FILE *status = fopen(hidden, "re"), *copy = fdopen(mkstemp(path), "w");

	while (fgets(line, sizeof line, status)) {
		if (strncmp(line, "Seccomp_filters:", strlen("Seccomp_filters:")) != 0)
			fputs(line, copy);
	}
	fclose(status);
	fclose(copy);
	bool is_hidden = mount(path, hidden, NULL, MS_BIND, NULL) == 0;

	unlink(path);
	return is_hidden;
}

TEST(filters_of_unknown_number)
{
	struct sock_filter all_through = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip_because("namespaces are not permitted");
	pid_t child = fork();

	if (child == 0) {
		set_filter(&all_through, 1);
		struct program other = start("busy", "filter=1 sleep=1");
		bool right = hide_number_of_filters(getpid()) && hide_number_of_filters(other.pid) &&
		             attaching_says(other.pid, "filtered (seccomp) by other filters");

		kill(other.pid, SIGKILL);
		_exit(!right);
	}
	assert_ends_well(child);
}

TEST(no_library)
{
	struct program program = start("alone", "read");

	assert_string_equal(reason_of(program.pid, "/nonexistent"), "/nonexistent: No such file or directory");
	/* The dynamic linker's own words. */
	assert_has(reason_of(program.pid, "/proc/self/exe"), "cannot dynamically load");
	attach(&program);
	end(&program);
}

int main(void)
{
#ifndef __x86_64__
	puts("1..0 # SKIP processes can be attached to on x86-64 only, so far");
	return EXIT_SUCCESS;
#endif
	strcpy(directory, in_build("tests/attach"));
	strcpy(library, in_build("tests/attach/library.so"));
	strcpy(slow_library, in_build("tests/attach/slow.so"));
	signal(SIGPIPE, SIG_IGN);
	return run_tests_in(NULL, NULL, NULL, NULL);
}
