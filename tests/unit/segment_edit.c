/* What editors may do to a segment, and which errors they get. */
#include "../cases.h"
#include "base/shared_file.h"
#include "cuda_process.h"
#include "own_segment.h"
#include "process.h"
#include "state/handle.h"
#include "state/revision_text.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/layout.h"
#include "state/segment/owner.h"

#include <limits.h>
#include <sys/file.h>

static struct error error;

static struct segment editor; /* owner, as an editor has it */

FIXTURE(begin)
{
	owner = make_segment();
	assert_int_equal(segment_open(&editor, getpid(), NULL, NULL), SEGMENT_FOUND);
}

FIXTURE(end)
{
	processes_end();
	segment_close(&editor);
	segment_close(&owner);
}

/* Whoever has written it, a rank is in its range. */
TEST(a_hostile_rank)
{
	const struct segment_rank rank = {UINT16_MAX, UINT16_MAX, UINT32_MAX};

	assert_each(segment_rank_priority(rank), SEGMENT_PRIORITY_MAX, segment_rank_weight(rank), SEGMENT_WEIGHT_MAX);
}

TEST_WITH(begin, end, there_was_no_limit_in_a_former_revision)
{
	struct segment_time time;

	segment_set_time_state(&owner, SEGMENT_TIME_UNLIMITED, segment_revision_number(&owner));
	segment_read_time(&owner, &time);
	assert_int_equal(time.state, SEGMENT_TIME_UNLIMITED);
	segment_set_time_state(&owner, SEGMENT_TIME_UNLIMITED, segment_revision_number(&owner) - 1);
	segment_read_time(&owner, &time);
	assert_int_equal(time.state, SEGMENT_TIME_PENDING);
}

/* Behind the library's back: the library puts no GPU in twice. */
static bool is_read_with(uint32_t count, const uint32_t domains[SEGMENT_GPUS])
{
	uint64_t number = segment_revision_number(&owner);
	_Atomic uint64_t *in_force = owner.memory->ring[number % REVISIONS_RING];
	struct segment_revision revision = {.count = count};

	for (uint32_t i = 0; i < SEGMENT_GPUS; i++)
		revision.partitions[i].pci.domain = domains[i];
	memcpy((void *)in_force, &revision, sizeof revision);
	return segment_read(&owner, &revision, &number);
}

TEST_WITH(make_owner, close_owner, a_hostile_number_of_gpus)
{
	uint32_t domains[SEGMENT_GPUS];

	for (uint32_t i = 0; i < SEGMENT_GPUS; i++)
		domains[i] = i;
	assert_true(is_read_with(SEGMENT_GPUS, domains));
	assert_false(is_read_with(SEGMENT_GPUS + 1, domains));
	domains[SEGMENT_GPUS - 1] = 1;
	assert_true(is_read_with(SEGMENT_GPUS - 1, domains));
	assert_false(is_read_with(SEGMENT_GPUS, domains));
}

#define EDITORS 4
#define EDITS 2000

static void *edit_own_gpu(void *argument)
{
	unsigned int own = (unsigned int)(uintptr_t)argument;
	struct segment other;

	if (segment_open(&other, getpid(), NULL, NULL) != SEGMENT_FOUND)
		return "no segment";
	for (unsigned int i = 0; i < EDITS; i++) {
		if (change(&other, (struct pci_address){.domain = own}, 0, i % TPCSET_MAX) < 0)
			return "no edit";
	}
	segment_close(&other);
	return NULL;
}

/* An edit copies the others' sets: without the lock, one of two would be lost now and then. */
TEST_WITH(begin, end, no_edit_is_lost)
{
	threads_run(EDITORS, edit_own_gpu, (void *)1, 1);
	assert_int_equal(segment_revision_number(&owner), 1 + EDITORS * EDITS);
	for (unsigned int i = 1; i <= EDITORS; i++)
		assert_set(&owner, (struct pci_address){.domain = i}, 0, 207);
}

/* While another edits: in between, its edit would go. */
TEST_WITH(begin, end, a_number_is_raised_under_the_lock)
{
	uint64_t before = segment_revision_number(&owner);
	struct segment other;

	assert_int_equal(segment_open(&other, getpid(), NULL, NULL), SEGMENT_FOUND);
	assert_int_equal(shared_file_lock(other.file, NULL, NULL), 0);
	assert_error_code(segment_raise(&editor, &error), BUSY);
	assert_each(segment_revision_number(&owner), before, segment_raised(&owner), 0);
	segment_close(&other);
	assert_int_equal(segment_raise(&editor, &error), 0);
	assert_each(segment_revision_number(&owner), before + 1, segment_raised(&owner), 1);
}

/* --- finding ------------------------------------------------------------------------------------------ */

