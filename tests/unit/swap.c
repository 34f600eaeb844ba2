/*
 * A word that is replaced only while a guard is unchanged (src/driver/pushbuffer/swap.h): a child is stopped in front
 * of each instruction between the looks and the store.
 *
 * sanitizers: address
 */
#include "../cases.h"
#include "driver/pushbuffer/swap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ptrace.h>
#include <sys/user.h>

enum { OLD = 5, NEW = 6, NUMBER = 7 };

static struct shared {
	volatile uint64_t life, guard;
	volatile uint32_t word;
	volatile int outcome;
} *shared;

static enum swap_outcome swap_once(void)
{
	return swap_while(&(const struct swap){.life = &shared->life, .alive = NUMBER, .guard = &shared->guard,
	                                       .unchanged = NUMBER, .word = &shared->word, .old = OLD, .new = NEW});
}

static void begin(void)
{
	if (!shared)
		shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	*shared = (struct shared){.life = NUMBER, .guard = NUMBER, .word = OLD, .outcome = -1};
	if (!swap_prepare())
		skip_because("needs restartable sequences");
}

/* The child of a fork has the area of the thread at the same address. */
static uintptr_t sequence_at(void)
{
	const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");

	return (uintptr_t)__builtin_thread_pointer() + (uintptr_t)*offset + 8;
}

/* --- what it does ----------------------------------------------------------------------------------------------- */

TEST(a_word_is_replaced_while_all_is_as_it_was)
{
	begin();
	assert_int_equal(swap_once(), SWAP_DONE);
	assert_int_equal(*(uint64_t *)sequence_at(), 0); /* the code of the sequence may be unloaded */
	assert_int_equal(shared->word, NEW);
	assert_int_equal(swap_once(), SWAP_OTHER_WORD);
	shared->word = OLD;
	shared->guard = 0;
	assert_int_equal(swap_once(), SWAP_LOOK_DIFFERS);
	shared->guard = NUMBER;
	shared->life = 0;
	assert_int_equal(swap_once(), SWAP_LOOK_DIFFERS);
	assert_int_equal(shared->word, OLD);
}

TEST(neither_guard_nor_word_is_touched_after_the_life)
{
	begin();
	const struct swap swap = {.life = &shared->life, .alive = 0, .guard = NULL, .word = NULL};

	assert_int_equal(swap_while(&swap), SWAP_LOOK_DIFFERS);
}

/* In a program executed anew. */
static void __attribute__((constructor)) answer(void)
{
	if (getenv("ANSWER"))
		_exit(swap_prepare());
}

TEST(a_c_library_without_sequences)
{
	int status;
	pid_t asked = fork();

	if (asked == 0)
		execle("/proc/self/exe", "swap", NULL,
		       (char *[]){"ANSWER=1", "GLIBC_TUNABLES=glibc.pthread.rseq=0", NULL});
	assert_int_equal(waitpid(asked, &status, 0), asked);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- stopped between look and store ----------------------------------------------------------------------------- */

#ifdef __x86_64__

#define INSTRUCTIONS_MAX 16
#define BREAKPOINT 0xcc

static pid_t child;

static uint64_t peek(uintptr_t at)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, child, at, NULL);
}

static void poke(uintptr_t at, uint64_t value)
{
	assert_int_equal(ptrace(PTRACE_POKEDATA, child, at, value), 0);
}

static void wait_for_stop(int signal)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(WSTOPSIG(status), signal);
}

static uintptr_t instruction(void)
{
	struct user_regs_struct registers;

	assert_int_equal(ptrace(PTRACE_GETREGS, child, NULL, &registers), 0);
	return registers.rip;
}

static void start_child(void)
{
	child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		shared->outcome = (int)swap_once();
		_exit(0);
	}
	wait_for_stop(SIGSTOP);
}

/* Runs the child up to an instruction, and stops it in front. */
static void run_to(uintptr_t at)
{
	struct user_regs_struct registers;
	uint64_t text = peek(at);

	poke(at, (text & ~UINT64_C(0xff)) | BREAKPOINT);
	assert_int_equal(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
	wait_for_stop(SIGTRAP);
	poke(at, text);
	assert_int_equal(ptrace(PTRACE_GETREGS, child, NULL, &registers), 0);
	registers.rip = at;
	assert_int_equal(ptrace(PTRACE_SETREGS, child, NULL, &registers), 0);
}

static void step(void)
{
	assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
	wait_for_stop(SIGTRAP);
}

static void let_end(void)
{
	int status;

	assert_int_equal(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* The instructions between the looks and the store, and the instruction behind the store. A single step in a sequence
 * makes the kernel begin anew: so the sequence is hidden from the kernel. */
static unsigned int find_instructions(uintptr_t *found)
{
	uintptr_t begin, end;
	unsigned int count = 0;

	start_child();
	run_to((uintptr_t)swap_while);
	while (peek(sequence_at()) == 0)
		step();
	begin = peek(peek(sequence_at()) + 8);
	end = begin + peek(peek(sequence_at()) + 16);
	poke(sequence_at(), 0);
	for (; instruction() != end; step()) {
		assert_in_range(instruction(), begin, end - 1);
		assert_true(count < INSTRUCTIONS_MAX - 1);
		found[count++] = instruction();
	}
	found[count++] = end;
	let_end();
	assert_int_equal(shared->outcome, SWAP_DONE);
	return count;
}

/* The last instruction is behind the store. */
static void change_at(const uintptr_t *instructions, unsigned int i, unsigned int count, volatile uint64_t *what)
{
	bool is_stored = i == count - 1;

	begin();
	start_child();
	run_to(instructions[i]);
	assert_int_equal(shared->word, is_stored ? NEW : OLD);
	if (what)
		*what = NUMBER + 1;
	let_end();
	assert_int_equal(shared->outcome, what && !is_stored ? SWAP_LOOK_DIFFERS : SWAP_DONE);
	assert_int_equal(shared->word, what && !is_stored ? OLD : NEW);
}

TEST(nothing_is_stored_after_a_change)
{
	uintptr_t instructions[INSTRUCTIONS_MAX];
	unsigned int count;

	begin();
	count = find_instructions(instructions);
	assert_in_range(count, 6, INSTRUCTIONS_MAX);
	for (unsigned int i = 0; i < count; i++) {
		ROW("instruction %u of %u", i, count);
		change_at(instructions, i, count, &shared->guard);
		change_at(instructions, i, count, &shared->life);
		change_at(instructions, i, count, NULL);
	}
}

#endif

/* --- ends ------------------------------------------------------------------------------------------------------- */

static _Atomic bool is_over;

/* Counts the word up while the life is even. */
static void *count_up(void *unused)
{
	while (!atomic_load(&is_over)) {
		uint32_t word = shared->word;

		swap_while(&(const struct swap){.life = &shared->life, .alive = shared->life & ~UINT64_C(1),
		                                .guard = &shared->guard, .unchanged = NUMBER,
		                                .word = &shared->word, .old = word, .new = word + 1});
	}
	return NULL;
}

/* Lives are even. */
TEST(nothing_is_stored_after_all_have_ended)
{
	pthread_t thread;

	begin();
	shared->life = 0;
	atomic_store(&is_over, false);
	thread = thread_start(count_up, NULL);
	for (unsigned int round = 0; round < 2000; round++) {
		uint32_t before = shared->word;

		while (shared->word == before)
			;
		shared->life++;
		swap_end_all();
		before = shared->word;
		for (unsigned int i = 0; i < 100; i++)
			assert_int_equal(shared->word, before);
		shared->life++;
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
}

RUN_TESTS(NULL, NULL)
