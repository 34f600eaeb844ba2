#include "target.h"

#include "attach/machine.h"
#include "base/proc.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIMITS_TEXT 4096 /* /proc/PID/limits has some 20 lines of 80 */

/* --- reasons --------------------------------------------------------------------------------------------------- */

/* The setting of Yama, a security module of the kernel; 0 if Yama is absent. */
static int ptrace_scope(void)
{
	char text[16];

	proc_read_text(text, sizeof text, "/proc/sys/kernel/yama/ptrace_scope");
	return atoi(text);
}

/* The process that traces `pid`; 0: no tracer. */
static int tracer_of(pid_t pid)
{
	return (int)proc_status(proc_thread(pid), "TracerPid:", 0);
}

static int explain_forbidden(pid_t pid, struct error *error)
{
	int scope = ptrace_scope(), tracer = tracer_of(pid);

	if (tracer > 0)
		return error_set(error, "pid %d: is being debugged by pid %d: end that first", (int)pid, tracer);
	if (scope >= 3)
		return error_set(error, "pid %d: this kernel lets nobody attach (kernel.yama.ptrace_scope is %d): "
		                        "start the program by nvtaskset", (int)pid, scope);
	if (geteuid() == 0)
		return error_set(error, "pid %d: the kernel does not let you attach: in a container, it needs the "
		                        "capability SYS_PTRACE", (int)pid);
	if (scope > 0)
		return error_set(error, "pid %d: the kernel lets only root attach (kernel.yama.ptrace_scope is %d): "
		                        "run 'sudo nvtaskset --attach -p ...'", (int)pid, scope);
	return error_set(error, "pid %d: the kernel does not let you attach: run 'sudo nvtaskset --attach -p ...'",
	                 (int)pid);
}

int target_explain(pid_t pid, int failure, struct error *error)
{
	if (failure == EPERM || failure == EACCES)
		return explain_forbidden(pid, error);
	if (failure == ESRCH || failure == ENOENT)
		return error_set(error, "pid %d: it has ended", (int)pid);
	errno = failure;
	return error_set_errno(error, "pid %d", (int)pid);
}

/* --- whether we can attach -------------------------------------------------------------------------------------- */

/* Of the same number; 0: a kernel before 5.9 does not tell the number. */
static bool has_our_filters(pid_t thread)
{
	uint64_t ours = proc_status(getpid(), "Seccomp_filters:", 0);

	return ours != 0 && ours == proc_status(thread, "Seccomp_filters:", 0);
}

/* Seccomp filters could end the process at one of our system calls. Root can suspend the borrowed thread's filters
 * meanwhile. If we run under the same filters, as in the same container, there is no danger either. */
int target_check_filters(pid_t pid, pid_t thread, bool *unfiltered, struct error *error)
{
	uint64_t mode = proc_status(thread, "Seccomp:", 0);
	bool are_both_filtered = mode == 2 && proc_status(getpid(), "Seccomp:", 0) == 2;
	bool is_safe = mode == 0 || (are_both_filtered && has_our_filters(thread));
	int result = 0;

	if (!is_safe && are_both_filtered)
		result = error_set(error, "pid %d: its system calls are filtered (seccomp) by other filters than "
		                          "ours: attach from outside its sandbox, as root", (int)pid);
	else if (!is_safe && geteuid() != 0)
		result = error_set(error, "pid %d: its system calls are filtered (seccomp): run "
		                          "'sudo nvtaskset --attach -p ...'", (int)pid);
	*unfiltered = !is_safe && result == 0;
	return result;
}

int target_check_file_limit(pid_t pid, const char *what, size_t size, struct error *error)
{
	char text[LIMITS_TEXT];
	uint64_t limit = UINT64_MAX;

	proc_read_text(text, sizeof text, "/proc/%d/limits", (int)pid);
	const char *line = strstr(text, "\nMax file size ");

	/* Not for "unlimited". */
	if (line)
		sscanf(line, "\nMax file size %" SCNu64, &limit);
	return line && size <= limit
	               ? 0
	               : error_set(error, "pid %d: may write files of %" PRIu64 " bytes at most (RLIMIT_FSIZE), and %s "
	                                  "has %zu: run 'prlimit --pid %d --fsize=unlimited'",
	                           (int)pid, line ? limit : 0, what, size, (int)pid);
}

static int check_state(pid_t pid, struct error *error)
{
	char stat[PROC_STAT_TEXT];

	proc_stat_read(pid, stat);
	char state = proc_state(pid, stat);

	if (!state)
		return error_set(error, "pid %d: no such process", (int)pid);
	if (tracer_of(pid) > 0)
		return explain_forbidden(pid, error);
	if (state == 'T')
		return error_set(error, "pid %d: is stopped: continue it first, with 'kill -CONT %d'", (int)pid,
		                 (int)pid);
	if (state == 'Z' || state == 'X')
		return error_set(error, "pid %d: it has ended", (int)pid);
	/* With a shadow stack, a return without a call on record there would end the thread. */
	if (proc_status_has(proc_thread(pid), "x86_Thread_features:", "shstk"))
		return error_set(error, "pid %d: uses a shadow stack, which attaching would violate: start it by "
		                        "nvtaskset", (int)pid);
	return 0;
}

