/* The parts of Slurm's plugin that work without Slurm. A controller that knows one job stands in for the real one. */
#include "allocation.h"
#include "cgroup.h"
#include "config.h"
#include "jobs.h"
#include "number.h"
#include "options.h"

/* cmocka's header needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- Slurm ---------------------------------------------------------------------------------------------------------- */

static uint32_t living;      /* the only job that the controller knows */
static time_t started;
static uint32_t restarted;
static bool does_not_answer;
static uint32_t ending;      /* JOB_COMPLETING, or nothing */
static unsigned int asked;

int slurm_load_job(job_info_msg_t **message, uint32_t id, uint16_t flags)
{
	static char *gres[] = {(char *)"gpu:0,shard:8(IDX:1)"};
	static job_info_t job;
	static job_info_msg_t answer = {.record_count = 1, .job_array = &job};

	(void)flags;
	asked++;
	job = (job_info_t){.job_id = id, .job_state = JOB_RUNNING | ending, .start_time = started, .restart_cnt = restarted,
	                   .nodes = (char *)"n1", .gres_detail_cnt = 1, .gres_detail_str = gres};
	*message = &answer;
	return does_not_answer || id != living ? SLURM_ERROR : SLURM_SUCCESS;
}

int slurm_get_errno(void)
{
	return does_not_answer ? SLURM_COMMUNICATIONS_CONNECTION_ERROR : ESLURM_INVALID_JOB_ID;
}

char *slurm_strerror(int number)
{
	(void)number;
	return (char *)"connect failure";
}

void slurm_free_job_info_msg(job_info_msg_t *message)
{
	(void)message;
}

int slurm_requeue(uint32_t id, uint32_t flags)
{
	(void)id;
	(void)flags;
	return SLURM_SUCCESS;
}

hostlist_t slurm_hostlist_create(const char *names)
{
	return (hostlist_t)names;
}

int slurm_hostlist_find(hostlist_t list, const char *name)
{
	return strcmp((const char *)list, name) == 0 ? 0 : -1;
}

void slurm_hostlist_destroy(hostlist_t list)
{
	(void)list;
}

