/*
 * For tests of programs that were given something in time: what became of it, work that takes time, and children that share a
 * GPU. All of this is about this process and its first GPU, and fails the running cmocka test if it fails.
 */
#ifndef TESTS_TIMED_H
#define TESTS_TIMED_H

#include "child.h"
#include "first_gpu.h"
#include "state/segment/segment.h"

/* How long a test waits for what must happen: only a fault takes as long, whatever the machine does. */
#define PATIENCE_S 60

void timed_sleep_ms(long ms);
double timed_now_s(void);

/* The head of a loop that goes on until it is so. It fails the test where that lasts longer; a look at the time comes
 * before each look at the condition, so that a pause of this process is no reason. */
#define timed_until(condition)                                                                     \
	for (struct timed_patience patience = timed_patience(); !(condition); timed_go_on(&patience, #condition))
#define timed_wait_until(condition) timed_until(condition) timed_sleep_ms(1)
struct timed_patience {
	double end_s, looked_at_s;
};
struct timed_patience timed_patience(void);
void timed_go_on(struct timed_patience *patience, const char *condition);

pid_t timed_thread(void); /* ours; 0 before it has its name */
bool timed_has_thread(void);
bool timed_has_thread_in(pid_t pid);

struct segment_time timed_look(void);
void timed_wait_for_state(enum segment_time_state state);

/* An edit; and the same, until it is in force: the program's next calls let its channels be found. */
void timed_give(const struct segment_revision *wanted);
void timed_give_and_wait(const struct segment_revision *wanted);

/* An edit of the process's group, as the API's: without a look at the members. */
void timed_give_to_group(struct segment_quota quota);

/* The same for a client of MPS, whose launches are held back then. */
void timed_give_to_client(const struct segment_revision *wanted);

/* Opens it as `gpu`. The test is left out where kernels are not counted; and where they may use any memory. */
void timed_open_any_gpu(void);
void timed_open_gpu(void);
bool timed_uses_any_memory(void);

/* Kernels of 1 to 2 ms each; and waits for them. */
void timed_launch(unsigned int kernels);
void timed_work(unsigned int kernels);
void timed_launch_into(CUstream stream, unsigned int kernels, uint64_t cycles); /* for so long each */

/* In a child: its parent's test is skipped, once it asks. */
_Noreturn void timed_leave_out(const char *reason);
void timed_skip_if_skipped(const struct child_end *end);

/* A child that runs this; and passes. */
struct child_end timed_run(void (*body)(void));
void timed_run_and_pass(void (*body)(void));
void timed_run_on_simulator(void (*body)(void));

/* Programs started from here on share a simulated GPU: the file `path`, a pattern for mkstemp. */
void timed_share_gpu(char *path);

/* A case of tests/cases.h that is a child's work, run by one of these. */
#define TIMED_WITH TEST_WITH_BY
#define TIMED_BY TEST_BY
#define TIMED(name) TIMED_BY(timed_run_and_pass, name)

#endif
