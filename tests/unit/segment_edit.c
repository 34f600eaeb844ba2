/* What editors may do to a segment, and which errors they get. */
#include "../skip.h"
#include "cuda_process.h"
#include "own_segment.h"
#include "process.h"
#include "state/handle.h"
#include "state/layout.h"
#include "state/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct pci_address second = {.bus = 0x5e};

static void test_edit_is_seen_by_the_owner(void **state)
{
	struct segment owner = make_segment(), editor;
	struct segment_partition wanted = partition_of(first, 8, 15);
	uint64_t before = segment_revision_number(&owner);

	(void)state;
	assert_int_equal(segment_open(&editor, getpid(), NULL), SEGMENT_FOUND);
	assert_set(&editor, first, 0, 7);
	assert_int_equal(segment_edit(&editor, &wanted, 1, NULL, NULL), 0);
	assert_set(&owner, first, 8, 15);
	assert_true(segment_revision_number(&owner) > before);
	segment_close(&editor);
	segment_close(&owner);
}

static void test_other_gpus_keep_their_sets(void **state)
{
	struct segment owner = make_segment();
	struct segment_partition wanted = partition_of(second, 3, 3);

	(void)state;
	assert_int_equal(edit(&wanted, NULL), 0);
	assert_set(&owner, first, 0, 7);
	assert_set(&owner, second, 3, 3);
	segment_close(&owner);
}

/* What is given of the time changes each for itself, and leaves partitions alone. */
static void test_rank(void **state)
{
	const struct segment_revision priority = {.rank.priority = segment_rank_of_priority(0)}, weight = {.rank.weight = 300};
	const struct segment_revision quota = {.quota = {.run_us = 30000, .period_us = 100000}};
	struct segment owner = make_segment(), editor;
	struct segment_revision before, after;
	uint64_t number;

	(void)state;
	assert_int_equal(segment_open(&editor, getpid(), NULL), SEGMENT_FOUND);
	assert_true(segment_read(&owner, &before, &number));
	assert_false(segment_time_is_given(&before));
	assert_int_equal(segment_change(&editor, &priority, NULL, NULL), 0);
	assert_int_equal(segment_change(&editor, &weight, NULL, NULL), 0);
	assert_int_equal(segment_change(&editor, &quota, NULL, NULL), 0);
	assert_true(segment_read(&owner, &after, &number));
	assert_int_equal(segment_rank_priority(after.rank), 0);
	assert_int_equal(segment_rank_weight(after.rank), 300);
	assert_int_equal(after.quota.run_us, 30000);
	assert_int_equal(after.count, before.count);
	segment_close(&editor);
	segment_close(&owner);
}

static struct segment_rank policy(const char *words)
{
	struct segment_rank rank = {.priority = 0};

	assert_int_equal(policy_parse(&rank, words, NULL), 0);
	return rank;
}

static void assert_policy(const struct segment *owner, const char *words, bool is_ht, bool is_ae)
{
	struct segment_revision revision;
	char text[POLICY_TEXT];
	uint64_t number;

	assert_true(segment_read(owner, &revision, &number));
	assert_string_equal(policy_format(revision.rank, text), words);
	assert_int_equal(segment_policy_is_ht(revision.rank), is_ht);
	assert_int_equal(segment_policy_is_ae(revision.rank), is_ae);
}

/* Half of a policy changes for itself, too; and alone it limits nothing. */
static void test_policy(void **state)
{
	const struct segment_revision ht = {.rank = policy("ht")}, ae = {.rank = policy("ae")}, both = {.rank = policy("pe,prt")};
	const struct segment_revision priority = {.rank.priority = segment_rank_of_priority(0)}, weight = {.rank.weight = 1};
	struct segment owner = make_segment(), editor;

	(void)state;
	assert_policy(&owner, "", false, false);
	assert_int_equal(segment_open(&editor, getpid(), NULL), SEGMENT_FOUND);
	assert_int_equal(segment_change(&editor, &ae, NULL, NULL), 0);
	assert_policy(&owner, "ae", false, true);
	assert_int_equal(segment_change(&editor, &ht, NULL, NULL), 0);
	assert_policy(&owner, "ht,ae", true, true);
	assert_int_equal(segment_change(&editor, &priority, NULL, NULL), 0);
	assert_policy(&owner, "ht,ae", true, true);
	assert_int_equal(segment_change(&editor, &both, NULL, NULL), 0);
	assert_policy(&owner, "prt,pe", false, false);
	segment_close(&editor);
	segment_close(&owner);
	assert_true(segment_time_is_given(&ht) && segment_time_is_given(&ae));
	assert_false(segment_time_limits(&ht) || segment_time_limits(&ae));
	assert_false(segment_time_holds_back(&both) || segment_time_holds_back(&weight));
	assert_true(segment_time_holds_back(&priority));
}