static int check_program(pid_t pid, struct error *error)
{
	unsigned char start[EI_CLASS + 1] = {0};
	ssize_t got = proc_read(start, sizeof start, "/proc/%d/exe", (int)proc_thread(pid));

	if (got < 0)
		return target_explain(pid, errno, error);
	if (got == sizeof start && start[EI_CLASS] == ELFCLASS32)
		return error_set(error, "pid %d: is a 32-bit program, which cannot use this driver", (int)pid);
	return 0;
}

/* --- its libraries ------------------------------------------------------------------------------------------------ */

static bool defines(const struct target *target, const struct image *image, const char *name)
{
	return image_find(image, &target->memory, name, NULL) != 0;
}

/* The functions are in the C library from glibc 2.34 on, and before in libdl, which the driver has loaded. */
static void take_loading(struct target *target, const struct image *image)
{
	target->open_library = image_find(image, &target->memory, "dlopen", NULL);
	target->find_symbol = image_find(image, &target->memory, "dlsym", NULL);
	target->last_error = image_find(image, &target->memory, "dlerror", NULL);
	target->close_library = image_find(image, &target->memory, "dlclose", NULL);
}

/* Libraries are recognized by defined symbols, since names differ between distributions. */
static void take_image(struct target *target, const struct image *image, const char *path)
{
	uint64_t size = 0, data = image_find(image, &target->memory, "_rtld_global", &size);

	if (data) {
		target->loader = *image;
		target->loader_data = (struct range){data, data + size};
	} else if (defines(target, image, "gnu_get_libc_version")) {
		target->libc = *image;
		if (defines(target, image, "dlopen"))
			take_loading(target, image);
	} else if (strstr(path, "/libdl") && defines(target, image, "dlopen")) {
		take_loading(target, image);
	} else if (strstr(path, "/libcuda.so.")) {
		target->driver = image->range;
	} else if (defines(target, image, "malloc")) {
		target->allocators[target->allocator_count++] = image->range;
	}
}

/* Takes only a gap that the kernel has mapped as code. */
static void take_gap(struct target *target, const struct range *gap)
{
	const struct mapping *mapping = memory_find(&target->memory, gap->start);

	if (gap->start < gap->end && mapping && mapping->protection & PROT_EXEC && gap->end <= mapping->end)
		target->gaps[target->gap_count++] = *gap;
}

/* A library that is mapped only for reading is not loaded. */
static bool has_code(const struct memory *memory, const struct range *range)
{
	bool found = false;

	for (size_t i = 0; i < memory->count && !found; i++)
		found = memory->mappings[i].protection & PROT_EXEC && range_has(range, memory->mappings[i].start);
	return found;
}

static int find_libraries(struct target *target, struct error *error)
{
	const struct memory *memory = &target->memory;
	bool has_other = false;

	target->allocators = malloc((memory->count + 1) * sizeof *target->allocators);
	target->gaps = malloc((memory->count + 1) * sizeof *target->gaps);
	if (!target->allocators || !target->gaps)
		return error_set_errno(error, "pid %d", (int)target->pid);
	for (size_t i = 0; i < memory->count; i++) {
		const struct mapping *mapping = &memory->mappings[i];
		struct image image;

		if (mapping->inode != 0 && mapping->offset == 0 && image_open(&image, memory, mapping->start) &&
		    has_code(memory, &image.range)) {
			take_image(target, &image, mapping->path);
			take_gap(target, &image.gap);
			has_other = has_other || defines(target, &image, "__libc_start_main");
		}
	}
	if (target->libc.range.start && target->loader.range.start)
		return 0;
	return has_other ? error_set(error, "pid %d: its C library is not glibc, for which the driver is made",
	                             (int)target->pid)
	                 : error_set(error, "pid %d: it is linked statically, and cannot load our library",
	                             (int)target->pid);
}

static int find_functions(struct target *target, struct error *error)
{
	target->errno_location = image_find(&target->libc, &target->memory, "__errno_location", NULL);
	target->signal_return = machine_find_signal_return(&target->memory, &target->libc);
	if (!target->errno_location || !target->open_library || !target->find_symbol || !target->last_error ||
	    !target->close_library || !target->signal_return)
		return error_set(error, "pid %d: its C library is not one that we know", (int)target->pid);
	return 0;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

int target_open(struct target *target, pid_t pid, struct error *error)
{
	*target = (struct target){.pid = pid, .memory = {.file = -1}};
	if (check_state(pid, error) < 0 || check_program(pid, error) < 0)
		return -1;
	if (memory_open(&target->memory, pid) < 0)
		return target_explain(pid, errno, error);
	if (find_libraries(target, error) < 0 || find_functions(target, error) < 0) {
		target_close(target);
		return -1;
	}
	return 0;
}

void target_close(struct target *target)
{
	memory_close(&target->memory);
	free(target->allocators);
	free(target->gaps);
	target->allocators = target->gaps = NULL;
}