/* Of a process that has obeyed this. */
static void assert_state(void (*obey)(char order), enum segment_state expected, const char *reason)
{
	struct segment segment;
	struct process child = process_start(obey);

	error.reason[0] = '\0';
	assert_int_equal(segment_open(&segment, child.pid, NULL, &error), expected);
	assert_null(segment.memory);
	assert_non_null(strstr(error.reason, reason));
	process_end(&child);
}

static void do_nothing(char order)
{
}

static void use_cuda(char order)
{
	load_a_driver();
}

/* A scheduler, for example, that has not inherited its parent's descriptor. */
static void edit_another(char order)
{
	struct segment other;

	close_range(HANDLE_MIN, ~0U, 0);
	must(segment_open(&other, getppid(), NULL, NULL) == SEGMENT_FOUND);
}

TEST(processes_without_a_segment)
{
	struct segment segment = make_segment();

	assert_state(edit_another, SEGMENT_NO_CUDA, "has not loaded CUDA");
	segment_close(&segment);
	assert_state(do_nothing, SEGMENT_NO_CUDA, "has not loaded CUDA");
	assert_state(use_cuda, SEGMENT_NOT_OURS, "was started without nvtaskset");
}

/* A program with more privileges has two: its user's from before, whatever that one claims to be, and one of its
 * own. */