/* Whoever has written it, a rank is in its range. */
static void test_a_hostile_rank(void **state)
{
	const struct segment_rank rank = {UINT16_MAX, UINT16_MAX, UINT16_MAX, UINT16_MAX};
	char text[POLICY_TEXT];

	(void)state;
	assert_string_equal(policy_format(rank, text), "prt,pe");
	assert_false(segment_policy_is_ht(rank) || segment_policy_is_ae(rank));
	assert_int_equal(segment_rank_priority(rank), SEGMENT_PRIORITY_MAX);
	assert_int_equal(segment_rank_weight(rank), SEGMENT_WEIGHT_MAX);
}

/* Partitions and the quota change each for itself, and come back together. */
static void test_quota(void **state)
{
	const struct segment_partition partition = {.pci = second, .set = {{0xf}}};
	const struct segment_revision wanted = {.quota = {.run_us = 30000, .period_us = 100000}};
	struct segment owner = make_segment(), editor;
	struct segment_revision before, after;
	struct segment_time time;
	struct segment_undo undo;
	uint64_t number;

	(void)state;
	assert_int_equal(segment_open(&editor, getpid(), NULL), SEGMENT_FOUND);
	assert_true(segment_read(&owner, &before, &number));
	assert_int_equal(before.quota.period_us, 0);
	assert_int_equal(segment_change(&editor, &wanted, &undo, NULL), 0);
	assert_true(segment_read(&owner, &after, &number));
	assert_int_equal(after.quota.run_us, 30000);
	assert_true(segment_quota_limits(after.quota));
	assert_int_equal(after.count, before.count);
	assert_int_equal(segment_take_back(&editor, &undo, NULL), 0);
	assert_true(segment_read(&owner, &after, &number));
	assert_int_equal(after.quota.period_us, 0);
	assert_int_equal(segment_change(&editor, &wanted, NULL, NULL), 0);
	assert_int_equal(segment_edit(&editor, &partition, 1, NULL, NULL), 0);
	assert_true(segment_read(&owner, &after, &number));
	assert_int_equal(after.quota.period_us, 100000);
	assert_non_null(segment_find(&after, second));
	segment_set_time_used(&owner, 12, 34, 5);
	segment_set_time_held(&owner, 6);
	segment_set_time_state(&owner, SEGMENT_TIME_IN_FORCE, number);
	segment_read_time(&owner, &time);
	assert_int_equal(time.state, SEGMENT_TIME_IN_FORCE);
	assert_int_equal(time.number, number);
	assert_int_equal(time.present_us, 12);
	assert_int_equal(time.aside_us, 34);
	assert_int_equal(time.bounded, 5);
	assert_int_equal(time.held, 6);
	segment_close(&editor);
	segment_close(&owner);
}

static void test_one_gpu_too_many(void **state)
{
	struct segment owner = make_segment();
	struct error error;

	(void)state;
	for (unsigned int i = 1; i < SEGMENT_GPUS; i++) {
		struct segment_partition more = partition_of((struct pci_address){.domain = i}, 0, 0);

		assert_int_equal(edit(&more, &error), 0);
	}
	struct segment_partition last = partition_of((struct pci_address){.domain = SEGMENT_GPUS}, 0, 0);

	assert_int_equal(edit(&last, &error), -1);
	assert_non_null(strstr(error.reason, "no more fit"));
	assert_set(&owner, first, 0, 7);
	segment_close(&owner);
}