void slurm_error(const char *format, ...)
{
	(void)format;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
	(void)spank;
	assert_true(strlen(option->name) <= SPANK_OPTION_MAXLEN);
	return option->cb(0, strcmp(option->name, "tpcs") == 0 ? "8" : "1", 1) == 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

static void test_numbers(void **state)
{
	static const char *const wrong[] = {"", "-1", "+1", " 1", "1 ", "1x", "0x1", "4294967296", "99999999999999999999", "11", "2"};
	unsigned int number = 7;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(number_parse(&number, wrong[i], 3, 10), -1);
	assert_int_equal(number, 7);
	assert_int_equal(number_parse(&number, "10", 3, 10), 0);
	assert_int_equal(number, 10);
	assert_int_equal(number_parse(&number, "4294967295", 0, UINT32_MAX), 0);
	assert_int_equal(number, UINT32_MAX);
}

static void test_options(void **state)
{
	static const char *const wrong[] = {"", "0", "%", "0%", "101%", "257", "8x", "8%%", "-8", "1.5", "12345678901234567"};
	struct options options;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(options_parse_tpcs(&options, wrong[i]), -1);
	assert_int_equal(options_parse_tpcs(&options, "8"), 0);
	assert_int_equal(options.unit, OPTIONS_TPCS);
	assert_int_equal(options.number, 8);
	assert_int_equal(options_parse_tpcs(&options, "25%"), 0);
	assert_int_equal(options.unit, OPTIONS_PERCENT);
	assert_int_equal(options.number, 25);
	assert_int_equal(options_parse_gpcs(&options, "1%"), -1);
	assert_int_equal(options_parse_gpcs(&options, "2"), 0);
}

static void test_two_options_exclude_each_other(void **state)
{
	(void)state;
	assert_int_equal(options_register(NULL), -1);
	assert_int_equal(options_given()->unit, OPTIONS_TPCS);
}

static void test_options_are_compared_with_what_the_job_has(void **state)
{
	const struct options none = {OPTIONS_NONE, 0}, eight = {OPTIONS_TPCS, 8}, quarter = {OPTIONS_PERCENT, 25}, gpc = {OPTIONS_GPCS, 1};
	struct nvtaskset_error error;

	(void)state;
	assert_int_equal(options_check(&none, 0, 0, &error), 0);
	assert_int_equal(options_check(&eight, 8, 66, &error), 0);
	assert_int_equal(options_check(&eight, 9, 66, &error), -1);
	assert_int_equal(options_check(&quarter, 17, 66, &error), 0);
	assert_int_equal(options_check(&quarter, 16, 66, &error), -1);
	assert_int_equal(options_check(&gpc, 9, 66, &error), 0);
	assert_int_equal(options_check(&gpc, 0, 0, &error), -1);
	assert_int_equal(options_check(&eight, 0, 0, &error), -1);
	assert_non_null(strstr(error.reason, "job_submit.lua"));
}

static void test_configuration(void **state)
{
	static const char *const wrong[] = {"directry=/x", "directory", "directory=x", "wait=", "wait=-1", "wait=3601", "strategy=", "=", "",
	                                    "library=lib", "gpus=", "mps=", "mps=on", "directory=/y"};
	char *arguments[] = {(char *)"directory=/spool/%n/x", NULL};
	char directory[PATH_MAX];
	struct nvtaskset_error error;
	struct config config;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		arguments[1] = (char *)wrong[i];
		assert_int_equal(config_parse(&config, 2, arguments, &error), -1);
	}
	arguments[1] = (char *)"mps=yes";
	assert_int_equal(config_parse(&config, 2, arguments, &error), 0);
	assert_string_equal(config.mps, "");
	arguments[1] = (char *)"library=none";
	assert_int_equal(config_parse(&config, 2, arguments, &error), 0);
	assert_string_equal(config.library, "");
	assert_int_equal(config.wait, 60);
	assert_string_equal(config.mps, "no");
	assert_int_equal(config_directory(&config, "n1", directory, &error), 0);
	assert_string_equal(directory, "/spool/n1/x");
	assert_int_equal(config_directory(&config, NULL, directory, &error), -1);
	assert_int_equal(config_directory(&config, "..", directory, &error), 0);
	assert_int_equal(config_directory(&config, "../..", directory, &error), -1);
}

static void check_allocation(const char *gres, unsigned int count, const struct allocation_gpu *gpus)
{
	struct allocation allocation = {.count = 7};

	assert_int_equal(allocation_parse(&allocation, gres, NULL), 0);
	assert_int_equal(allocation.count, count);
	for (unsigned int i = 0; i < count; i++) {
		assert_int_equal(allocation.gpus[i].number, gpus[i].number);
		assert_int_equal(allocation.gpus[i].shards, gpus[i].shards);
	}
}

