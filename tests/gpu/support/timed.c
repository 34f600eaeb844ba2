#include "timed.h"

#include "../../cases.h"
#include "base/proc.h"
#include "state/segment/edit.h"

#include <dirent.h>

#define SKIP "SKIP: "
#define CYCLES 3000000 /* 1 to 2 ms */

/* --- looking -------------------------------------------------------------------------------------------------------- */

void timed_sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

double timed_now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct timed_patience timed_patience(void)
{
	return (struct timed_patience){.end_s = timed_now_s() + PATIENCE_S};
}

void timed_go_on(struct timed_patience *patience, const char *condition)
{
	if (patience->looked_at_s >= patience->end_s)
		fail_msg("it never came true: %s", condition);
	patience->looked_at_s = timed_now_s();
}

static pid_t thread_of(pid_t pid)
{
	DIR *tasks = opendir(text_of("/proc/%d/task", (int)pid));
	pid_t found = 0;
	char name[32];

	for (struct dirent *task = readdir(tasks); task; task = readdir(tasks)) {
		proc_read_text(name, sizeof name, "/proc/%d/task/%s/comm", (int)pid, task->d_name);
		if (strcmp(name, "nvtaskset\n") == 0)
			found = atoi(task->d_name);
	}
	closedir(tasks);
	return found;
}

pid_t timed_thread(void)
{
	return thread_of(getpid());
}

bool timed_has_thread_in(pid_t pid)
{
	return thread_of(pid) != 0;
}

bool timed_has_thread(void)
{
	return timed_thread() != 0;
}

struct segment_time timed_look(void)
{
	struct segment segment = gpu_own_segment();
	struct segment_time time;

	segment_read_time(&segment, &time);
	segment_close(&segment);
	return time;
}

void timed_wait_for_state(enum segment_time_state state)
{
	double end = timed_now_s() + PATIENCE_S;

	while (timed_look().state != state && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_string_equal(segment_time_text(timed_look().state), segment_time_text(state));
}

void timed_give(const struct segment_revision *wanted)
{
	struct segment segment = gpu_own_segment();
	struct error error;

	assert_done(segment_change(&segment, wanted, NULL, &error));
	segment_close(&segment);
}

void timed_give_to_group(struct segment_quota quota)
{
	struct segment segment = gpu_own_segment();
	struct error error;

	assert_done(group_change(&segment.group, &(struct segment_revision){.quota = quota}, &error));
	segment_close(&segment);
}

void timed_give_and_wait(const struct segment_revision *wanted)
{
	timed_give(wanted);
	timed_until (timed_look().state > SEGMENT_TIME_PENDING) {
		gpu_launch_empty(&gpu);
		timed_sleep_ms(1);
	}
	assert_string_equal(segment_time_text(timed_look().state), segment_time_text(SEGMENT_TIME_IN_FORCE));
}

void timed_give_to_client(const struct segment_revision *wanted)
{
	timed_give(wanted);
	gpu_launch_empty(&gpu);
	timed_wait_for_state(SEGMENT_TIME_HELD);
}

/* --- work ----------------------------------------------------------------------------------------------------------- */

void timed_launch_into(CUstream stream, unsigned int kernels, uint64_t cycles)
{
	void *parameters[] = {&gpu.output, &cycles};

	for (unsigned int i = 0; i < kernels; i++)
		gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
}

void timed_launch(unsigned int kernels)
{
	timed_launch_into(NULL, kernels, CYCLES);
}

void timed_work(unsigned int kernels)
{
	timed_launch(kernels);
	gpu_check(cuCtxSynchronize());
}

void timed_leave_out(const char *reason)
{
	fprintf(stderr, SKIP "%s", reason);
	_exit(0);
}

void timed_open_any_gpu(void)
{
	gpu_set_up(NULL);
	gpu_launch_empty(&gpu);
	gpu_check(cuCtxSynchronize());
	if (gpu_kernels(&gpu).gaps & 1 << COUNTS_NO_SLOTS)
		timed_leave_out("this GPU's launch descriptors have no slot that counts");
}

bool timed_uses_any_memory(void)
{
	int value = 0;

	gpu_check(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, gpu.device));
	return value;
}

void timed_open_gpu(void)
{
	timed_open_any_gpu();
	if (timed_uses_any_memory())
		timed_leave_out("kernels may use any memory of the program here");
}

/* --- children --------------------------------------------------------------------------------------------------------- */

void timed_skip_if_skipped(const struct child_end *end)
{
	const char *reason = strstr(end->errors, SKIP);

	if (reason)
		gpu_skip(reason + strlen(SKIP));
}

struct child_end timed_run(void (*body)(void))
{
	struct child_end end = child_run(body);

	timed_skip_if_skipped(&end);
	return end;
}

void timed_run_and_pass(void (*body)(void))
{
	struct child_end end = timed_run(body);

	child_assert_passed(&end);
}

void timed_run_on_simulator(void (*body)(void))
{
	gpu_load_driver();
	if (!gpu_is_simulated())
		gpu_skip("only a simulated driver fails on request");
	timed_run_and_pass(body);
}

void timed_share_gpu(char *path)
{
	int file = mkstemp(path);

	assert_true(file >= 0);
	close(file);
	setenv("SIM_GPU", path, 1);
}
