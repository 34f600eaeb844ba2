/* Groups of files, as who manages jobs uses them: claims, at the same time and killed anywhere; what is in the directory. */
/* processes: no */
#include "../cases.h"
#include "nvtaskset.h"

#include "base/proc.h"
#include "state/group/group.h"

#include <dirent.h>
#include <limits.h>
#include <sys/ptrace.h>

static struct nvtaskset_error error;

#define WORKERS 8
#define CLAIMS 1000 /* of all workers together */
#define STRIDE (SANITIZED ? 1009 : 23) /* of the instructions at which a change is killed; sanitizers multiply them */
#define TPCS 66
#define STEPS_MAX 200000

static char directory[] = "/tmp/nvtaskset-group-XXXXXX";
static struct nvtaskset_topology *topology;

FIXTURE(setup)
{
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	assert_non_null(mkdtemp(directory));
	setenv("NVTASKSET_TOPOLOGY", "share/topologies/h200-x2.txt", 1);
	assert_int_equal(nvtaskset_topology_load(&topology, NULL), 0);
}

static const char *path_of(const char *name)
{
	return text_of("%s/%s", directory, name);
}

static void remove_all(void)
{
	DIR *files = opendir(directory);
	const struct dirent *entry;

	while (files && (entry = readdir(files)))
		unlink(path_of(entry->d_name));
	if (files)
		closedir(files);
}

FIXTURE(teardown)
{
	remove_all();
	nvtaskset_topology_free(topology);
	assert_int_equal(rmdir(directory), 0);
}

static struct nvtaskset_group *make(const char *name)
{
	struct nvtaskset_group *group = NULL;

	assert_done(nvtaskset_group_make(&group, topology, path_of(name), NULL, &error));
	return group;
}

static int claim(struct nvtaskset_group *group, unsigned int count)
{
	const struct nvtaskset_claim claims[] = {{.gpu = 0, .count = count}};

	return nvtaskset_group_claim(group, claims, 1, NVTASKSET_PACKED, &error);
}

static struct nvtaskset_set set_of(const struct nvtaskset_group *group, unsigned int gpu)
{
	struct nvtaskset_set set = {{0}};

	assert_int_equal(nvtaskset_group_get(group, gpu, &set, NULL), 0);
	return set;
}

static unsigned int count_of(const struct nvtaskset_group *group, unsigned int gpu)
{
	struct nvtaskset_set set = set_of(group, gpu);

	return nvtaskset_set_count(&set);
}

static void assert_apart(const struct nvtaskset_group *a, const struct nvtaskset_group *b)
{
	struct nvtaskset_set first = set_of(a, 0), second = set_of(b, 0), common = nvtaskset_set_and(&first, &second);

	assert_int_equal(nvtaskset_set_count(&common), 0);
}

TEST(claims)
{
	struct nvtaskset_group *a = make("a"), *b = make("b"), *again;
	const struct nvtaskset_claim both[] = {{0, 4}, {1, 6}}, too_many[] = {{0, 4}, {1, 67}}, unknown[] = {{0, 4}, {2, 1}};
	char name[NVTASKSET_GROUP_NAME];

	assert_string_equal(nvtaskset_group_name(a, name), "a");
	assert_int_equal(claim(a, 20), 0);
	assert_int_equal(claim(b, 40), 0);
	assert_each(count_of(a, 0), 20, count_of(b, 0), 40);
	assert_apart(a, b);
	/* Once more is the same; another number is a mistake. */
	again = make("a");
	assert_int_equal(claim(again, 20), 0);
	struct nvtaskset_set first = set_of(a, 0), second = set_of(again, 0);

	assert_true(nvtaskset_set_equal(&first, &second));
	assert_error_code(claim(again, 21), INVALID);
	nvtaskset_group_close(again);
	/* All of them or none. */
	again = make("c");
	assert_error_code(nvtaskset_group_claim(again, too_many, 2, NVTASKSET_PACKED, &error), NO_ROOM);
	assert_error_code(nvtaskset_group_claim(again, unknown, 2, NVTASKSET_PACKED, &error), NOT_KNOWN);
	assert_int_equal(count_of(again, 0), TPCS);
	assert_int_equal(claim(again, 0), -1);
	assert_error_code(claim(again, 7), NO_ROOM);
	assert_int_equal(nvtaskset_group_claim(again, both, 2, NVTASKSET_DISTRIBUTED, &error), 0);
	assert_int_equal(count_of(again, 1), 6);
	/* A removed file gives them back; twice is no failure. */
	assert_int_equal(nvtaskset_group_remove(path_of("a"), &error), 0);
	assert_int_equal(nvtaskset_group_remove(path_of("a"), &error), 0);
	nvtaskset_group_close(a);
	a = make("d");
	assert_int_equal(claim(a, 22), 0);
	nvtaskset_group_close(a);
	nvtaskset_group_close(b);
	nvtaskset_group_close(again);
}

