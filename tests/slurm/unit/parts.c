/* The parts of Slurm's plugin that work without Slurm. A controller that knows one job stands in for the real one. */
#include "../../cases.h"
#include "allocation.h"
#include "plugin.h"
#include "config.h"
#include "jobs.h"
#include "common.h"
#include "../../unit/process.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <sys/file.h>

/* --- Slurm ---------------------------------------------------------------------------------------------------------- */

static uint32_t living;      /* the only job that the controller knows */
static time_t started;
static uint32_t restarted;
static bool does_not_answer;
static uint32_t ending;      /* JOB_COMPLETING, or nothing */
static unsigned int asked;

static struct nvtaskset_error error; /* the last one */

int slurm_load_job(job_info_msg_t **message, uint32_t id, uint16_t flags)
{
	static char *gres[] = {(char *)"gpu:0,shard:8(IDX:1)"};
	static job_info_t job;
	static job_info_msg_t answer = {.record_count = 1, .job_array = &job};

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
	return (char *)"connect failure";
}

void slurm_free_job_info_msg(job_info_msg_t *message)
{
}

int slurm_requeue(uint32_t id, uint32_t flags)
{
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
}

static char logged[256]; /* the first line of a case that empties it */

void slurm_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (logged[0] == '\0')
		vsnprintf(logged, sizeof logged, format, arguments);
	va_end(arguments);
}

static const char *tpcs = "8"; /* what a user has sent */

spank_err_t spank_option_register(spank_t spank, struct spank_option *option)
{
	assert_true(strlen(option->name) <= SPANK_OPTION_MAXLEN);
	const char *text = strcmp(option->name, "tpcs") == 0 ? tpcs : "1";

	if (strcmp(option->name, "gpu-memory") == 0)
		text = "1G";

	return option->cb(option->val, text, 1) == 0 ? ESPANK_SUCCESS : ESPANK_ERROR;
}

/* --- text ------------------------------------------------------------------------------------------------------------ */

TEST(numbers)
{
	static const char *const wrong[] = {"", "-1", "+1", " 1", "1 ", "1x", "0x1", "4294967296", "99999999999999999999", "11", "2"};
	unsigned int number = 7;

	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		assert_int_equal(number_parse(&number, wrong[i], 3, 10), -1);
	assert_int_equal(number, 7);
	assert_int_equal(number_parse(&number, "10", 3, 10), 0);
	assert_int_equal(number, 10);
	assert_int_equal(number_parse(&number, "4294967295", 0, UINT32_MAX), 0);
	assert_int_equal(number, UINT32_MAX);
}

TEST(options)
{
	static const char *const wrong[] = {"", "0", "%", "0%", "101%", "257", "8x", "8%%", "-8", "1.5", "12345678901234567"};
	struct options options;

	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		assert_int_equal(options_parse_tpcs(&options, wrong[i]), -1);
	assert_int_equal(options_parse_tpcs(&options, "8"), 0);
	assert_each(options.unit, OPTIONS_TPCS, options.number, 8);
	assert_int_equal(options_parse_tpcs(&options, "25%"), 0);
	assert_each(options.unit, OPTIONS_PERCENT, options.number, 25);
	assert_int_equal(options_parse_gpcs(&options, "1%"), -1);
	assert_int_equal(options_parse_gpcs(&options, "2"), 0);
}

TEST(a_limit_of_memory)
{
	static const char *const wrong[] = {"", "M", "0G", "2", "2K", "2g", "1.5G", "-1G", "2GB", "1048577T",
	                                    "12345678901234567M"};
	struct options options = {.unit = OPTIONS_GPCS, .number = 2};

	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		assert_int_equal(options_parse_memory(&options, wrong[i]), -1);
	assert_int_equal(options_parse_memory(&options, "512M"), 0);
	assert_each(options.memory, UINT64_C(512) << 20, options.unit, OPTIONS_GPCS);
	assert_int_equal(options_parse_memory(&options, "2T"), 0);
	assert_int_equal(options.memory, UINT64_C(2) << 40);
}

TEST(a_line_end_in_an_option_does_not_reach_the_log)
{
	logged[0] = '\0';
	tpcs = "8\nanother line";
	assert_int_equal(options_register(NULL), -1);
	assert_string_equal(logged,
	                    "nvtaskset: --tpcs=8?another line: wants a number of TPCs from 1 on, or a part of a GPU such as 25%");
}

