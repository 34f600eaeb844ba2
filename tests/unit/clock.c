/*
 * The clock in a program that replaces the C library's functions of time, as the program of this file does; in time namespaces;
 * and without the kernel's function.
 */
#include "../cases.h"
#include "base/clock.h"
#include "base/futex.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#define SECOND UINT64_C(1000000000)

#ifdef __aarch64__
#define NAME "__kernel_clock_gettime"
#else
#define NAME "__vdso_clock_gettime"
#endif

/* --- replaced functions --------------------------------------------------------------------------------------- */

static bool has_no_vdso;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	*now = (struct timespec){.tv_sec = 7};
	return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *pause, struct timespec *rest)
{
	return 0;
}

int nanosleep(const struct timespec *pause, struct timespec *rest)
{
	return 0;
}

int usleep(useconds_t microseconds)
{
	return 0;
}

unsigned long getauxval(unsigned long type)
{
	unsigned long (*next)(unsigned long) = (unsigned long (*)(unsigned long))dlsym(RTLD_NEXT, "getauxval");

	return has_no_vdso && type == AT_SYSINFO_EHDR ? 0 : next(type);
}

/* --- reading ---------------------------------------------------------------------------------------------------------- */

static uint64_t kernels_ns(clockid_t clock)
{
	struct timespec now;

	syscall(SYS_clock_gettime, clock, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void assert_is_kernels(void)
{
	uint64_t before = kernels_ns(CLOCK_MONOTONIC), now = process_clock_ns(), after = kernels_ns(CLOCK_MONOTONIC);

	assert_true(before <= now && now <= after);
}

TEST(replaced_functions)
{
	uint64_t before = kernels_ns(CLOCK_BOOTTIME) / 1000000;
	double now = clock_boot_ms();

	assert_true((double)before <= now && now <= (double)kernels_ns(CLOCK_BOOTTIME) / 1e6);
	assert_is_kernels();
}

TEST(its_begin_leaves_errno)
{
	errno = EDOM;
	with_limit(RLIMIT_NOFILE, 0, clock_begin());
	assert_int_equal(errno, EDOM);
}

TEST(replaced_pauses)
{
	static const long pauses_us[] = {20000, 1020000};

	for (size_t i = 0; i < COUNT_OF(pauses_us); i++) {
		uint64_t before = kernels_ns(CLOCK_MONOTONIC);

		errno = EDOM;
		clock_pause_us(pauses_us[i]);
		assert_int_equal(errno, EDOM);
		assert_true(kernels_ns(CLOCK_MONOTONIC) - before >= (uint64_t)pauses_us[i] * 1000);
	}
}

/* In a child that must not ask the kernel for a time. Returns how it ended. */
static int read_without_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = COUNT_OF(filter), .filter = filter};
	int status;
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
			_exit(2);
		for (int i = 0; i < 1000; i++)
			process_clock_ns();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

TEST(no_system_call)
{
	if (!vdso_function(NAME))
		skip_because("the kernel's function is not this one");
	assert_int_equal(read_without_calls(), 0);
}

static void be_without_vdso(void)
{
	has_no_vdso = true;
	clock_begin();
	assert_is_kernels();
	assert_int_equal(read_without_calls(), SIGSYS);
	_exit(0);
}

TEST(without_vdso)
{
	pid_t child = fork();

	if (child == 0)
		be_without_vdso();
	assert_ends_well(child);
}

/* --- namespaces ------------------------------------------------------------------------------------------------------- */

static void write_offset(const char *text)
{
	int file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	bool is_written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);

	close(file);
	if (!is_written)
		_exit(3);
}

/* The clock goes on from `before`, and a sleep ends in time. */
static _Noreturn void be_elsewhere(uint64_t before)
{
	_Atomic uint32_t word = 0;

	clock_begin();
	uint64_t now = process_clock_ns(), until = now + 20000000;

	alarm(60);
	futex_wait_until(&word, 0, until);
	_exit(now < before || now - before > 3600 * SECOND || process_clock_ns() < until);
}

/* A process that makes a namespace for its children keeps its own clock. */
static _Noreturn void make_elsewhere(const char *offset)
{
	if (unshare(CLONE_NEWTIME) < 0)
		_exit(2);
	write_offset(offset);
	clock_begin();
	uint64_t before = process_clock_ns();
	pid_t child = fork();
	int status = 1;

	if (child == 0)
		be_elsewhere(before);
	waitpid(child, &status, 0);
	_exit(status == 0 && process_clock_ns() - before < 3600 * SECOND ? 0 : 1);
}

TEST(time_namespaces)
{
	if (geteuid() != 0)
		skip_because("needs root");
	for (unsigned int i = 0; i < 2; i++) {
		pid_t child = fork();
		int status;

		if (child == 0)
			make_elsewhere(i == 0 ? "monotonic 864000 7\n" : "monotonic -1 0\n");
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
			skip_because("needs a kernel with time namespaces");
		assert_int_equal(status, 0);
	}
}

/* --- the reader of the kernel's image --------------------------------------------------------------------------------- */

#define ROOM 65536

static size_t copy_image(unsigned char *bytes)
{
	const unsigned char *image = (const unsigned char *)getauxval(AT_SYSINFO_EHDR);
	size_t size = 0;

	memset(bytes, 0, ROOM);
	if (image && vdso_function(NAME))
		for (size = 4096; size < ROOM && vdso_find(image, size, NAME) != vdso_function(NAME); size += 4096)
			;
	for (size_t i = 0; i < size; i++)
		bytes[i] = image[i];
	return size;
}

/* In memory of exactly `size` bytes, so that a sanitizer sees reads beyond the end. */
static bool is_found_inside(const unsigned char *bytes, size_t size)
{
	unsigned char *copy = malloc(size + 1);

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	const unsigned char *found = vdso_find(copy, size, NAME);

	assert_true(!found || (found >= copy && found < copy + size));
	free(copy);
	return found != NULL;
}

TEST(broken_images)
{
	static unsigned char image[ROOM], broken[ROOM];
	size_t size = copy_image(image);

	if (size == 0)
		skip_because("the kernel's function is not this one");
	assert_true(is_found_inside(image, size));
	assert_null(vdso_find(image, size, NAME "s"));
	assert_null(vdso_find(image, size, "_" NAME));
	for (size_t less = 0; less < 4096; less += 8)
		is_found_inside(image, less);
	assert_false(is_found_inside(image, 4096 / 8));
	for (unsigned int i = 0; i < 20000; i++) {
		memcpy(broken, image, size);
		for (unsigned int changes = 1 + i % 4; changes > 0; changes--)
			broken[some_below(i % 2 ? 4096 : 512)] = (unsigned char)some_below(256);
		is_found_inside(broken, size);
	}
}

RUN_TESTS(NULL, NULL)