static void test_allocations(void **state)
{
	static const char *const wrong[] = {
		"shard:8", "shard:8(CNT:8)", "shard:(IDX:0)", "shard:8(IDX:)", "shard:8(IDX:0-1)", "shard:8(IDX:0,2)", "shard:x(IDX:0)",
		"shard:8(IDX:0", "shard:8(IDX:0)x", "gpu:1(IDX:0),shard:8(IDX:0-1),x:1", "shard:8(7/66,2/66)", "shard:8(8)", "shard:8(/66)",
		"shard:8(8/66,)", "gpu:2(IDX:1-0)", "gpu:2(IDX:0-)", "gpu:2(IDX:-1)", "gpu:2(1/1,1/1)", "gpu:99(IDX:0-98)", "gpu:x(IDX:0)",
		"shard:4294967297(4294967297/66)", "shard:8(4294967295/66,9/66)",
	};
	struct allocation allocation;
	struct nvtaskset_error error;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (allocation_parse(&allocation, wrong[i], &error) == 0)
			fail_msg("%s: was read", wrong[i]);
	check_allocation("", 0, NULL);
	check_allocation("craynetwork:1", 0, NULL);
	check_allocation("shard:0(IDX:)", 0, NULL);
	check_allocation("gpu:h200:0(IDX:),shard:h200:44(IDX:3)", 1, (struct allocation_gpu[]){{3, 44}});
	/* As of Slurm 23.11: so many of each. */
	check_allocation("shard:9(8/66,0/66,1/66)", 2, (struct allocation_gpu[]){{0, 8}, {2, 1}});
	/* Whole GPUs. */
	check_allocation("gpu:h200:2(IDX:0,3),craynetwork:1", 2, (struct allocation_gpu[]){{0, 0}, {3, 0}});
	check_allocation("gpu:3(IDX:1-2,7)", 3, (struct allocation_gpu[]){{1, 0}, {2, 0}, {7, 0}});
	check_allocation("gpu:1(IDX:0),shard:8(IDX:1)", 2, (struct allocation_gpu[]){{0, 0}, {1, 8}});
}

static void test_control_groups(void **state)
{
	static const struct {
		const char *line, *path; /* of job 7; NULL: it is not there */
	} cases[] = {
		{"0::/system.slice/slurmstepd.scope/job_7/step_0/slurm\n", "/system.slice/slurmstepd.scope/job_7"},
		{"6:freezer:/slurm_n1/uid_0/job_7\n", "/slurm_n1/uid_0/job_7"},
		{"6:freezer:/slurm_n1/uid_0/job_7/step_extern", "/slurm_n1/uid_0/job_7"},
		{"0::/job_71/job_7/x", "/job_71/job_7"},
		{"6:freezer:/slurm_n1/uid_0/job_71\n", NULL},
		{"0::/\n", NULL},
		{"1:name=/job_7:/", NULL},
		{"job_7", NULL},
		{"", NULL},
	};
	char path[PATH_MAX], line[400];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(cgroup_read(7, cases[i].line, path), cases[i].path != NULL);
		if (cases[i].path)
			assert_string_equal(path, cases[i].path);
	}
	/* Longer than a group has room for. */
	snprintf(line, sizeof line, "0::/%0250d/job_7/step_0", 0);
	assert_false(cgroup_read(7, line, path));
	snprintf(line, sizeof line, "0::/%0248d/job_7/step_0", 0);
	assert_true(cgroup_read(7, line, path));
}

static void test_names_of_files(void **state)
{
	static const char *const wrong[] = {"job-", "job-0", "job-x", "job-1x", "job-1.1", "Job-1", ".note-", "job-4294967296",
	                                    ".looked", ".", "..", "job--1", "job-1000000000000000000000000000000000000000000000"};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(jobs_of_name(wrong[i]), 0);
	assert_int_equal(jobs_of_name("job-123"), 123);
	assert_int_equal(jobs_of_name(".note-4294967295"), UINT32_MAX);
}

/* --- files ----------------------------------------------------------------------------------------------------------- */

static char directory[] = "/tmp/nvtaskset-slurm-XXXXXX";

static int make_directory(void **state)
{
	(void)state;
	strcpy(strrchr(directory, '-') + 1, "XXXXXX");
	return mkdtemp(directory) && chmod(directory, 0755) == 0 ? 0 : -1;
}

static int remove_directory(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command);
}