TEST(options_are_compared_with_what_the_job_has)
{
	const struct options none = {.unit = OPTIONS_NONE}, eight = {.unit = OPTIONS_TPCS, .number = 8};
	const struct options quarter = {.unit = OPTIONS_PERCENT, .number = 25}, gpc = {.unit = OPTIONS_GPCS, .number = 1};
	const struct options memory = {.memory = 1 << 20};

	assert_int_equal(options_check(&none, 0, 0, &error), 0);
	assert_int_equal(options_check(&eight, 8, 66, &error), 0);
	assert_int_equal(options_check(&eight, 9, 66, &error), -1);
	assert_int_equal(options_check(&quarter, 17, 66, &error), 0);
	assert_int_equal(options_check(&quarter, 16, 66, &error), -1);
	assert_int_equal(options_check(&gpc, 9, 66, &error), 0);
	assert_int_equal(options_check(&gpc, 0, 0, &error), -1);
	assert_int_equal(options_check(&memory, 8, 66, &error), 0);
	assert_int_equal(options_check(&memory, 0, 0, &error), -1);
	assert_int_equal(options_check(&eight, 0, 0, &error), -1);
	assert_non_null(strstr(error.reason, "job_submit.lua"));
}

TEST(configuration)
{
	static const char *const wrong[] = {"directry=/x", "directory", "directory=x", "wait=", "wait=-1", "wait=3601", "strategy=", "=", "",
	                                    "library=lib", "gpus=", "mps=", "mps=on", "directory=/y"};
	char *arguments[] = {(char *)"directory=/spool/%n/x", NULL};
	char directory[PATH_MAX];
	struct config config;

	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
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
	for (unsigned int i = 0; i < count; i++)
		assert_each(allocation.gpus[i].number, gpus[i].number, allocation.gpus[i].shards, gpus[i].shards);
}

TEST(allocations)
{
	static const char *const wrong[] = {
		"shard:8", "shard:8(CNT:8)", "shard:(IDX:0)", "shard:8(IDX:)", "shard:8(IDX:0-1)", "shard:8(IDX:0,2)", "shard:x(IDX:0)",
		"shard:8(IDX:0", "shard:8(IDX:0)x", "gpu:1(IDX:0),shard:8(IDX:0-1),x:1", "shard:8(7/66,2/66)", "shard:8(8)", "shard:8(/66)",
		"shard:8(8/66,)", "gpu:2(IDX:1-0)", "gpu:2(IDX:0-)", "gpu:2(IDX:-1)", "gpu:2(1/1,1/1)", "gpu:99(IDX:0-98)", "gpu:x(IDX:0)",
		"shard:4294967297(4294967297/66)", "shard:8(4294967295/66,9/66)",
	};
	struct allocation allocation;

	for (size_t i = 0; i < COUNT_OF(wrong); i++)
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

TEST(shards_that_a_job_asks_for)
{
	assert_true(allocation_asks_for_shards("gres:shard:8"));
	assert_true(allocation_asks_for_shards("gres:shard"));
	assert_true(allocation_asks_for_shards("gres:gpu:1,gres:shard:h200:10"));
	assert_true(allocation_asks_for_shards("gres:shard:a:0,gres:shard:b:1"));
	assert_false(allocation_asks_for_shards("gres:shard:0"));
	assert_false(allocation_asks_for_shards("gres:shard:h200:0,gres:gpu:1"));
	assert_false(allocation_asks_for_shards("gres:gpu:1"));
}

TEST(control_groups)
{
	static const struct {
		const char *line, *path; /* of job 7; NULL: it is not there */
	} cases[] = {
		{"0::/system.slice/slurmstepd.scope/job_7/step_0/slurm\n", "/system.slice/slurmstepd.scope/job_7"},
		{"6:freezer:/slurm_n1/uid_0/job_7\n", "/slurm_n1/uid_0/job_7"},
		{"6:freezer:/slurm_n1/uid_0/job_7/step_extern", "/slurm_n1/uid_0/job_7"},
		{"0::/job_71/job_7/x", "/job_71/job_7"},
		{"6:freezer:/slurm_n1/uid_0/job_71\n", NULL}, {"0::/\n", NULL}, {"1:name=/job_7:/", NULL}, {"job_7", NULL},
		{"", NULL},
	};
	char path[PATH_MAX];

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		assert_int_equal(claim_read_cgroup(7, cases[i].line, path), cases[i].path != NULL);
		if (cases[i].path)
			assert_string_equal(path, cases[i].path);
	}
	/* Longer than a group has room for. */
	assert_false(claim_read_cgroup(7, text_of("0::/%0250d/job_7/step_0", 0), path));
	assert_true(claim_read_cgroup(7, text_of("0::/%0248d/job_7/step_0", 0), path));
}