/* --- the directory --------------------------------------------------------------------------------------------------- */

/* Nobody would see what a file has that was removed. */
TEST(claim_of_a_removed_file)
{
	struct nvtaskset_group *former = make("job"), *job;

	assert_int_equal(nvtaskset_group_remove(path_of("job"), &error), 0);
	assert_error_has(claim(former, 4), "/job: was removed");
	job = make("job");
	assert_int_equal(claim(former, 4), -1);
	assert_int_equal(claim(job, TPCS), 0);
	nvtaskset_group_close(former);
	nvtaskset_group_close(job);
}

/* A file that others do not look at when they claim is no group: one by another name, one in another directory. */
TEST(names_of_files)
{
	static const char *const names[] = {"12", ".job", "a b", "-job", "job\n"};
	struct nvtaskset_group *group = make("job");
	const char *from = path_of("job");

	nvtaskset_group_close(group);
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		assert_int_equal(rename(from, path_of(names[i])), 0);
		from = path_of(names[i]);
		assert_error_code(nvtaskset_group_open(&group, topology, from, &error), INVALID);
		assert_int_equal(nvtaskset_group_make(&group, topology, from, NULL, &error), -1);
		assert_int_equal(nvtaskset_group_remove(from, &error), -1);
		assert_int_equal(access(from, F_OK), 0);
	}
	assert_int_equal(nvtaskset_group_remove(path_of(""), &error), -1);
	assert_int_equal(nvtaskset_group_remove(path_of("job/"), &error), -1);
}

