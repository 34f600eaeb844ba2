#include "cli/actions.h"

#include "cli/gpus.h"
#include "cli/parse.h"
#include "cli/time_given.h"
#include "gpu/topology/topology.h"
#include "mps/client.h"
#include "mps/look.h"
#include "select/overlap.h"
#include "select/set.h"
#include "select/turn.h"
#include "start/driver.h"
#include "start/environment.h"
#include "start/front.h"
#include "start/probe.h"
#include "start/program.h"
#include "start/strict.h"
#include "state/group/file.h"
#include "state/group/find.h"
#include "state/revision_text.h"
#include "state/segment/owner.h"
#include "state/segment/segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* COMMAND, and its group. */
struct run {
	const struct options *options;
	struct topology_list list;
	struct gpu_choices chosen;
	struct segment_revision revision; /* COMMAND's partition */
	struct program program;
	char driver[PATH_MAX], directory[PATH_MAX]; /* the driver's library, and the directory with the link to ours */
	const char *path;                 /* the file of the group, or NULL */
	struct group group;               /* closed: COMMAND's group is still to be made */
	struct segment_revision of_group; /* the group's partition; empty at first */
	/* The present group of this process, with its descriptor. */
	struct group_identity former;
	int descriptor;
	int in_place_of; /* of segment_create */
};

/* --- finding the group -------------------------------------------------------------------------------------------- */

static int open_file(struct run *run, struct error *error)
{
	bool makes = !run->options->dry_run && access(run->path, F_OK) < 0 && errno == ENOENT;
	struct error why = {.reason = ""};
	int result = makes ? group_file_make(&run->group, run->path, "", &why)
	                   : group_file_open(&run->group, run->path, &why);

	if (result < 0)
		error_reword(&why, GROUP_FILE_ENVIRONMENT ": %.250s", why.reason);
	return result < 0 ? error_pass(error, &why) : 0;
}

static int open_named(struct run *run, struct error *error)
{
	const char *name = run->options->group;

	if (!run->options->dry_run && turn_wait("--group", "end it", error) < 0)
		return -1;
	int found = group_open_named(&run->group, name, geteuid()), result = 0;

	if (found < 0)
		result = error_set_errno(error, "--group %s", name);
	else if (found > 1)
		result = error_set(error, "--group %s: there are several, in other PID namespaces too", name);
	return result;
}

/* The group of this process. A process does not leave a file's group, also if the environment was cleared. */
static void look_at_own(struct run *run)
{
	struct segment segment;
	int handle;

	run->descriptor = -1;
	segment_open_source(&segment, &handle);
	run->in_place_of = handle < 0 ? -1 : SEGMENT_OF_BEFORE;
	if (segment.memory) {
		run->descriptor = segment_group_descriptor(&segment);
		run->former = segment.group.identity;
	}
	if (segment.group.is_file && group_is_trusted(&segment.group)) {
		run->group = segment.group;
		segment.group = group_closed;
	}
	segment_close(&segment);
}

/* Finds the group, if it exists. From here until the end or exec of this process, only this process can join a group by
 * name; except with --dry-run. -1 with the reason. */
static int find_group(struct run *run, struct error *error)
{
	const char *name = run->options->group;
	uint64_t number;
	int result = 0;

	look_at_own(run);
	run->path = group_file_named();
	if (name && (run->group.memory || run->path))
		return error_set(error,
		                 "--group %s: this program was started in the group of a file (" GROUP_FILE_ENVIRONMENT
		                 "), which it cannot leave", name);
	if (run->path) {
		group_close(&run->group);
		result = open_file(run, error);
	} else if (name) {
		result = open_named(run, error);
	}
	if (result == 0 && run->group.memory && !group_read(&run->group, &run->of_group, &number))
		result = error_set(error, "the group is damaged");
	return result;
}

/* --- choosing the partition --------------------------------------------------------------------------------------- */

static int find_set(const struct run *run, struct segment_revision *revision, const struct group *group,
                    const struct segment_revision *fence, struct error *error)
{
	const struct set_limits limits = {.group = group, .fence = fence, .is_dry_run = run->options->dry_run};

	return set_find(revision, &run->options->set, &run->chosen, &run->list, &limits, error);
}

/* A member gets the group's partition, whatever SET: a line if SET differs. On GPUs that the group does not name, all
 * TPCs. */
