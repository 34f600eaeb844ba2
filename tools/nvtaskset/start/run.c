#include "cli/actions.h"

#include "cli/gpus.h"
#include "cli/options.h"
#include "cli/time_given.h"
#include "driver.h"
#include "environment.h"
#include "front.h"
#include "gpu/topology/topology.h"
#include "mps/client.h"
#include "mps/look.h"
#include "probe.h"
#include "program.h"
#include "strict.h"
#include "select/overlap.h"
#include "select/set.h"
#include "select/turn.h"
#include "state/group/file.h"
#include "state/group/find.h"
#include "state/revision_text.h"
#include "state/segment/owner.h"
#include "state/segment/segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct membership {
	const char *path;                  /* the file of the group, or NULL */
	struct group group;                /* closed: COMMAND's group is still to be made */
	struct segment_revision partition; /* the group's partition; empty at first */
	/* The present group of this process, with its descriptor. */
	struct group_identity former;
	int descriptor;
};

/* --- finding the group -------------------------------------------------------------------------------------------- */

static int open_file(struct membership *membership, const struct options *options, struct error *error)
{
	const char *path = membership->path;
	bool makes = !options->dry_run && access(path, F_OK) < 0 && errno == ENOENT;
	struct error why = {.reason = ""};
	int result = makes ? group_file_make(&membership->group, path, "", &why)
	                   : group_file_open(&membership->group, path, &why);

	if (result < 0)
		error_reword(&why, GROUP_FILE_ENVIRONMENT ": %.250s", why.reason);
	return result < 0 ? error_pass(error, &why) : 0;
}

static int open_named(struct membership *membership, const struct options *options, struct error *error)
{
	if (!options->dry_run && turn_wait("--group", "end it", error) < 0)
		return -1;
	int found = group_open_named(&membership->group, options->group, geteuid());

	return found < 2
	               ? 0
	               : error_set(error, "--group %s: there are several, in other PID namespaces too", options->group);
}

/* The group of this process. A process does not leave a file's group, also if the environment was cleared. */
static void look_at_own(struct membership *membership)
{
	struct segment segment;
	int handle;

	membership->descriptor = -1;
	segment_open_source(&segment, &handle);
	if (segment.memory) {
		membership->descriptor = segment_group_descriptor(&segment);
		membership->former = segment.group.identity;
	}
	if (segment.group.is_file && group_is_trusted(&segment.group)) {
		membership->group = segment.group;
		segment.group = group_closed;
	}
	segment_close(&segment);
}

/* Finds the group, if it exists. From here until the end or exec of this process, only this process can join a group by
 * name; except with --dry-run. -1 with the reason. */
static int membership_find(struct membership *membership, const struct options *options, struct error *error)
{
	uint64_t number;
	int result = 0;

	*membership = (struct membership){.group = group_closed};
	look_at_own(membership);
	membership->path = group_file_named();
	if (options->group && (membership->group.memory || membership->path))
		return error_set(error,
		                 "--group %s: this program was started in the group of a file (" GROUP_FILE_ENVIRONMENT
		                 "), which it cannot leave",
		                 options->group);
	if (membership->path) {
		group_close(&membership->group);
		result = open_file(membership, options, error);
	} else if (options->group) {
		result = open_named(membership, options, error);
	}
	if (result == 0 && membership->group.memory && !group_read(&membership->group, &membership->partition, &number))
		result = error_set(error, "the group is damaged");
	return result;
}

/* --- choosing the partition --------------------------------------------------------------------------------------- */

static int put_all(struct segment_revision *revision, const struct segment_revision *more, struct error *error)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < more->count; i++)
		result = segment_put(revision, &more->partitions[i], error);
	return result;
}

/* A member gets the group's partition, whatever SET: a line if SET differs. On GPUs that the group does not name, all
 * TPCs. */