static int lock_file(void)
{
	const struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int file = open(path_of(".nvtaskset-lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(file >= 0 && fcntl(file, F_OFD_SETLK, &lock) == 0);
	return file;
}

/* Whether the process has the lock's file open, under the name that it has now. */
static bool has_lock_open(pid_t pid)
{
	char link[PATH_MAX];
	bool found = false;

	for (int file = 3; file < 20 && !found; file++) {
		proc_read_link(link, sizeof link, "/proc/%d/fd/%d", (int)pid, file);
		found = strcmp(link, path_of(".nvtaskset-lock")) == 0;
	}
	return found;
}

static void wait_for_lock_open(pid_t pid)
{
	while (!has_lock_open(pid) && waitpid(pid, NULL, WNOHANG) == 0)
		usleep(1000);
}

/* Who cleans the directory removes the lock's file, too, perhaps while somebody waits for it. */
TEST(lock_file_is_removed)
{
	struct nvtaskset_group *waiting = make("job");
	int former, now, told[2];
	char byte;

	assert_int_equal(pipe(told), 0);
	pid_t child = fork();

	if (child == 0)
		_exit(read(told[0], &byte, 1) == 1 && claim(waiting, 4) == 0 ? 0 : 1);
	former = lock_file();
	assert_int_equal(write(told[1], "x", 1), 1);
	wait_for_lock_open(child);
	assert_int_equal(unlink(path_of(".nvtaskset-lock")), 0);
	now = lock_file();
	close(former);
	/* It has to come here: with the former lock alone, it would claim and end. */
	wait_for_lock_open(child);
	close(now);
	assert_ends_well(child);
	close(told[0]);
	close(told[1]);
	nvtaskset_group_close(waiting);
}

/* --- at the same time ------------------------------------------------------------------------------------------------ */

/* Who has which TPC, as the workers know it. */
static struct {
	_Atomic int holder[TPCS];
	_Atomic int done, wrong;
} *shared;

/* Marks the group's TPCs as held, or as free. */
static void mark(const struct nvtaskset_set *set, int from, int to)
{
	for (unsigned int tpc = nvtaskset_set_next(set, 0); tpc < TPCS; tpc = nvtaskset_set_next(set, tpc + 1)) {
		int expected = from;

		if (!atomic_compare_exchange_strong(&shared->holder[tpc], &expected, to))
			atomic_fetch_add(&shared->wrong, 1);
	}
}

static void claim_and_free(int worker, int number)
{
	struct nvtaskset_group *group;
	const char *path = path_of(text_of("job-%d-%d", worker, number));

	if (nvtaskset_group_make(&group, topology, path, NULL, &error) < 0) {
		atomic_fetch_add(&shared->wrong, 1);
		return;
	}
	if (claim(group, 1 + (unsigned int)rand() % 20) == 0) {
		struct nvtaskset_set set;

		nvtaskset_group_get(group, 0, &set, NULL);
		mark(&set, 0, worker + 1);
		usleep((useconds_t)(rand() % 500));
		mark(&set, worker + 1, 0);
	} else if (error.code != NVTASKSET_ERROR_NO_ROOM) {
		atomic_fetch_add(&shared->wrong, 1);
	}
	nvtaskset_group_close(group);
	if (nvtaskset_group_remove(path, NULL) < 0)
		atomic_fetch_add(&shared->wrong, 1);
}

TEST(never_given_twice)
{
	pid_t workers[WORKERS];

	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = fork();
		if (workers[i] == 0) {
			srand((unsigned int)i + 1);
			for (int number = 1; atomic_fetch_add(&shared->done, 1) < CLAIMS; number++)
				claim_and_free(i, number);
			_exit(0);
		}
	}
	for (int i = 0; i < WORKERS; i++)
		assert_ends_well(workers[i]);
	assert_int_equal(shared->wrong, 0);
	for (int tpc = 0; tpc < TPCS; tpc++)
		assert_int_equal(shared->holder[tpc], 0);
	munmap(shared, sizeof *shared);
	/* Nothing is left but the lock's file. */
	assert_int_equal(unlink(path_of(".nvtaskset-lock")), 0);
}

/* --- killed anywhere ------------------------------------------------------------------------------------------------- */

/* Runs it in a child that is killed after so many steps of a kind: system calls or instructions. False if the child came to
 * its end before. */
static bool run_and_kill(void (*run)(void), int request, int steps)
{
	pid_t child = fork();
	int status;
	bool is_over = false;

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	for (int step = 0; step < steps && !is_over; step++) {
		assert_int_equal(ptrace(request, child, NULL, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		is_over = WIFEXITED(status);
	}
	if (!is_over)
		end_child(child);
	return !is_over;
}

static void make_and_claim(void)
{
	struct nvtaskset_group *group;

	if (nvtaskset_group_make(&group, topology, path_of("killed"), NULL, NULL) == 0)
		claim(group, 10);
}

TEST(killed_while_it_claims)
{
	bool was_killed = true;
	int steps;

	for (steps = 1; was_killed && steps < 2000; steps++) {
		was_killed = run_and_kill(make_and_claim, PTRACE_SYSCALL, steps);
		/* The file is whole or not there, and nobody waits for who was killed. */
		bool is_there = access(path_of("killed"), F_OK) == 0;
		struct nvtaskset_group *killed = make("killed"), *other = make("other");

		assert_int_equal(claim(other, TPCS - 10), 0);
		assert_int_equal(claim(killed, 10), 0);
		assert_apart(killed, other);
		assert_true(was_killed || is_there);
		nvtaskset_group_close(killed);
		nvtaskset_group_close(other);
		assert_int_equal(access(path_of(".nvtaskset-new"), F_OK), -1);
		remove_all();
	}
	assert_each(was_killed, false, steps > 10, true);
}

static struct nvtaskset_group *changed;

static void change(void)
{
	struct nvtaskset_set set = {{0xff00}};

	nvtaskset_group_set(changed, 0, &set, NULL);
}

TEST(killed_while_it_changes)
{
	const struct nvtaskset_set after = {{0xff00}};
	const char *stride = getenv("SEGMENT_STRIDE");
	int by = stride ? atoi(stride) : STRIDE, steps, olds = 0, news = 0;
	bool was_killed = true;

	changed = make("changed");
	for (steps = 1; was_killed && steps < STEPS_MAX; steps += by) {
		/* Another one each time, so that a place of the ring that was not filled shows. */
		const struct nvtaskset_set before = {{(uint64_t)steps << 16}};

		assert_int_equal(nvtaskset_group_set(changed, 0, &before, NULL), 0);
		was_killed = run_and_kill(change, PTRACE_SINGLESTEP, steps);
		struct nvtaskset_set now = set_of(changed, 0);

		olds += nvtaskset_set_equal(&now, &before);
		news += nvtaskset_set_equal(&now, &after);
		assert_true(nvtaskset_set_equal(&now, &before) || nvtaskset_set_equal(&now, &after));
	}
	assert_false(was_killed);
	assert_true(olds > 0 && news > 0);
	nvtaskset_group_close(changed);
}

/* Who may write to a file may make it shorter under us: to read beyond its end would end this process. */
TEST(a_file_that_others_may_write_is_copied)
{
	static const struct segment_revision revision = {.count = 1};

	for (int is_open = 0; is_open < 2; is_open++) {
		int file = open(path_of("open"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		char name[GROUP_NAME_MAX + 1];
		struct group group;
		struct error why;

		assert_int_equal(group_fill(file, "open", "", &revision, &why), 0);
		assert_int_equal(fchmod(file, is_open ? 0666 : 0644), 0);
		assert_int_equal(group_map(&group, dup(file), &why), 0);
		assert_int_equal(group.is_copy, is_open);
		if (is_open)
			assert_int_equal(ftruncate(file, 0), 0);
		assert_string_equal(group_name(&group, name), "open");
		group_close(&group);
		close(file);
		remove_all();
	}
}

RUN_TESTS(setup, teardown)