static void put(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static bool is_there(const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	return access(path, F_OK) == 0;
}

static void test_notes(void **state)
{
	static const char *const garbage[] = {"", "x", "7 0 0", "7 0 0 1", "7 0 0 1 1 8\n", "7 0 0 1 \n", "7 0 0 1 1 8 66 7\n", "7 0 0 1 1 8 66x\n",
	                                      "99999999999999999999999999999999999999999999999999 x"};
	const struct job job = {directory, "n1", 7};
	struct jobs_note note = {.start = 1795375135, .restarts = 2, .user = 1000, .is_claimed = 1, .count = 2, .gpus = {{1, 8, 66}, {3, 0, 66}}}, read;

	(void)state;
	assert_false(jobs_read_note(&job, &read));
	jobs_write_note(&job, &note);
	assert_false(jobs_read_note(&job, &read)); /* its group is missing */
	put("job-7", "");
	assert_true(jobs_read_note(&job, &read));
	assert_memory_equal(&read, &note, sizeof note);
	assert_int_equal(jobs_of_user(&job, 1000), 1);
	assert_int_equal(jobs_of_user(&job, 1001), 0);
	for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
		put(".note-7", garbage[i]);
		assert_false(jobs_read_note(&job, &read));
	}
	assert_int_equal(jobs_of_user(&job, 1000), 0);
}

static void test_the_longest_note(void **state)
{
	const struct job job = {directory, "n1", 7};
	struct jobs_note note = {.start = INT64_MAX, .restarts = UINT32_MAX, .user = UINT32_MAX, .count = ALLOCATION_GPUS_MAX}, read;

	(void)state;
	for (unsigned int i = 0; i < ALLOCATION_GPUS_MAX; i++)
		note.gpus[i] = (struct jobs_gpu){UINT16_MAX, NVTASKSET_TPCS_MAX, NVTASKSET_TPCS_MAX};
	jobs_write_note(&job, &note);
	assert_true(jobs_read_note(&job, &read));
	assert_memory_equal(&read, &note, sizeof note);
}

static void test_files_of_dead_jobs_are_removed(void **state)
{
	const struct job job = {directory, "n1", 7};
	struct nvtaskset_error error;

	(void)state;
	for (const char *const *name = (const char *const[]){"job-7", "job-8", ".note-8", "job-9", ".note-9", "job-x", "garbage", NULL}; *name; name++)
		put(*name, "garbage");
	does_not_answer = true;
	assert_int_equal(jobs_reconcile_once(&job, "1.1", &error), -1);
	assert_true(is_there("job-8") && is_there("job-9"));
	does_not_answer = false;
	living = 8;
	assert_int_equal(jobs_reconcile_once(&job, "1.1", &error), 0);
	assert_true(is_there("job-7") && is_there("job-8") && is_there(".note-8") && is_there("job-x") && is_there("garbage"));
	assert_false(is_there("job-9") || is_there(".note-9"));
	asked = 0;
	assert_int_equal(jobs_reconcile_once(&job, "1.1", &error), 0);
	assert_int_equal(asked, 0);
	living = 0;
	assert_int_equal(jobs_reconcile_once(&job, "2.2", &error), 0);
	assert_false(is_there("job-8") || is_there(".note-8"));
	assert_true(is_there("job-7"));
}

static void test_another_nodes_jobs_are_dead_here(void **state)
{
	const struct job job = {directory, "n2", 7};
	struct nvtaskset_error error;

	(void)state;
	living = 8;
	put("job-8", "");
	assert_int_equal(jobs_reconcile(&job, &error), 0);
	assert_false(is_there("job-8"));
}

/* Its epilog failed, and slurmd has not been started anew. */
static void test_what_an_earlier_run_has_left_is_removed_by_the_next(void **state)
{
	const struct job job = {directory, "n1", 7};
	const struct jobs_note claimed = {.start = 1000, .is_claimed = 1, .count = 1, .gpus = {{0, 8, 66}}};
	struct jobs_note note;
	struct nvtaskset_error error;

	(void)state;
	living = 7;
	started = 1000;
	put("job-7", "");
	jobs_write_note(&job, &claimed);
	/* The same run. */
	assert_int_equal(jobs_begin(&job, 1000, &note, &error), 0);
	assert_true(is_there("job-7") && jobs_read_note(&job, &note) && note.is_claimed);
	for (int run = 0; run < 2; run++) {
		put("job-7", "");
		jobs_write_note(&job, &claimed);
		started = 1000 + (run == 0);
		restarted = run == 1;
		assert_int_equal(jobs_begin(&job, 1000, &note, &error), 0);
		assert_false(is_there("job-7"));
		assert_true(jobs_read_note(&job, &note));
		assert_true(!note.is_claimed && note.count == 1 && note.gpus[0].number == 1 && note.gpus[0].shards == 8 && note.user == 1000);
	}
	restarted = 0;
	/* Nobody knows: the job's steps may be running. */
	does_not_answer = true;
	assert_int_equal(jobs_begin(&job, 1000, &note, &error), -1);
	does_not_answer = false;
	assert_true(is_there(".note-7"));
}