static int take_groups(const struct membership *membership, struct segment_revision *revision,
                       const struct options *options, const struct gpu_choices *chosen,
                       const struct topology_list *list, struct error *error)
{
	const struct set_limits limits = {.room = &membership->partition};
	struct segment_revision wanted = {.count = 0};
	char list_text[TPCSET_TEXT], pci[PCI_ADDRESS_TEXT];

	if (options->set.notation != NOTATION_COUNT && set_find(&wanted, &options->set, chosen, list, &limits, error) < 0)
		return -1;
	*revision = membership->partition;
	for (uint32_t i = 0; i < wanted.count && !options->dry_run; i++) {
		struct pci_address gpu = wanted.partitions[i].pci;
		const struct segment_partition *has = segment_find(revision, gpu);
		struct tpcset set = has ? has->set : topology_all(topology_find(list, gpu));

		if (!tpcset_equal(&set, &wanted.partitions[i].set))
			fprintf(stderr, "nvtaskset: group %s has TPCs %s of GPU %s, and so has COMMAND; to change all "
			                "of it: -p --group\n",
			        options->group, tpcset_format_list(&set, list_text), gpus_label(gpu, list, pci));
	}
	return 0;
}

/* A part of the partition of a file's group; on GPUs that the group does not name, anything. */
static int take_part(const struct membership *membership, struct segment_revision *revision,
                     const struct options *options, const struct gpu_choices *chosen, const struct topology_list *list,
                     struct error *error)
{
	const struct set_limits limits = {.group = &membership->group, .room = &membership->partition,
	                                  .is_dry_run = options->dry_run};
	struct segment_revision wanted;

	if (set_find(&wanted, &options->set, chosen, list, &limits, error) < 0 ||
	    group_check_within(&membership->group, wanted.partitions, wanted.count, error) < 0)
		return -1;
	*revision = membership->partition;
	return put_all(revision, &wanted, error);
}

/* Gives the group only the partitions. */
static int begin(struct group *group, const struct segment_revision *revision, struct error *error)
{
	struct segment_revision first = {.count = revision->count};

	memcpy(first.partitions, revision->partitions, sizeof first.partitions);
	return group_begin(group, &first, error);
}

/* The first command in a file's group chooses for all members, among TPCs that no other group of the directory has. */
static int claim(struct membership *membership, struct segment_revision *revision, const struct options *options,
                 const struct gpu_choices *chosen, const struct topology_list *list, struct error *error)
{
	uint64_t number;
	int lock = -1, result = -1;

	if (!membership->path)
		return error_set(error, "its group has no partition yet, and gets one from a command that finds the "
		                        "path of its file in "
		                        GROUP_FILE_ENVIRONMENT);
	result = set_find_in_group(revision, &options->set, chosen, list, &membership->group, membership->path,
	                           options->dry_run ? NULL : &lock, error);
	if (result == 0 && !options->dry_run)
		result = begin(&membership->group, revision, error);
	/* Another process was first. */
	if (result == 1)
		result = group_read(&membership->group, &membership->partition, &number)
		                 ? take_part(membership, revision, options, chosen, list, error)
		                 : error_set(error, "the group is damaged");
	if (lock >= 0)
		close(lock);
	return result;
}

/* Finds COMMAND's partition: the wish of the command line, as far as the group leaves a choice. A file's group without
 * a partition gets the same partition. -1 with the reason. */
static int membership_choose(struct membership *membership, struct segment_revision *revision,
                             const struct options *options, const struct gpu_choices *chosen,
                             const struct topology_list *list, struct error *error)
{
	const struct set_limits limits = {.is_dry_run = options->dry_run};
	int result;

	if (!membership->group.memory)
		result = set_find(revision, &options->set, chosen, list, &limits, error);
	else if (!membership->group.is_file)
		result = take_groups(membership, revision, options, chosen, list, error);
	else if (membership->partition.count > 0)
		result = take_part(membership, revision, options, chosen, list, error);
	else
		result = claim(membership, revision, options, chosen, list, error);
	return result;
}

/* --- beginning ---------------------------------------------------------------------------------------------------- */

/* Gives this process its segment, which stays through the exec, and makes the group if necessary. If limits forbid the
 * segment, the library in COMMAND works without, and prints a warning. */