/* --- several editors -------------------------------------------------------------------------------- */

#define EDITORS 4
#define EDITS 2000

static void *edit_own_gpu(void *argument)
{
	unsigned int own = (unsigned int)(uintptr_t)argument;
	struct segment editor;

	if (segment_open(&editor, getpid(), NULL) != SEGMENT_FOUND)
		return "no segment";
	for (unsigned int i = 0; i < EDITS; i++) {
		struct segment_partition wanted =
			partition_of((struct pci_address){.domain = own}, 0, i % TPCSET_MAX);

		if (segment_edit(&editor, &wanted, 1, NULL, NULL) < 0)
			return "no edit";
	}
	segment_close(&editor);
	return NULL;
}

/* An edit copies the others' sets: without the lock, one of two would be lost now and then. */
static void test_no_edit_is_lost(void **state)
{
	struct segment owner = make_segment();
	pthread_t editors[EDITORS];

	(void)state;
	for (uintptr_t i = 0; i < EDITORS; i++)
		assert_int_equal(pthread_create(&editors[i], NULL, edit_own_gpu, (void *)(i + 1)), 0);
	for (unsigned int i = 0; i < EDITORS; i++) {
		void *failure;

		pthread_join(editors[i], &failure);
		assert_null(failure);
	}
	assert_int_equal(segment_revision_number(&owner), 1 + EDITORS * EDITS);
	for (unsigned int i = 1; i <= EDITORS; i++)
		assert_set(&owner, (struct pci_address){.domain = i}, 0, 207);
	segment_close(&owner);
}

static void test_stopped_editor_is_reported(void **state)
{
	struct segment owner = make_segment(), stopped;
	struct segment_partition wanted = partition_of(first, 1, 1);
	struct error error;

	(void)state;
	assert_int_equal(segment_open(&stopped, getpid(), NULL), SEGMENT_FOUND);
	assert_int_equal(segment_lock(&stopped, NULL), 0);
	assert_int_equal(edit(&wanted, &error), -1);
	assert_non_null(strstr(error.reason, "another process"));
	assert_set(&owner, first, 0, 7);
	segment_close(&stopped);
	segment_close(&owner);
}

/* --- finding ------------------------------------------------------------------------------------------ */

static void (*work_of_child)(void);

static void do_work(char order)
{
	(void)order;
	work_of_child();
}

/* A child that has done this work, and waits. */
static struct process start_child(void (*work)(void))
{
	work_of_child = work;
	return process_start(do_work);
}

static void assert_state(void (*work)(void), enum segment_state expected, const char *reason)
{
	struct segment segment;
	struct error error = {.reason = ""};
	struct process child = start_child(work);

	assert_int_equal(segment_open(&segment, child.pid, &error), expected);
	assert_null(segment.memory);
	assert_non_null(strstr(error.reason, reason));
	process_end(&child);
}

static void do_nothing(void)
{
}

static void test_process_without_cuda(void **state)
{
	(void)state;
	assert_state(do_nothing, SEGMENT_NO_CUDA, "has not loaded CUDA");
}

static void test_process_without_us(void **state)
{
	(void)state;
	assert_state(load_a_driver, SEGMENT_NOT_OURS, "was started without nvtaskset");
}

/* A scheduler, for example, that has not inherited its parent's descriptor. */
static void edit_another(void)
{
	struct segment other;

	close_range(HANDLE_MIN, ~0U, 0);
	if (segment_open(&other, getppid(), NULL) != SEGMENT_FOUND)
		_exit(1);
}

static void test_process_that_edits_another(void **state)
{
	struct segment segment = make_segment();

	(void)state;
	assert_state(edit_another, SEGMENT_NO_CUDA, "has not loaded CUDA");
	segment_close(&segment);
}

static void test_process_that_is_gone(void **state)
{
	struct segment segment;
	struct error error;
	struct process child = start_child(do_nothing);

	(void)state;
	process_end(&child);
	assert_int_equal(segment_open(&segment, child.pid, &error), SEGMENT_NO_PROCESS);
	assert_non_null(strstr(error.reason, "no such process"));
}