static void test_a_job_that_the_controller_does_not_know_must_not_run(void **state)
{
	const struct job job = {directory, "n1", 7};
	struct jobs_note note;
	struct nvtaskset_error error;

	(void)state;
	living = 8;
	assert_int_equal(jobs_begin(&job, 0, &note, &error), -1);
	assert_non_null(strstr(error.reason, "does not know that job 7 is on this node"));
}

static void test_a_job_that_is_ending_begins_nothing_and_keeps_its_files(void **state)
{
	const struct job job = {directory, "n1", 7}, other = {directory, "n1", 8};
	struct jobs_note note;
	struct nvtaskset_error error;

	(void)state;
	living = 7;
	ending = JOB_COMPLETING;
	assert_int_equal(jobs_begin(&job, 0, &note, &error), -1);
	assert_non_null(strstr(error.reason, "job 7 is ending"));
	assert_false(is_there(".note-7"));
	put("job-7", "");
	assert_int_equal(jobs_reconcile(&other, &error), 0);
	assert_true(is_there("job-7"));
	ending = 0;
}

/* A controller that was killed has forgotten it, and its programs run for a moment. */
static void test_files_of_a_job_stay_while_its_programs_run(void **state)
{
	const struct job job = {directory, "n1", 7}, forgotten = {directory, "n1", 8};
	struct nvtaskset_error error;
	int ready[2];
	char byte;

	(void)state;
	living = 7;
	put("job-8", "");
	put(".note-8", "");
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();

	if (child == 0) {
		jobs_hold(&forgotten);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_true(jobs_is_held(&forgotten) && !jobs_is_held(&job));
	assert_int_equal(jobs_reconcile(&job, &error), 0);
	assert_true(is_there("job-8") && is_there(".note-8") && is_there(".live-8"));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(jobs_reconcile(&job, &error), 0);
	assert_false(is_there("job-8") || is_there(".note-8") || is_there(".live-8"));
}

static void test_small_files_follow_no_links(void **state)
{
	const struct job job = {directory, "n1", 7};
	const struct jobs_note note = {.start = 7};
	char path[128], victim[128];
	struct jobs_note read;

	(void)state;
	snprintf(path, sizeof path, "%s/.note-7", directory);
	snprintf(victim, sizeof victim, "%s/victim", directory);
	put("victim", "7 0 0 0\n");
	assert_int_equal(symlink(victim, path), 0);
	assert_false(jobs_read_note(&job, &read));
	jobs_write_note(&job, &note);
	assert_true(jobs_read_note(&job, &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_two_options_exclude_each_other),
		cmocka_unit_test(test_options_are_compared_with_what_the_job_has),
		cmocka_unit_test(test_configuration),
		cmocka_unit_test(test_allocations),
		cmocka_unit_test(test_control_groups),
		cmocka_unit_test(test_names_of_files),
		cmocka_unit_test_setup_teardown(test_notes, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_files_of_dead_jobs_are_removed, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_another_nodes_jobs_are_dead_here, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_the_longest_note, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_what_an_earlier_run_has_left_is_removed_by_the_next, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_a_job_that_the_controller_does_not_know_must_not_run, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_a_job_that_is_ending_begins_nothing_and_keeps_its_files, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_files_of_a_job_stay_while_its_programs_run, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_small_files_follow_no_links, make_directory, remove_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