static int take_groups(struct run *run, struct error *error)
{
	const struct options *options = run->options;
	struct segment_revision wanted = {.count = 0};
	char list_text[TPCSET_TEXT], pci[PCI_ADDRESS_TEXT];

	int result = options->set.notation == NOTATION_COUNT
	                     ? set_check_count(&options->set, &run->chosen, error)
	                     : find_set(run, &wanted, NULL, &run->of_group, error);

	if (result < 0)
		return -1;
	run->revision = run->of_group;
	for (uint32_t i = 0; i < wanted.count && !options->dry_run; i++) {
		struct pci_address gpu = wanted.partitions[i].pci;
		const struct segment_partition *has = revision_find_partition(&run->revision, gpu);
		struct tpcset set = has ? has->set : topology_all(topology_find(&run->list, gpu));

		if (!tpcset_equal(&set, &wanted.partitions[i].set))
			fprintf(stderr, "nvtaskset: group %s has TPCs %s of GPU %s, and so has COMMAND; to change all "
			                "of it: -p --group\n", options->group, tpcset_format_list(&set, list_text),
			        gpus_label(gpu, &run->list, pci));
	}
	return 0;
}

/* A part of the partition of a file's group; on GPUs that the group does not name, anything. */
static int take_part(struct run *run, struct error *error)
{
	struct segment_revision wanted;
	int result = find_set(run, &wanted, &run->group, &run->of_group, error);

	if (result == 0)
		result = group_check_within(&run->group, wanted.partitions, wanted.count, error);
	run->revision = run->of_group;
	for (uint32_t i = 0; result == 0 && i < wanted.count; i++)
		result = revision_put(&run->revision, &wanted.partitions[i], error);
	return result;
}

/* The first command in a file's group chooses for all members, among TPCs that no other group of the directory has. */
static int claim(struct run *run, struct error *error)
{
	bool is_dry_run = run->options->dry_run;
	uint64_t number;
	int lock = -1, result = -1;

	if (!run->path)
		return error_set(error, "its group has no partition yet, and gets one from a command that finds the "
		                        "path of its file in " GROUP_FILE_ENVIRONMENT);
	result = set_find_in_group(&run->revision, &run->options->set, &run->chosen, &run->list, &run->group, run->path,
	                           is_dry_run ? NULL : &lock, error);
	if (result == 0 && !is_dry_run)
		result = group_begin(&run->group, &run->revision, error);
	/* Another process was first. */
	if (result == 1)
		result = group_read(&run->group, &run->of_group, &number) ? take_part(run, error)
		                                                          : error_set(error, "the group is damaged");
	if (lock >= 0)
		close(lock);
	return result;
}

/* Finds COMMAND's partition: the wish of the command line, as far as the group leaves a choice. A file's group without
 * a partition gets the same partition. -1 with the reason. */
static int choose_partition(struct run *run, struct error *error)
{
	int result;

	if (!run->group.memory)
		result = find_set(run, &run->revision, NULL, NULL, error);
	else if (!run->group.is_file)
		result = take_groups(run, error);
	else
		result = run->of_group.count > 0 ? take_part(run, error) : claim(run, error);
	return result;
}

/* --- beginning ---------------------------------------------------------------------------------------------------- */

/* Gives this process its segment, which stays through the exec, and makes the group if necessary. If limits forbid the
 * segment, the library in COMMAND works without, and prints a warning. */
static void begin_segment(struct run *run)
{
	const char *name = run->options->group;
	struct segment segment;
	int descriptor = -1;

	if (!run->group.memory)
		group_create(&run->group, name ? name : "", &run->revision, NULL);
	if (run->group.memory)
		descriptor = group_keep(&run->group, run->former, run->descriptor);
	segment_create(&segment, &run->revision, &run->group, descriptor, run->in_place_of, NULL);
}

/* --- COMMAND ------------------------------------------------------------------------------------------------------ */

static void print_partition(const struct segment_revision *revision, const struct topology_list *list)
{
	char pci[PCI_ADDRESS_TEXT], text[TPCSET_TEXT];

	for (uint32_t i = 0; i < revision->count; i++) {
		const struct segment_partition *partition = &revision->partitions[i];
		const struct topology *gpu = topology_find(list, partition->pci);

		fprintf(stderr, "nvtaskset: GPU %s (%s): %u of %u TPCs: %s\n",
		        pci_address_format(partition->pci, pci), gpu->name, tpcset_count(&partition->set),
		        gpu->tpc_count, tpcset_format_list(&partition->set, text));
	}
}