static void membership_begin(struct membership *membership, const struct segment_revision *revision,
                             const struct options *options)
{
	struct segment segment;
	int descriptor = -1;

	if (!membership->group.memory)
		group_create(&membership->group, options->group ? options->group : "", revision, NULL);
	if (membership->group.memory)
		descriptor = group_keep(&membership->group, membership->former, membership->descriptor);
	segment_create(&segment, revision, &membership->group, descriptor, SEGMENT_OF_BEFORE, NULL);
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
	char names[TIME_LINE];

	if (segment_time_limits(&options->time) && !segment_shares(&options->time) && !options->mps_given &&
	    options->mps.mode == MPS_OFF)
		fprintf(stderr, "nvtaskset: %s: without MPS, programs take turns on the GPU (--mps off)\n",
		        time_options(&options->time, names));
	else if (segment_shares(&options->time) && !options->mps_given)
		fprintf(stderr, "nvtaskset: %s: under MPS, TPCs are lent (--mps auto)\n",
		        time_options(&options->time, names));
	else if (segment_policy_is_given(options->time.rank) && !options->mps_given)
		fprintf(stderr, "nvtaskset: --policy: under MPS, launches are held back (--mps auto)\n");
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
static int cannot_run(const struct options *options, struct error *error)
{
	int status = errno == ENOENT || errno == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;

	error_set_errno(error, "%.200s", options->command[0]);
	return status;
}

/* With --strict, refuses a program without our library. Otherwise warns of a program with more privileges, or with its
 * work done elsewhere: the program may well use CUDA. Warns of the remaining programs with -v. As check. */
static int check_program(const struct options *options, struct program *program, struct error *error)
{
	enum program_trouble trouble = program_examine(options->command, program, error);
	bool is_elsewhere = trouble == PROGRAM_ELSEWHERE;
	bool warns = trouble == PROGRAM_PRIVILEGED || is_elsewhere ||
	             (trouble == PROGRAM_UNREACHABLE && options->verbose);

	if (trouble == PROGRAM_ABSENT)
		return cannot_run(options, error);
	if (warns && !options->strict)
		fprintf(stderr, "nvtaskset: %s%s\n", error->reason, is_elsewhere ? "" : "; it runs unrestricted");
	return trouble != PROGRAM_FINE && options->strict ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A program that changes its user (su, a daemon) may run unrestricted: a warning, or with --strict a failure. */
static int check_others(const struct options *options, const char *directory, struct error *error)
{
	int result = front_check_others(directory, error);

	if (result < 0 && options->strict)
		error_reword(error, "%.250s, so --strict does not start COMMAND", error->reason);
	else if (result < 0)
		fprintf(stderr, "nvtaskset: %s; most programs do not\n", error->reason);
	return options->strict ? result : 0;
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
static int prepare_mps(const struct options *options, const struct gpu_choices *chosen, struct mps_status *status,
                       struct error *error)
{
	struct mps_request request = options->mps;
	const char *uuids[TOPOLOGY_GPUS_MAX];
	bool known = true;

	for (unsigned int i = 0; i < chosen->count; i++) {
		uuids[i] = chosen->choices[i].gpu->uuid;
		known = known && uuids[i][0] != '\0';
	}
	request.priority = mps_priority_of(options->time.rank);
	request.gpus = uuids;
	request.gpu_count = known ? chosen->count : 0;
	int result = mps_prepare(&request, status, error);

	if (result == 0 && status->has_namespaces && options->strict)
		result = error_set(error, "MPS: the control daemon in %.100s speaks interface 3, which has limits for "
		                          "servers and namespaces: whether one is in force for COMMAND cannot be seen, "
		                          "so --strict does not start it", status->pipe_directory);
	return result;
}

struct partition {
	struct topology_list list;
	struct gpu_choices chosen;
	struct segment_revision revision;
	struct membership membership;
	struct program program;
	char driver[PATH_MAX], directory[PATH_MAX]; /* the driver's library, and the directory with the link to ours */
};

/* All checks that are possible before a group gets its partition: the group keeps the partition if the start fails. The
 * exit status; EXIT_SUCCESS, or the reason is set. */
static int check(struct partition *partition, const struct options *options, struct error *error)
{
	int status = check_program(options, &partition->program, error);
	const struct library_path first = program_search_path(&partition->program);

	if (status == EXIT_SUCCESS && (driver_find(&first, partition->driver, error) < 0 ||
	                               front_directory(partition->driver, partition->directory, error) < 0 ||
	                               check_others(options, partition->directory, error) < 0))
		status = EXIT_FAILURE;
	return status;
}

/* As check. */
static int find_partition(struct partition *partition, const struct options *options, struct error *error)
{
	int status = EXIT_SUCCESS;

	if (topology_load(&partition->list, error) < 0 ||
	    gpus_choose(&partition->chosen, &partition->list, &options->gpus, error) < 0 ||
	    membership_find(&partition->membership, options, error) < 0)
		status = EXIT_FAILURE;
	else if (!options->dry_run)
		status = check(partition, options, error);
	if (status == EXIT_SUCCESS && membership_choose(&partition->membership, &partition->revision, options,
	                                                &partition->chosen, &partition->list, error) < 0)
		status = EXIT_FAILURE;
	segment_put_time(&partition->revision, &options->time);
	return status;
}

static void warn_of_overlap(const struct options *options, const struct partition *partition)
{
	pid_t own = getpid();

	if (options->set.notation != NOTATION_COUNT && options->mps.mode != MPS_OFF)
		overlap_report(&partition->revision, &(struct pids){1, &own}, partition->membership.group.identity,
		               &partition->list);
}

static int prepare(const struct options *options, const struct partition *partition, struct error *error)
{
	struct mps_status status = {.running = false};
	static char gpus[TOPOLOGY_ENVIRONMENT_MAX], text[SEGMENT_ENVIRONMENT_MAX];
	struct environment environment = {
		.partition = segment_revision_format(&partition->revision, text),
		.gpus = topology_environment_write("", &partition->list, gpus),
		.driver = partition->driver,
		.directory = partition->directory,
		.hide = options->hide,
		.fail_misfits = options->misfit == MISFIT_FAIL,
		.strict = options->strict,
	};

	if ((options->strict && (strict_check_gpus(&partition->revision, &partition->list, error) < 0 ||
	                         probe(&environment, error) < 0)) ||
	    check_mps_limit(options, error) < 0 ||
	    /* Before environment_set: a new MPS daemon must not inherit COMMAND's environment. */
	    prepare_mps(options, &partition->chosen, &status, error) < 0 || environment_set(&environment, error) < 0 ||
	    program_put_first(&partition->program, partition->directory, error) < 0)
		return -1;
	if (options->verbose || options->set.notation == NOTATION_COUNT)
		print_partition(&partition->revision, &partition->list);
	if (options->verbose)
		fprintf(stderr, "nvtaskset: driver: %s, through %s\n", partition->driver, partition->directory);
	print_mps(options, &status);
	warn_of_overlap(options, partition);
	return 0;
}

/* COMMAND has its segment from the start, since a segment survives an exec. */
static int become(const struct options *options, struct partition *partition, struct error *error)
{
	if (prepare(options, partition, error) < 0)
		return EXIT_FAILURE;
	membership_begin(&partition->membership, &partition->revision, options);
	execvp(options->command[0], options->command);
	return cannot_run(options, error);
}

int action_run(const struct options *options, struct error *error)
{
	static struct partition partition; /* large */
	int status = EXIT_FAILURE;

	/* Inside another nvtaskset, our environment leads to its library. MPS's programs must not load the library. */
	if (environment_clean(error) < 0)
		return EXIT_FAILURE;
	if (!options->dry_run)
		mps_ask_early(&options->mps);
	status = find_partition(&partition, options, error);
	if (status == EXIT_SUCCESS && options->dry_run)
		set_print(&partition.revision);
	else if (status == EXIT_SUCCESS)
		status = become(options, &partition, error);
	mps_forget();
	return status;
}