static void become_nobody(void)
{
	if (setuid(65534) < 0)
		_exit(1);
}

static void test_process_of_another_user(void **state)
{
	struct segment segment;
	struct error error;
	int status;

	(void)state;
	if (getuid() != 0)
		skip_because("needs root");
	struct process child = start_child(do_nothing);
	pid_t looker = fork();

	if (looker == 0) {
		become_nobody();
		_exit(segment_open(&segment, child.pid, &error) == SEGMENT_NOT_PERMITTED ? 0 : 1);
	}
	assert_int_equal(waitpid(looker, &status, 0), looker);
	assert_int_equal(status, 0);
	process_end(&child);
}

/* A program with more privileges has two: its user's from before, whatever that one claims to be, and one of its
 * own. */
static void make_two(void)
{
	struct segment_partition wanted = partition_of(first, 8, 15);
	struct segment_revision revision = revision_of(&wanted);
	struct segment segment;

	if (seteuid(65534) < 0)
		_exit(1);
	make_segment();
	/* Only root with all capabilities may look into a process that has been another user; that is not tested
	 * here. */
	if (seteuid(0) < 0 || segment_create(&segment, &revision, -1, NULL) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
		_exit(1);
}

static void test_segment_of_another_user_is_not_its_own(void **state)
{
	struct segment segment;

	(void)state;
	if (getuid() != 0)
		skip_because("needs root");
	struct process child = start_child(make_two);

	assert_int_equal(segment_open(&segment, child.pid, NULL), SEGMENT_FOUND);
	assert_set(&segment, first, 8, 15);
	segment_close(&segment);
	process_end(&child);
}

/* --- hostile segments --------------------------------------------------------------------------------- */

static void add_file(int seals, size_t size, char fill)
{
	int file = memfd_create("nvtaskset", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (file < 0 || ftruncate(file, (off_t)size) < 0)
		_exit(1);
	for (size_t i = 0; fill && i < size; i++) {
		if (pwrite(file, &fill, 1, (off_t)i) != 1)
			_exit(1);
	}
	if (fcntl(file, F_ADD_SEALS, seals) < 0)
		_exit(1);
}

static size_t true_size(void)
{
	struct segment segment = make_segment();
	struct stat status;

	assert_int_equal(fstat(segment.file, &status), 0);
	segment_close(&segment);
	return (size_t)status.st_size;
}

static void add_empty(void)
{
	add_file(F_SEAL_SHRINK | F_SEAL_GROW, 0, 0);
}

static void add_truncated(void)
{
	add_file(F_SEAL_SHRINK | F_SEAL_GROW, true_size() - 1, 0);
}

/* Without seals, it could be truncated while an editor uses it. */
static void add_unsealed(void)
{
	add_file(0, true_size(), 0);
}

static void add_zeros(void)
{
	add_file(F_SEAL_SHRINK | F_SEAL_GROW, true_size(), 0);
}

static void add_garbage(void)
{
	add_file(F_SEAL_SHRINK | F_SEAL_GROW, true_size(), '\x7f');
}

static void test_hostile_files_are_refused(void **state)
{
	(void)state;
	assert_state(add_empty, SEGMENT_NOT_READY, "not one that this version knows");
	assert_state(add_truncated, SEGMENT_NOT_READY, "not one that this version knows");
	assert_state(add_unsealed, SEGMENT_NOT_READY, "not one that this version knows");
	assert_state(add_zeros, SEGMENT_NOT_READY, "not one that this version knows");
	assert_state(add_garbage, SEGMENT_NOT_READY, "not one that this version knows");
}

/* Opening it for writing would make an editor wait for 45 s, or as long as /proc/sys/fs/lease-break-time says. */
static void add_leased(void)
{
	int file = memfd_create("nvtaskset", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	int again = open(path, O_RDONLY | O_CLOEXEC);

	close(file);
	/* The kernel sends it when another process opens the file. */
	signal(SIGIO, SIG_IGN);
	if (fcntl(again, F_SETLEASE, F_RDLCK) < 0)
		_exit(1);
}

static void test_leased_file_is_not_waited_for(void **state)
{
	(void)state;
	assert_state(add_leased, SEGMENT_FAILED, "its descriptors cannot be read");
}

/* A file system that answers while it is mounted, and then never again. */
static int mount_mute(const char *file)
{
	struct {
		struct fuse_in_header header;
		char more[8192];
	} request;
	struct {
		struct fuse_out_header header;
		struct fuse_init_out init;
	} answer = {.header = {.len = sizeof answer}, .init = {.major = 7, .minor = 31, .max_write = 4096}};
	char options[80];
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	snprintf(options, sizeof options, "fd=%d,rootmode=100000,user_id=0,group_id=0", device);
	if (device < 0 || mount("none", file, "fuse", 0, options) < 0)
		return -1;
	ssize_t size = read(device, &request, sizeof request);

	answer.header.unique = request.header.unique;
	return size > 0 && write(device, &answer, sizeof answer) == sizeof answer ? 0 : -1;
}

#define MUTE "memfd:nvtaskset (deleted)"

/* In a mount namespace whose root holds the file, so that /proc shows it like a segment. */
static int enter_mute(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/mnt", "tmpfs", 0, NULL) < 0 || chdir("/mnt") < 0 || mkdir("old", 0700) < 0)
		return -1;
	close(open(MUTE, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	return mount_mute(MUTE) < 0 || syscall(SYS_pivot_root, ".", "old") < 0 ? -1 : 0;
}

static void add_mute(void)
{
	if (enter_mute() < 0 || open("/" MUTE, O_PATH | O_CLOEXEC) < 0)
		_exit(77);
}

static bool can_be_mute(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		add_mute();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status == 0;
}

static void test_file_on_a_mute_file_system_is_not_waited_for(void **state)
{
	(void)state;
	if (!can_be_mute())
		skip_because("no file system can be mounted");
	alarm(20);
	assert_state(add_mute, SEGMENT_NO_CUDA, "has not loaded CUDA");
	alarm(0);
}

/* Whatever an editor writes, the owner reads a valid revision or none. */
static void test_garbage_inside_is_no_revision(void **state)
{
	struct segment owner = make_segment();
	struct segment_partition wanted = partition_of(first, 1, 1);
	size_t size = true_size();
	struct segment_revision revision;
	struct error error;
	uint64_t number;

	(void)state;
	for (size_t at = 64; at < size; at++)
		((volatile unsigned char *)owner.memory)[at] = 0xee;
	assert_false(segment_read(&owner, &revision, &number));
	assert_int_equal(edit(&wanted, &error), -1);
	assert_string_equal(error.reason, "the segment is damaged");
	segment_close(&owner);
}

static void test_segment_cannot_be_truncated(void **state)
{
	struct segment owner = make_segment(), editor;

	(void)state;
	assert_int_equal(segment_open(&editor, getpid(), NULL), SEGMENT_FOUND);
	assert_int_equal(ftruncate(editor.file, 0), -1);
	assert_int_equal(ftruncate(editor.file, 1 << 20), -1);
	segment_close(&editor);
	segment_close(&owner);
}

static void test_low_descriptors_stay_free(void **state)
{
	struct segment owner = make_segment();

	(void)state;
	assert_true(owner.file >= HANDLE_USUAL);
	assert_int_equal(fcntl(owner.file, F_GETFD), 0); /* it stays open over an exec */
	segment_close(&owner);
}

/* A process that inherits it, for example with fewer privileges, can do nothing with it. */
static void test_handle_opens_nothing(void **state)
{
	struct segment owner = make_segment();
	char byte = 0;

	(void)state;
	assert_true(fcntl(owner.file, F_GETFL) & O_PATH);
	assert_int_equal(pread(owner.file, &byte, 1, 0), -1);
	assert_int_equal(pwrite(owner.file, &byte, 1, 0), -1);
	assert_int_equal(flock(owner.file, LOCK_EX | LOCK_NB), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ, MAP_SHARED, owner.file, 0), MAP_FAILED);
	segment_close(&owner);
}

static void *wait_for_end(void *end)
{
	char byte;

	return read(*(const int *)end, &byte, 1) == 0 ? NULL : end;
}

/* The segment's descriptor, or 0 if it is not found. */
static int make_segment_beside_a_thread(void)
{
	int end[2];
	pthread_t thread;
	struct segment editor;

	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &end[0]), 0);
	int file = make_segment().file;

	if (segment_open(&editor, getpid(), NULL) != SEGMENT_FOUND)
		file = 0;
	close(end[1]);
	pthread_join(thread, NULL);
	return file;
}

/* Runs this in a child's child, and returns its exit status: a fork's table is no larger than needed, and no table
 * shrinks. */
static int in_a_small_table(int run(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		close_range(3, ~0U, 0);
		child = fork();
		if (child == 0)
			_exit(run());
		waitpid(child, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* For a higher number, the kernel would make the process wait while it enlarges the table. */
static void test_the_table_of_descriptors_does_not_grow(void **state)
{
	(void)state;
	assert_in_range(in_a_small_table(make_segment_beside_a_thread), 48, 63);
}

/* A quick look at many processes, which gives no reason for a missing segment, finds segments at all usual numbers. */
static void test_quick_look(void **state)
{
	struct segment owner, editor;
	struct rlimit before, few;
	int others[8];

	(void)state;
	/* So the segment's is not the first descriptor in its range. */
	for (int i = 0; i < 8; i++)
		others[i] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, HANDLE_USUAL);
	owner = make_segment();
	assert_true(owner.file >= HANDLE_USUAL + 8);
	assert_int_equal(segment_open(&editor, getpid(), NULL), SEGMENT_FOUND);
	segment_close(&editor);
	segment_close(&owner);
	for (int i = 0; i < 8; i++)
		close(others[i]);
	assert_int_equal(segment_open(&editor, getpid(), NULL), SEGMENT_NOT_OURS);
	/* A process that may not have so many descriptors. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	owner = make_segment();
	assert_true(owner.file < 100);
	assert_int_equal(segment_open(&editor, getpid(), NULL), SEGMENT_FOUND);
	segment_close(&editor);
	/* A search that gives a reason finds it in any case. */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(segment_open(&editor, getpid(), &(struct error){.reason = ""}), SEGMENT_FOUND);
	segment_close(&editor);
	segment_close(&owner);
}

/* --- counters and the environment ------------------------------------------------------------------------ */

static void test_counters(void **state)
{
	struct segment owner = make_segment();
	struct segment_counters counters;

	(void)state;
	segment_count_launch(&owner, true);
	segment_count_launch(&owner, true);
	segment_count_launch(&owner, false);
	segment_count_reason(&owner, SEGMENT_GREEN_CONTEXT);
	segment_read_counters(&owner, &counters);
	assert_int_equal(counters.restricted, 2);
	assert_int_equal(counters.unrestricted, 1);
	assert_int_equal(counters.reasons[SEGMENT_GREEN_CONTEXT], 1);
	assert_int_equal(counters.reasons[SEGMENT_NO_TOPOLOGY], 0);
	/* A value that a program writes into its counters does not make a sum wrap around. */
	atomic_store(&owner.slots[3].launches[true], UINT64_MAX);
	segment_read_counters(&owner, &counters);
	assert_true(counters.restricted == UINT64_MAX);
	assert_int_equal(counters.unrestricted, 1);
	segment_close(&owner);
}

static void *count_alone(void *owner)
{
	struct counter_slot *slot = counter_slot_take(owner);

	/* All threads that have no counters of their own share the first. */
	if (slot == ((struct segment *)owner)->slots)
		return "the shared slot";
	for (int i = 0; i < 1000; i++)
		counter_slot_count_launch(slot, i % 4 > 0);
	return NULL;
}

static void test_threads_count_in_slots_of_their_own(void **state)
{
	struct segment owner = make_segment();
	struct segment_counters counters;
	pthread_t threads[10];
	void *failure;
	int more = 0;

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_alone, &owner), 0);
	for (int i = 0; i < 10; i++) {
		pthread_join(threads[i], &failure);
		assert_null(failure);
	}
	while (counter_slot_take(&owner) && more < 1000)
		more++;
	assert_in_range(more, 1, 999);
	assert_null(counter_slot_take(&owner));
	segment_count_launch(&owner, true);
	segment_read_counters(&owner, &counters);
	assert_int_equal(counters.restricted, 7501);
	assert_int_equal(counters.unrestricted, 2500);
	segment_close(&owner);
}

/* More threads than slots, one after the other: each gives its slot back. */
static void *count_and_give_back(void *owner)
{
	struct counter_slot *slot = counter_slot_take(owner);

	if (!slot)
		return "no slot";
	counter_slot_count_launch(slot, true);
	counter_slot_give_back(owner, slot);
	return NULL;
}

static void test_threads_give_their_slots_back(void **state)
{
	struct segment owner;
	struct segment_counters counters;

	(void)state;
	counter_slots_free();
	owner = make_segment();
	for (int i = 0; i < 5 * COUNTER_SLOTS; i++) {
		pthread_t thread;
		void *failure;

		assert_int_equal(pthread_create(&thread, NULL, count_and_give_back, &owner), 0);
		pthread_join(thread, &failure);
		assert_null(failure);
	}
	segment_read_counters(&owner, &counters);
	assert_int_equal(counters.restricted, 5 * COUNTER_SLOTS);
	segment_close(&owner);
}

/* A small file limit would end the process by a signal; few descriptors, and the low ones stay free. */
static void test_limits(void **state)
{
	struct segment_partition partition = partition_of(first, 0, 7);
	struct segment_revision revision = revision_of(&partition);
	struct rlimit before, small;
	struct segment segment;
	struct error error;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(segment_create(&segment, &revision, -1, &error), -1);
	assert_int_equal(segment_create_private(&segment, &revision, &error), 0);
	assert_set(&segment, first, 0, 7);
	assert_int_equal(segment_keep_findable(&segment, &error), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_non_null(strstr(error.reason, "the limit for files (ulimit -f) is 4096"));
	/* It works as soon as there is room. */
	assert_int_equal(segment_keep_findable(&segment, &error), 0);
	assert_true(segment.file >= HANDLE_USUAL);
	assert_set(&segment, first, 0, 7);
	segment_close(&segment);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	small = before;
	small.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	segment = make_segment();
	assert_true(segment.file >= 56);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	segment_close(&segment);
}

/* An editor that cannot look must not say that there is no segment. */
static void test_no_descriptor_to_look_with(void **state)
{
	struct segment owner = make_segment(), editor;
	struct rlimit before, none;
	struct error error;
	enum segment_state found = SEGMENT_FOUND;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	/* One descriptor is left, for the directory. */
	none = before;
	none.rlim_cur = (rlim_t)dup(STDIN_FILENO);
	close((int)none.rlim_cur);
	none.rlim_cur++;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	found = segment_open(&editor, getpid(), &error);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(found, SEGMENT_FAILED);
	assert_non_null(strstr(error.reason, "its descriptors cannot be read: Too many open files"));
	segment_close(&owner);
}

static void test_environment_round_trip(void **state)
{
	static const char text[] = "0000:3b:00.0=0-7,9;0001:5e:00.0=255;quota=30000/100000;priority=80;weight=200;policy=ht,ae";
	struct segment_revision revision;
	struct error error;
	char again[SEGMENT_ENVIRONMENT_MAX];

	(void)state;
	assert_int_equal(segment_revision_parse(&revision, text, &error), 0);
	assert_int_equal(revision.count, 2);
	assert_int_equal(revision.quota.run_us, 30000);
	assert_int_equal(revision.quota.period_us, 100000);
	assert_int_equal(segment_rank_priority(revision.rank), 80);
	assert_int_equal(segment_rank_weight(revision.rank), 200);
	assert_true(segment_policy_is_ht(revision.rank) && segment_policy_is_ae(revision.rank));
	assert_string_equal(segment_revision_format(&revision, again), text);
	assert_int_equal(segment_revision_parse(&revision, "priority=0", &error), 0);
	assert_true(segment_rank_is_given(revision.rank));
	assert_int_equal(segment_rank_priority(revision.rank), 0);
	assert_int_equal(segment_rank_weight(revision.rank), SEGMENT_WEIGHT_USUAL);
	assert_string_equal(segment_revision_format(&revision, again), "priority=0");
	assert_int_equal(segment_revision_parse(&revision, "weight=10000", &error), 0);
	assert_int_equal(segment_rank_priority(revision.rank), SEGMENT_PRIORITY_USUAL);
	assert_string_equal(segment_revision_format(&revision, again), "weight=10000");
	assert_int_equal(segment_revision_parse(&revision, "quota=1/2", &error), 0);
	assert_string_equal(segment_revision_format(&revision, again), "quota=1/2");
	assert_int_equal(segment_revision_parse(&revision, "policy=pe", &error), 0);
	assert_true(segment_policy_is_given(revision.rank));
	assert_string_equal(segment_revision_format(&revision, again), "policy=pe");
	assert_int_equal(segment_revision_parse(&revision, "", &error), 0);
	assert_int_equal(revision.count, 0);
}

static void test_garbage_in_the_environment(void **state)
{
	static const char *const garbage[] = {"x",
	                                      "=",
	                                      "0000:3b:00.0",
	                                      "0000:3b:00.0=",
	                                      "0000:3b:00.0=3-1",
	                                      "0000:3b:00.0=256",
	                                      "0000:3b:00.0=0;;",
	                                      "zz:3b:00.0=0",
	                                      "quota=",
	                                      "quota=1",
	                                      "quota=1/0",
	                                      "quota=1/2x",
	                                      "priority=",
	                                      "priority=100",
	                                      "priority=4294967296",
	                                      "priority=x",
	                                      "priority=8x",
	                                      "weight=",
	                                      "weight=0",
	                                      "weight=10001",
	                                      "weight=-1",
	                                      "policy=",
	                                      "policy=ht,",
	                                      "policy=,ae",
	                                      "policy=HT",
	                                      "policy=h",
	                                      "policy=ht ae",
	                                      "policy=prt,ht",
	                                      "policy=ae,ht,pe",
	                                      "policy=ae,ae",
	                                      "0000:3b:00.0=0\n"};

	(void)state;
	for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
		struct segment_revision revision;
		struct error error = {.reason = ""};

		assert_int_equal(segment_revision_parse(&revision, garbage[i], &error), -1);
		assert_true(strlen(error.reason) > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edit_is_seen_by_the_owner),
		cmocka_unit_test(test_other_gpus_keep_their_sets),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_rank),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_a_hostile_rank),
		cmocka_unit_test(test_one_gpu_too_many),
		cmocka_unit_test(test_no_edit_is_lost),
		cmocka_unit_test(test_stopped_editor_is_reported),
		cmocka_unit_test(test_process_without_cuda),
		cmocka_unit_test(test_process_without_us),
		cmocka_unit_test(test_process_that_edits_another),
		cmocka_unit_test(test_process_that_is_gone),
		cmocka_unit_test(test_process_of_another_user),
		cmocka_unit_test(test_segment_of_another_user_is_not_its_own),
		cmocka_unit_test(test_hostile_files_are_refused),
		cmocka_unit_test(test_leased_file_is_not_waited_for),
		cmocka_unit_test(test_file_on_a_mute_file_system_is_not_waited_for),
		cmocka_unit_test(test_garbage_inside_is_no_revision),
		cmocka_unit_test(test_segment_cannot_be_truncated),
		cmocka_unit_test(test_low_descriptors_stay_free),
		cmocka_unit_test(test_handle_opens_nothing),
		cmocka_unit_test(test_the_table_of_descriptors_does_not_grow),
		cmocka_unit_test(test_quick_look),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_threads_count_in_slots_of_their_own),
		cmocka_unit_test(test_threads_give_their_slots_back),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_no_descriptor_to_look_with),
		cmocka_unit_test(test_environment_round_trip),
		cmocka_unit_test(test_garbage_in_the_environment),
	};

	return cmocka_run_group_tests_name("segment_edit", tests, NULL, NULL);
}