TEST(names_of_files)
{
	static const char *const wrong[] = {"job-", "job-0", "job-x", "job-1x", "job-1.1", "Job-1", ".note-", "job-4294967296",
	                                    ".looked", ".", "..", "job--1", "job-1000000000000000000000000000000000000000000000"};

	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		assert_int_equal(jobs_of_name(wrong[i]), 0);
	assert_int_equal(jobs_of_name("job-123"), 123);
	assert_int_equal(jobs_of_name(".note-4294967295"), UINT32_MAX);
}

/* --- files ----------------------------------------------------------------------------------------------------------- */

static char directory[] = "/tmp/nvtaskset-slurm-XXXXXX";
static const struct job job = {directory, "n1", 7};

static int make_directory(void **state)
{
	strcpy(strrchr(directory, '-') + 1, "XXXXXX");
	living = restarted = ending = 0;
	started = 0;
	does_not_answer = false;
	tpcs = "8";
	return mkdtemp(directory) && chmod(directory, 0755) == 0 ? 0 : -1;
}

static int remove_directory(void **state)
{
	return system(text_of("rm -rf %s", directory));
}

static const char *below(const char *name)
{
	return text_of("%s/%s", directory, name);
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(below(name), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static bool is_there(const char *name)
{
	return access(below(name), F_OK) == 0;
}

TEST(notes)
{
	static const char *const garbage[] = {"", "x", "7 0 0", "7 0 0 1", "7 0 0 1 1 8\n", "7 0 0 1 \n", "7 0 0 1 1 8 66 7\n", "7 0 0 1 1 8 66x\n", "7 0 0 1 memory\n", "7 0 0 1 memory 5 6\n",
	                                      "99999999999999999999999999999999999999999999999999 x"};
	struct jobs_note note = {
		.start = 1795375135, .restarts = 2, .user = 1000, .is_claimed = 1, .count = 2, .gpus = {{1, 8, 66}, {3, 0, 66}}};
	struct jobs_note read;

	assert_false(jobs_read_note(&job, &read));
	jobs_write_note(&job, &note);
	assert_false(jobs_read_note(&job, &read)); /* its group is missing */
	put("job-7", "");
	assert_true(jobs_read_note(&job, &read));
	assert_memory_equal(&read, &note, sizeof note);
	note.memory = UINT64_C(1) << 40;
	jobs_write_note(&job, &note);
	assert_true(jobs_read_note(&job, &read));
	assert_memory_equal(&read, &note, sizeof note);
	assert_int_equal(jobs_of_user(&job, 1000), 1);
	assert_int_equal(jobs_of_user(&job, 1001), 0);
	for (size_t i = 0; i < COUNT_OF(garbage); i++) {
		put(".note-7", garbage[i]);
		assert_false(jobs_read_note(&job, &read));
	}
	assert_int_equal(jobs_of_user(&job, 1000), 0);
}

TEST(the_longest_note)
{
	struct jobs_note note = {.start = INT64_MAX, .restarts = UINT32_MAX, .user = UINT32_MAX, .count = ALLOCATION_GPUS_MAX,
	                         .memory = UINT64_MAX}, read;

	for (unsigned int i = 0; i < ALLOCATION_GPUS_MAX; i++)
		note.gpus[i] = (struct jobs_gpu){UINT16_MAX, NVTASKSET_TPCS_MAX, NVTASKSET_TPCS_MAX};
	jobs_write_note(&job, &note);
	assert_true(jobs_read_note(&job, &read));
	assert_memory_equal(&read, &note, sizeof note);
}

TEST(files_of_dead_jobs_are_removed)
{
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

TEST(another_nodes_jobs_are_dead_here)
{
	const struct job elsewhere = {directory, "n2", 7};

	living = 8;
	put("job-8", "");
	assert_int_equal(jobs_reconcile(&elsewhere, &error), 0);
	assert_false(is_there("job-8"));
}

/* Its epilog failed, and slurmd has not been started anew. */
TEST(what_an_earlier_run_has_left_is_removed_by_the_next)
{
	const struct jobs_note claimed = {.start = 1000, .is_claimed = 1, .count = 1, .gpus = {{0, 8, 66}}};
	struct jobs_note note;

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
	/* Nobody knows: the job's steps may be running. */
	does_not_answer = true;
	assert_int_equal(jobs_begin(&job, 1000, &note, &error), -1);
	assert_true(is_there(".note-7"));
}

TEST(a_job_that_the_controller_does_not_know_must_not_run)
{
	struct jobs_note note;

	living = 8;
	assert_int_equal(jobs_begin(&job, 0, &note, &error), -1);
	assert_non_null(strstr(error.reason, "does not know that job 7 is on this node"));
}

TEST(a_job_that_is_ending_begins_nothing_and_keeps_its_files)
{
	const struct job other = {directory, "n1", 8};
	struct jobs_note note;

	living = 7;
	ending = JOB_COMPLETING;
	assert_int_equal(jobs_begin(&job, 0, &note, &error), -1);
	assert_non_null(strstr(error.reason, "job 7 is ending"));
	assert_false(is_there(".note-7"));
	put("job-7", "");
	assert_int_equal(jobs_reconcile(&other, &error), 0);
	assert_true(is_there("job-7"));
}

static const struct job forgotten = {directory, "n1", 8};

static void hold_forgotten(char order)
{
	jobs_hold(&forgotten);
}

/* A controller that was killed has forgotten it, and its programs run for a moment. */
TEST(files_of_a_job_stay_while_its_programs_run)
{
	living = 7;
	put("job-8", "");
	put(".note-8", "");
	struct process program = process_start(hold_forgotten);

	assert_true(jobs_is_held(&forgotten) && !jobs_is_held(&job));
	assert_int_equal(jobs_reconcile(&job, &error), 0);
	assert_true(is_there("job-8") && is_there(".note-8") && is_there(".live-8"));
	process_end(&program);
	assert_int_equal(jobs_reconcile(&job, &error), 0);
	assert_false(is_there("job-8") || is_there(".note-8") || is_there(".live-8"));
}

TEST(small_files_follow_no_links)
{
	const struct jobs_note note = {.start = 7};
	struct jobs_note read;

	put("victim", "7 0 0 0\n");
	assert_int_equal(symlink(below("victim"), below(".note-7")), 0);
	assert_false(jobs_read_note(&job, &read));
	jobs_write_note(&job, &note);
	assert_true(jobs_read_note(&job, &read));
}

/* --- MPS ------------------------------------------------------------------------------------------------------------- */

TEST(no_link_leads_root_out_of_the_directory)
{
	char path[PATH_MAX];

	assert_true(mkdir(below("mps-1000"), 0700) == 0 && mkdir(below("away"), 0700) == 0);
	put("away/nvidia-cuda-mps-control.pid", text_of("%d", (int)getpid()));
	assert_int_equal(symlink(below("away"), below("mps-1000/pipe")), 0);
	assert_int_equal(mps_find(&job, 1000, path, &error), -1);
	assert_true(unlink(below("mps-1000/pipe")) == 0 && rename(below("away"), below("mps-1000/pipe")) == 0);
	assert_int_equal(mps_find(&job, 1000, path, &error), 0);
}

/* As a user can do to its own process that starts its daemon. */
TEST(a_prolog_that_is_killed_leaves_no_lock)
{
	struct config config = {.wait = 0};

	if (geteuid() != 0)
		skip_because("needs root");
	living = 7;
	snprintf(config.mps, sizeof config.mps, "%s", directory);
	put("nvidia-cuda-mps-control", "#!/bin/bash\nkill -STOP $PPID && echo stopped >>${0%/*}/mps-65534/said\n");
	assert_int_equal(chmod(below("nvidia-cuda-mps-control"), 0755), 0);
	pid_t prolog = fork();

	/* What stays of one that fails keeps nobody waiting for its output. */
	if (prolog == 0)
		_exit(!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr) ||
		      mps_begin(&job, &config, 65534, &error) == 0);
	for (int i = 0; i < 6000 && !is_there("mps-65534/said"); i++)
		usleep(10000);
	assert_true(is_there("mps-65534/said"));
	kill(prolog, SIGKILL);
	waitpid(prolog, NULL, 0);
	int lock = open(below(".mps-65534"), O_RDWR | O_CLOEXEC);

	alarm(60);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	alarm(0);
	close(lock);
}

RUN_TESTS(make_directory, remove_directory)