static void print_mps(const struct options *options, const struct mps_status *status)
{
	time_tell_way(options, "programs");
	if (status->has_namespaces)
		fprintf(stderr, "nvtaskset: MPS: the control daemon in %s speaks interface 3: whether a limit of its "
		                "servers and namespaces is in force for COMMAND cannot be seen\n",
		        status->pipe_directory);
	if (status->started)
		fprintf(stderr, "nvtaskset: MPS: started a control daemon in %s\n", status->pipe_directory);
	else if (options->verbose && status->running)
		fprintf(stderr, "nvtaskset: MPS: using the control daemon in %s; %u of %u clients\n",
		        status->pipe_directory, status->clients, status->capacity);
	else if (options->verbose)
		fprintf(stderr, "nvtaskset: MPS: off; programs take turns on the GPU\n");
}

/* The exit status of a shell, for the reason in errno. */
static int cannot_run(const char *command, struct error *error)
{
	int status = errno == ENOENT || errno == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;

	error_set_errno(error, "%.200s", command);
	return status;
}

/* With --strict, refuses a program without our library. Otherwise warns of a program with more privileges, or with its
 * work done elsewhere: the program may well use CUDA. Warns of the remaining programs with -v. As check. */
static int check_program(struct run *run, struct error *error)
{
	const struct options *options = run->options;
	enum program_trouble trouble = program_examine(options->command, &run->program, error);
	bool is_elsewhere = trouble == PROGRAM_ELSEWHERE;
	bool warns = trouble == PROGRAM_PRIVILEGED || is_elsewhere ||
	             (trouble == PROGRAM_UNREACHABLE && options->verbose);

	if (trouble == PROGRAM_ABSENT)
		return cannot_run(options->command[0], error);
	if (warns && !options->strict)
		fprintf(stderr, "nvtaskset: %s%s\n", error->reason, is_elsewhere ? "" : "; it runs unrestricted");
	return trouble != PROGRAM_FINE && options->strict ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A program that changes its user (su, a daemon) may run unrestricted: a warning, or with --strict a failure. */
static int check_others(const char *directory, bool is_strict, struct error *error)
{
	int result = front_check_others(directory, error);

	if (result < 0 && is_strict)
		error_reword(error, "%.250s, so --strict does not start COMMAND", error->reason);
	else if (result < 0)
		fprintf(stderr, "nvtaskset: %s; most programs do not\n", error->reason);
	return is_strict ? result : 0;
}

/* A program that gives way to programs without a priority also gives way between blocks. */
static enum mps_priority mps_priority_of(struct segment_rank rank)
{
	enum mps_priority priority = MPS_PRIORITY_AS_IT_IS;

	if (rank.priority > 0)
		priority = segment_rank_priority(rank) < SEGMENT_PRIORITY_USUAL ? MPS_PRIORITY_BELOW
		                                                                : MPS_PRIORITY_NORMAL;
	return priority;
}

/* MPS's limits of SMs and ours do not go together (mps.md). A failure with --strict, else a line. */
static int check_mps_limit(const struct options *options, struct error *error)
{
	const char *variable = options->mps.mode == MPS_OFF ? NULL : mps_limit_given();
	int result = 0;

	if (variable)
		result = error_set(error, "%s=%.40s: MPS's own limit was seen to make products of cuBLAS wrong: unset "
		                          "the variable, or use --mps off", variable, getenv(variable));
	if (result < 0 && !options->strict)
		fprintf(stderr, "nvtaskset: %s\n", error->reason);
	return options->strict ? result : 0;
}

/* MPS counts clients by GPU. If a GPU has no UUID, the clients of all GPUs count. */
static int prepare_mps(const struct run *run, struct mps_status *status, struct error *error)
{
	const struct options *options = run->options;
	const struct gpu_choices *chosen = &run->chosen;
	struct mps_request request = options->mps;
	const char *uuids[TOPOLOGY_GPUS_MAX];
	bool known = true;

	for (unsigned int i = 0; i < chosen->count; i++) {
		uuids[i] = chosen->choices[i].gpu->uuid;
		known = known && uuids[i][0] != '\0';
	}
	request.priority = mps_priority_of(options->settings.rank);
	request.gpus = uuids;
	request.gpu_count = known ? chosen->count : 0;
	int result = mps_prepare(&request, status, error);

	if (result == 0 && status->has_namespaces && options->strict)
		result = error_set(error, "MPS: the control daemon in %.100s speaks interface 3, which has limits for "
		                          "servers and namespaces: whether one is in force for COMMAND cannot be seen, "
		                          "so --strict does not start it", status->pipe_directory);
	return result;
}

/* All checks that are possible before a group gets its partition: the group keeps the partition if the start fails. The
 * exit status; EXIT_SUCCESS, or the reason is set. */
static int check(struct run *run, struct error *error)
{
	int status = check_program(run, error);
	const struct library_path first = program_search_path(&run->program);

	if (status == EXIT_SUCCESS && (driver_find(&first, run->driver, error) < 0 ||
	                               front_directory(run->driver, run->directory, error) < 0 ||
	                               check_others(run->directory, run->options->strict, error) < 0))
		status = EXIT_FAILURE;
	return status;
}

/* As check. */
static int find_partition(struct run *run, struct error *error)
{
	const struct options *options = run->options;
	int status = EXIT_SUCCESS;

	if ((options->strict ? topology_load : topology_load_kept)(&run->list, error) < 0 ||
	    gpus_choose(&run->chosen, &run->list, &options->gpus, error) < 0 || find_group(run, error) < 0)
		status = EXIT_FAILURE;
	else if (!options->dry_run)
		status = check(run, error);
	if (status == EXIT_SUCCESS && choose_partition(run, error) < 0)
		status = EXIT_FAILURE;
	revision_put_settings(&run->revision, &options->settings);
	return status;
}

static void warn_of_overlap(const struct run *run)
{
	pid_t own = getpid();

	if (run->options->set.notation != NOTATION_COUNT && run->options->mps.mode != MPS_OFF)
		overlap_report(&run->revision, &(struct pids){1, &own}, run->group.identity, &run->list);
}

static int prepare(const struct run *run, struct error *error)
{
	const struct options *options = run->options;
	struct mps_status status = {.running = false};
	static char gpus[TOPOLOGY_ENVIRONMENT_MAX], text[SEGMENT_ENVIRONMENT_MAX];
	struct environment environment = {
		.partition = revision_format(&run->revision, text),
		.gpus = topology_environment_write("", &run->list, gpus),
		.driver = run->driver,
		.directory = run->directory,
		.hide = options->hide,
		.fail_misfits = options->misfit == MISFIT_FAIL,
		.strict = options->strict,
	};

	if ((options->strict && (strict_check_gpus(&run->revision, &run->list, error) < 0 ||
	                         probe(&environment, error) < 0)) ||
	    check_mps_limit(options, error) < 0 ||
	    /* Before environment_set: a new MPS daemon must not inherit COMMAND's environment. */
	    prepare_mps(run, &status, error) < 0 || environment_set(&environment, error) < 0 ||
	    program_put_first(&run->program, run->directory, error) < 0)
		return -1;
	if (options->verbose || options->set.notation == NOTATION_COUNT)
		print_partition(&run->revision, &run->list);
	if (options->verbose)
		fprintf(stderr, "nvtaskset: driver: %s, through %s\n", run->driver, run->directory);
	print_mps(options, &status);
	warn_of_overlap(run);
	return 0;
}

/* COMMAND has its segment from the start, since a segment survives an exec. */
static int become(struct run *run, struct error *error)
{
	char **command = run->options->command;

	if (prepare(run, error) < 0)
		return EXIT_FAILURE;
	begin_segment(run);
	execvp(command[0], command);
	return cannot_run(command[0], error);
}

int action_run(const struct options *options, struct error *error)
{
	static struct run run; /* large */

	run.options = options;
	run.group = group_closed;
	/* Inside another nvtaskset, our environment leads to its library. MPS's programs must not load the library. */
	if (environment_clean(error) < 0)
		return EXIT_FAILURE;
	if (!options->dry_run)
		mps_ask_early(&options->mps, options->verbose || options->strict);
	int status = find_partition(&run, error);

	if (status == EXIT_SUCCESS && options->dry_run)
		set_print(&run.revision);
	else if (status == EXIT_SUCCESS)
		status = become(&run, error);
	mps_forget();
	return status;
}

int action_run_line(char *line, char **command, struct error *error)
{
	static struct options options; /* struct run points to the options */

	return parse_line(&options, line, command, error) < 0 ? EXIT_FAILURE : action_run(&options, error);
}