static void make_two(char order)
{
	struct segment_partition wanted = partition_of(first, 8, 15);
	struct segment_revision revision = revision_of(&wanted);
	struct segment segment;

	must(seteuid(65534) == 0);
	make_segment();
	/* Only root with all capabilities may look into a process that has been another user; that is not tested here. */
	must(seteuid(0) == 0 && segment_create(&segment, &revision, NULL, -1, -1, NULL) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
}

TEST(segment_of_another_user_is_not_its_own)
{
	struct segment segment;

	if (getuid() != 0)
		skip_because("needs root");
	struct process child = process_start(make_two);

	assert_int_equal(segment_open(&segment, child.pid, NULL, NULL), SEGMENT_FOUND);
	assert_set(&segment, first, 8, 15);
	segment_close(&segment);
	process_end(&child);
}

/* --- hostile segments --------------------------------------------------------------------------------- */

enum content { ZEROS, GARBAGE, TRUE };

/* Files that are named as segments. */
static const struct {
	const char *name;
	int seals;
	long too_short; /* by so many bytes */
	enum content content;
} files[] = {
	{"empty", F_SEAL_SHRINK | F_SEAL_GROW, LONG_MAX, ZEROS},
	{"truncated", F_SEAL_SHRINK | F_SEAL_GROW, 1, TRUE},
	{"unsealed: it could be truncated while an editor uses it", 0, 0, TRUE},
	{"sealed in part", F_SEAL_GROW, 0, TRUE},
	{"zeros", F_SEAL_SHRINK | F_SEAL_GROW, 0, ZEROS},
	{"garbage", F_SEAL_SHRINK | F_SEAL_GROW, 0, GARBAGE},
	{"a segment", F_SEAL_SHRINK | F_SEAL_GROW, 0, TRUE},
};
static size_t file_now;

static void add_file(char order)
{
	static char content[sizeof(struct segment_memory)];
	long whole = sizeof content, size = whole > files[file_now].too_short ? whole - files[file_now].too_short : 0;
	int file = memfd_create("nvtaskset", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct segment segment = make_segment();

	memset(content, files[file_now].content == GARBAGE ? 0x7f : 0, sizeof content);
	if (files[file_now].content == TRUE)
		memcpy(content, segment.memory, sizeof content);
	segment_close(&segment);
	must(pwrite(file, content, (size_t)size, 0) == size && fcntl(file, F_ADD_SEALS, files[file_now].seals) == 0);
}

TEST(hostile_files_are_refused)
{
	for (file_now = 0; file_now < COUNT_OF(files) - 1; file_now++) {
		ROW("%s", files[file_now].name);
		assert_state(add_file, SEGMENT_NOT_READY, "not one that this version knows");
	}
	/* The last one is right. */
	struct process child = process_start(add_file);
	struct segment found;

	assert_int_equal(segment_open(&found, child.pid, NULL, &error), SEGMENT_FOUND);
	segment_close(&found);
	process_end(&child);
}

/* Opening it for writing would make an editor wait for 45 s, or as long as /proc/sys/fs/lease-break-time says. */
static void add_leased(char order)
{
	int file = memfd_create("nvtaskset", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int again = open(text_of("/proc/self/fd/%d", file), O_RDONLY | O_CLOEXEC);

	close(file);
	/* The kernel sends it when another process opens the file. */
	signal(SIGIO, SIG_IGN);
	must(fcntl(again, F_SETLEASE, F_RDLCK) == 0);
}

TEST(leased_file_is_not_waited_for)
{
	assert_state(add_leased, SEGMENT_FAILED, "its descriptors cannot be read");
}

/* Low descriptors stay free. A process that inherits it, for example with fewer privileges, can do nothing with it. */
TEST_WITH(begin, end, descriptors)
{
	char byte = 0;

	assert_int_equal(ftruncate(editor.file, 0), -1);
	assert_int_equal(ftruncate(editor.file, 1 << 20), -1);
	assert_true(owner.file >= HANDLE_USUAL);
	assert_int_equal(fcntl(owner.file, F_GETFD), 0); /* it stays open over an exec */
	assert_true(fcntl(owner.file, F_GETFL) & O_PATH);
	assert_int_equal(pread(owner.file, &byte, 1, 0), -1);
	assert_int_equal(pwrite(owner.file, &byte, 1, 0), -1);
	assert_int_equal(flock(owner.file, LOCK_EX | LOCK_NB), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ, MAP_SHARED, owner.file, 0), MAP_FAILED);
}

static void *wait_for_end(void *end)
{
	char byte;

	return read(*(const int *)end, &byte, 1) == 0 ? NULL : end;
}

/* The segment's descriptor, or 0 if it is not found. */
static int make_segment_beside_a_thread(void)
{
	int pipe[2];

	assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
	pthread_t thread = thread_start(wait_for_end, &pipe[0]);
	int file = make_segment().file;

	if (segment_open(&editor, getpid(), NULL, NULL) != SEGMENT_FOUND)
		file = 0;
	close(pipe[1]);
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
TEST(the_table_of_descriptors_does_not_grow)
{
	assert_in_range(in_a_small_table(make_segment_beside_a_thread), 48, 63);
}

/* A quick look at many processes, which gives no reason for a missing segment, finds segments at all usual numbers. */
TEST(quick_look)
{
	int others[8];

	/* So the segment's is not the first descriptor in its range. */
	for (int i = 0; i < 8; i++)
		others[i] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, HANDLE_USUAL);
	begin(NULL);
	assert_true(owner.file >= HANDLE_USUAL + 8);
	end(NULL);
	for (int i = 0; i < 8; i++)
		close(others[i]);
	assert_int_equal(segment_open(&editor, getpid(), NULL, NULL), SEGMENT_NOT_OURS);
	/* A process that may not have so many descriptors. */
	rlim_t before = limit_to(RLIMIT_NOFILE, 100);

	begin(NULL);
	assert_true(owner.file < 100);
	segment_close(&editor);
	/* A search that gives a reason finds it in any case. */
	limit_to(RLIMIT_NOFILE, before);
	assert_int_equal(segment_open(&editor, getpid(), NULL, &error), SEGMENT_FOUND);
	end(NULL);
}

/* --- counters and the environment ------------------------------------------------------------------------ */

/* A value that a program writes into its counters does not make a sum wrap around. */
TEST_WITH(begin, end, counters)
{
	struct segment_counters counters;

	segment_count_launch(&owner, true);
	segment_count_launch(&owner, true);
	segment_count_launch(&owner, false);
	atomic_store(&owner.slots[3].launches[true], UINT64_MAX);
	segment_read_counters(&owner, &counters);
	assert_each(counters.restricted == UINT64_MAX, true, counters.unrestricted, 1);
}

static void *count_alone(void *of)
{
	struct counter_slot *slot = segment_slot_take(of);

	/* All threads that have no counters of their own share the first. */
	if (slot == ((struct segment *)of)->slots)
		return "the shared slot";
	for (int i = 0; i < 1000; i++)
		segment_slot_count_launch(slot, i % 4 > 0);
	return NULL;
}

TEST_WITH(begin, end, threads_count_in_slots_of_their_own)
{
	struct segment_counters counters;
	int more = 0;

	threads_run(10, count_alone, &owner, 0);
	while (segment_slot_take(&owner) && more < 1000)
		more++;
	assert_in_range(more, 1, 999);
	assert_null(segment_slot_take(&owner));
	segment_count_launch(&owner, true);
	segment_read_counters(&owner, &counters);
	assert_each(counters.restricted, 7501, counters.unrestricted, 2500);
}

/* More threads than slots, one after the other: each gives its slot back. */
static void *count_and_give_back(void *of)
{
	struct counter_slot *slot = segment_slot_take(of);

	if (!slot)
		return "no slot";
	segment_slot_count_launch(slot, true);
	segment_slot_give_back(of, slot);
	return NULL;
}

TEST(threads_give_their_slots_back)
{
	struct segment_counters counters;

	segment_slots_forget();
	owner = make_segment();
	for (int i = 0; i < 5 * COUNTER_SLOTS; i++)
		threads_run(1, count_and_give_back, &owner, 0);
	segment_read_counters(&owner, &counters);
	assert_int_equal(counters.restricted, 5 * COUNTER_SLOTS);
	segment_close(&owner);
}

/* A small file limit would end the process by a signal; few descriptors, and the low ones stay free. */
TEST(limits)
{
	struct segment_partition partition = partition_of(first, 0, 7);
	struct segment_revision revision = revision_of(&partition);
	rlim_t before = limit_to(RLIMIT_FSIZE, 4096);
	struct segment segment;

	assert_int_equal(segment_create(&segment, &revision, NULL, -1, -1, &error), -1);
	assert_int_equal(segment_create_private(&segment, &revision, &error), 0);
	assert_set(&segment, first, 0, 7);
	assert_int_equal(segment_keep_findable(&segment, &error), -1);
	limit_to(RLIMIT_FSIZE, before);
	assert_non_null(strstr(error.reason, "the limit for files (ulimit -f) is 4096"));
	/* It works as soon as there is room. */
	assert_int_equal(segment_keep_findable(&segment, &error), 0);
	assert_true(segment.file >= HANDLE_USUAL);
	assert_set(&segment, first, 0, 7);
	segment_close(&segment);
	with_limit(RLIMIT_NOFILE, 64, segment = make_segment());
	assert_in_range(segment.file, 56, 63);
	segment_close(&segment);
}

TEST(environment_round_trip)
{
	static const struct {
		const char *text;
		unsigned int count;
		uint32_t run_us, period_us;
		unsigned int priority, weight;
	} rows[] = {
		{"0000:3b:00.0=0-7,9;0001:5e:00.0=255;quota=30000/100000;priority=80;weight=200", 2, 30000, 100000, 80, 200},
		{"priority=0", 0, 0, 0, 0, SEGMENT_WEIGHT_USUAL},
		{"weight=10000", 0, 0, 0, SEGMENT_PRIORITY_USUAL, 10000},
		{"quota=1000/2000", 0, 1000, 2000, SEGMENT_PRIORITY_USUAL, SEGMENT_WEIGHT_USUAL},
		{"", 0, 0, 0, SEGMENT_PRIORITY_USUAL, SEGMENT_WEIGHT_USUAL},
	};
	struct segment_revision revision;
	char again[SEGMENT_ENVIRONMENT_MAX];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		ROW("%s", rows[i].text);
		assert_int_equal(revision_parse(&revision, rows[i].text, NULL), 0);
		const struct segment_rank rank = revision.rank;

		assert_each(revision.count, rows[i].count, segment_rank_priority(rank), rows[i].priority);
		assert_each(revision.quota.run_us, rows[i].run_us, revision.quota.period_us, rows[i].period_us);
		assert_int_equal(segment_rank_weight(rank), rows[i].weight);
		assert_int_equal(segment_rank_is_given(rank), strstr(rows[i].text, "priority") || strstr(rows[i].text, "weight"));
		assert_string_equal(revision_format(&revision, again), rows[i].text);
	}
}

/* A policy of an earlier build is read over, and stays. */
TEST(a_former_policy)
{
	const struct segment_revision former = {.rank.unused = 0x10002}, wanted = {.rank.priority = 1 + 80};
	struct segment_revision revision;
	char again[SEGMENT_ENVIRONMENT_MAX];
	const char *const text = "0000:3b:00.0=0-7;priority=80;policy=ht,pe;lend=2000";

	assert_int_equal(revision_parse(&revision, text, &error), 0);
	assert_string_equal(revision_format(&revision, again), "0000:3b:00.0=0-7;priority=80;lend=2000");
	assert_false(revision_gives_any(&former, SETTING_COUNT));
	revision = former;
	revision_put_settings(&revision, &wanted);
	assert_each(revision.rank.unused, former.rank.unused, revision.rank.priority, wanted.rank.priority);
	assert_string_equal(revision_format(&revision, again), "priority=80");
}

TEST(garbage_in_the_environment)
{
	static const char *const garbage[] = {
		"x", "=", "0000:3b:00.0", "0000:3b:00.0=", "0000:3b:00.0=3-1", "0000:3b:00.0=256",
		"0000:3b:00.0=0;;", "zz:3b:00.0=0", "quota=", "quota=1", "quota=1/0", "quota=1/2x",
		"priority=", "priority=100", "priority=4294967296", "priority=x", "priority=8x", "weight=",
		"weight=0", "weight=10001", "weight=-1", "0000:3b:00.0=0\n",
	};

	for (size_t i = 0; i < COUNT_OF(garbage); i++) {
		struct segment_revision revision;

		ROW("%s", garbage[i]);
		error.reason[0] = '\0';
		assert_int_equal(revision_parse(&revision, garbage[i], &error), -1);
		assert_true(strlen(error.reason) > 0);
	}
}

RUN_TESTS(NULL, NULL)
