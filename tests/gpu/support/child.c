#include "child.h"

#include "../../cases.h"
#include "gpu.h"

#include <limits.h>
#include <sys/resource.h>

#ifdef __x86_64__
#define KNOWN_MACHINE 1
#else
#define KNOWN_MACHINE 0
#endif

/* A destructor of ours that waits for what never comes sleeps thousands of times. */
#define PAUSES_MOST 2000

static long *pauses_before_exit; /* of this child */

static void note_exit(void)
{
	struct rusage own, of_children;

	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &of_children);
	*pauses_before_exit = own.ru_nvcsw + of_children.ru_nvcsw;
}

/* A client of MPS that ends with work in flight may take the next client with it (hardware.md, "Holding back"). */
static void wait_for_work(void)
{
	CUcontext context = NULL;

	if (cuCtxGetCurrent && !gpu_is_simulated() && cuCtxGetCurrent(&context) == CUDA_SUCCESS && context)
		cuCtxSynchronize();
}

static _Noreturn void run_child(const struct child *self, void (*body)(void))
{
	pauses_before_exit = self->pauses;
	dup2(self->errors, STDERR_FILENO);
	/* Otherwise cmocka would go on to the next test in the child, too. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	atexit(note_exit);
	body();
	wait_for_work();
	if (SANITIZED) /* it would look for leaks of the test's */
		_exit(0);
	exit(0);
}

struct child child_start(void (*body)(void))
{
	pid_t parent = getpid();
	struct child child;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	child.pauses = mmap(NULL, sizeof *child.pauses, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(child.pauses != MAP_FAILED);
	*child.pauses = LONG_MAX;
	fflush(NULL);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		/* It ends with its parent, also where that has ended already: else that one's parent would wait for the end of what it says. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		child.errors = ends[1];
		run_child(&child, body);
	}
	close(ends[1]);
	child.errors = ends[0];
	return child;
}

struct child_end child_wait(struct child *child)
{
	struct child_end end = {.status = 0};
	struct rusage usage;
	size_t length = 0;
	ssize_t got;

	while (length < sizeof end.errors - 1 &&
	       (got = read(child->errors, end.errors + length, sizeof end.errors - 1 - length)) > 0)
		length += (size_t)got;
	close(child->errors);
	end.errors[length] = '\0';
	assert_int_equal(wait4(child->pid, &end.status, 0, &usage), child->pid);
	end.pauses = usage.ru_nvcsw - *child->pauses;
	munmap(child->pauses, sizeof *child->pauses);
	return end;
}

struct child_end child_run(void (*body)(void))
{
	struct child child = child_start(body);

	return child_wait(&child);
}

void child_assert_passed(const struct child_end *end)
{
	if (!WIFEXITED(end->status) || WEXITSTATUS(end->status) != 0)
		fail_msg("the child ended with status %#x: %s", (unsigned int)end->status, end->errors);
	if (!SANITIZED && end->pauses > PAUSES_MOST)
		fail_msg("the child's exit has slept %ld times", end->pauses);
}

void child_passes(void (*body)(void))
{
	struct child_end end = child_run(body);

	child_assert_passed(&end);
}

void child_run_to_attach(void (*body)(void))
{
	if (SANITIZED)
		gpu_skip("not with a sanitizer: it stands in the loader's way");
	if (!KNOWN_MACHINE)
		gpu_skip("processes can be attached to on x86-64 only, so far");
	child_passes(body);
}
