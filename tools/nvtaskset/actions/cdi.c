/*
 * The word cdi: containers get a partition like a device.
 *
 * A device is a group with a file (state/group/group.h). The file has the partition of all programs in the device's
 * containers, and can change live. Of nvtaskset's state, a container sees only its own group's file, for reading. The
 * groups' directory has all TPCs of a specification: two commands that choose at once choose different TPCs.
 */
#include "cli/actions.h"

#include "base/driver_names.h"
#include "base/path.h"
#include "base/trust.h"
#include "cdi/inside.h"
#include "cdi/specification.h"
#include "cli/gpus.h"
#include "cli/time_given.h"
#include "mps/look.h"
#include "select/set.h"
#include "show/containers.h"
#include "start/driver.h"
#include "start/strict.h"
#include "state/group/file.h"
#include "state/pool/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRONT ".front"

/* --- the directory of links --------------------------------------------------------------------------------------- */

static int make_link(const char *directory, const char *name, const char *target, struct error *error)
{
	char path[PATH_MAX];

	return path_join(path, directory, name) && (symlink(target, path) == 0 || errno == EEXIST)
	               ? 0 : error_set_errno(error, "%.200s", path);
}

/* The links hold inside containers. */
static int make_front(const char *directory, char front[PATH_MAX], struct error *error)
{
	char path[PATH_MAX], real[PATH_MAX];

	path_join(path, directory, FRONT "/driver");
	if (trust_make_directory(path, real, error) < 0 || make_link(real, DRIVER_LINK, INSIDE_DRIVER, error) < 0)
		return -1;
	path_join(front, directory, FRONT);
	return make_link(front, DRIVER_NAME, INSIDE_LIBRARY "/" DRIVER_NAME, error) < 0
	               ? -1
	               : make_link(front, DRIVER_OTHER_NAME, DRIVER_NAME, error);
}

/* --- a device ----------------------------------------------------------------------------------------------------- */

/* The findings of `cdi add` before the specification is written. */
struct plan {
	const struct options *options;
	struct specification specification;
	struct topology_list list;
	struct gpu_choices chosen;
	struct segment_revision before, revision; /* of the group */
	struct mps_status mps;
	struct group group;
	struct pool_place pool, pool_before; /* with --pool; no name: none */
	int lock;
	bool is_new, is_changed; /* the group */
	char path[PATH_MAX], hook[PATH_MAX], library[PATH_MAX], front[PATH_MAX], driver[PATH_MAX];
	char gpus[TOPOLOGY_ENVIRONMENT_MAX];
};

/* The runtime executes the command as root, and containers load the library. */
static int find_installed(struct plan *plan, struct error *error)
{
	struct error why;
	char own[PATH_MAX];

	if (start_library_directory(own, error) < 0 || driver_find(NULL, plan->driver, error) < 0)
		return -1;
	if (!realpath(own, plan->library) || !realpath("/proc/self/exe", plan->hook))
		return error_set_errno(error, "%.200s", own);
	*strrchr(plan->driver, '/') = '\0';
	if (trust_check(plan->library, geteuid(), TRUST_FOREVER, &why) < 0 ||
	    trust_check(plan->hook, geteuid(), TRUST_FOREVER, &why) < 0)
		return error_set(error, "%.200s, and containers would load our library from there: install nvtaskset "
		                        "elsewhere", why.reason);
	return 0;
}

/* The daemon must run before: a daemon that a container starts would end with the container. */
static int look_at_mps(struct plan *plan, struct error *error)
{
	const struct options *options = plan->options;
	char control[PATH_MAX];
	struct error why = {.reason = ""};
	int result = mps_look(&options->mps, &plan->mps, control, &why);

	if (options->mps.mode == MPS_OFF)
		return 0;
	if (result == 0 && plan->mps.running && plan->mps.has_namespaces && options->strict)
		return error_set(error, "MPS: the control daemon in %.100s speaks interface 3: whether a limit of its "
		                        "namespaces is in force cannot be seen, so --strict makes no such device",
		                 plan->mps.pipe_directory);
	if (result == 0 && plan->mps.running)
		return 0;
	if (result == 0)
		error_set(&why, "MPS: no control daemon runs in %.100s", plan->mps.pipe_directory);
	plan->mps.running = false;
	if (options->mps.mode == MPS_ON || segment_shares(&options->settings))
		return error_pass(error, &why);
	fprintf(stderr, "nvtaskset: %s: its containers take turns on the GPU with others (--mps off)\n", why.reason);
	return 0;
}

static int pool_name_check(const char *name, struct error *error)
{
	return group_name_is_valid(name)
	               ? 0
	               : error_set(error, "--pool %.80s: letters, digits and ._:@+-, at most %d, and no number alone",
	                           name, GROUP_NAME_MAX - 1);
}

static int find_all(struct plan *plan, struct error *error)
{
	const struct options *options = plan->options;
	const char *const name = options->group;

	if (specification_check_name(name, error) < 0 || (options->pool && pool_name_check(options->pool, error) < 0) ||
	    specification_open(&plan->specification, options->output, error) < 0 || find_installed(plan, error) < 0 ||
	    topology_load(&plan->list, error) < 0 ||
	    gpus_choose(&plan->chosen, &plan->list, &options->gpus, error) < 0 ||
	    look_at_mps(plan, error) < 0)
		return -1;
	time_tell_way(options, "its containers");
	return path_join(plan->path, plan->specification.directory, name)
	               ? 0 : error_set(error, "%.200s: the path is too long", name);
}

/* Programs in a pool have a priority: only programs with a setting of time tell others of their work. */
static bool has_rank(const struct plan *plan)
{
	struct segment_revision before = {.count = 0};
	uint64_t number;

	return segment_rank_is_given(plan->options->settings.rank) ||
	       (group_read(&plan->group, &before, &number) && segment_rank_is_given(before.rank));
}

/* A dry run does not make the directory of groups, and without the directory no group has TPCs. */
static bool has_no_groups(const struct plan *plan)
{
	return access(plan->specification.directory, F_OK) < 0 && errno == ENOENT;
}

/* Chooses TPCs; for -n, with the lock against a second choice. */
static int choose_tpcs(struct plan *plan, struct error *error)
{
	const struct options *options = plan->options;
	int result = set_find_in_group(&plan->revision, &options->set, &plan->chosen, &plan->list, &plan->group,
	                               has_no_groups(plan) ? NULL : plan->path,
	                               options->dry_run ? NULL : &plan->lock, error);

	if (result == 0 && options->strict)
		result = strict_check_gpus(&plan->revision, &plan->list, error);
	revision_put_settings(&plan->revision, &options->settings);
	if (options->pool && !has_rank(plan))
		plan->revision.rank.priority = segment_rank_of_priority(SEGMENT_PRIORITY_USUAL);
	return result;
}

static int make_directories(struct plan *plan, struct error *error)
{
	char real[PATH_MAX], notes[PATH_MAX];

	path_join(notes, plan->specification.directory, CONTAINERS_NAME);
	return trust_make_directory(plan->specification.directory, real, error) < 0 ||
	                       trust_make_directory(notes, real, error) < 0
	               ? -1
	               : make_front(plan->specification.directory, plan->front, error);
}

static void unlock(struct plan *plan)
{
	if (plan->lock >= 0)
		close(plan->lock);
	plan->lock = -1;
}

/* Commands that add or remove at once take turns, and each sees the result of the command before. */
static int read_locked(struct plan *plan, struct error *error)
{
	specification_close(&plan->specification);
	plan->lock = group_file_lock_directory(plan->path, error);
	return plan->lock < 0 ? -1 : specification_open(&plan->specification, plan->options->output, error);
}

/* Under the lock. The group's page is there before a container needs the page. */
static int write_pool(struct plan *plan, const char *pool, bool is_client, struct error *error)
{
	struct segment_revision revision;
	uint64_t number;

	if (!group_read(&plan->group, &revision, &number))
		return error_set(error, "%.200s: the group is damaged", plan->path);
	return pool_file_put(plan->path, pool, &revision, is_client, &plan->pool, error);
}

/* EXIT_CHANGED: the device is made, and the group is still in the pool of before as well. */
static int write_device(struct plan *plan, struct error *error)
{
	const struct options *options = plan->options;
	const struct device device = {
		.name = options->group,
		.group = plan->path,
		.pool = options->pool ? &plan->pool : NULL,
		.pipes = plan->mps.running ? plan->mps.pipe_directory : NULL,
		.connections = plan->mps.connections,
		.priority = options->settings.rank.priority == 0
	                            ? -1 : segment_rank_priority(options->settings.rank) < SEGMENT_PRIORITY_USUAL,
		.gpus = topology_environment_write("", &plan->list, plan->gpus),
		.driver = plan->driver,
		.hide = options->hide,
		.fail_misfits = options->misfit == MISFIT_FAIL,
		.strict = options->strict,
	};

	if ((options->pool && write_pool(plan, options->pool, plan->mps.running, error) < 0) ||
	    specification_put(&plan->specification, &device, plan->hook, plan->library, plan->front, error) < 0 ||
	    specification_write(&plan->specification, error) < 0)
		return -1;
	return pool_file_remove(plan->path, options->pool, error) < 0 ? EXIT_CHANGED : 0;
}

static int make_group(struct plan *plan, struct error *error)
{
	uint64_t number;

	plan->is_new = access(plan->path, F_OK) < 0 && errno == ENOENT;
	if (!pool_file_find(plan->path, NULL, &plan->pool_before))
		plan->pool_before.name[0] = '\0';
	if (group_file_make_locked(&plan->group, plan->path, "", error) < 0)
		return -1;
	return group_read(&plan->group, &plan->before, &number)
	               ? 0 : error_set(error, "%.200s: the group is damaged", plan->path);
}

static void take_back(struct plan *plan)
{
	const struct pool_place *before = &plan->pool_before;

	group_take_back(&plan->group, &plan->revision, &plan->before, NULL);
	if (before->name[0])
		write_pool(plan, before->name, before->is_client, NULL);
}

/* Running containers of a device keep their partition and pool if the command fails. */
static void put_back(struct plan *plan)
{
	pool_file_remove(plan->path, plan->pool_before.name, NULL);
	if (plan->is_new)
		group_file_remove_locked(plan->path, NULL);
	else if (plan->is_changed)
		take_back(plan);
}

static int change_group(struct plan *plan, struct error *error)
{
	int result = group_change(&plan->group, &plan->revision, error);

	plan->is_changed = result == 0;
	return result;
}

/* The group gets its partition before the device can be used. */
static int add_locked(struct plan *plan, struct error *error)
{
	int result = make_group(plan, error) < 0 || choose_tpcs(plan, error) < 0 || change_group(plan, error) < 0
	                     ? -1 : write_device(plan, error);

	if (result < 0)
		put_back(plan);
	return result;
}

static int add_device(struct plan *plan, struct error *error)
{
	int result = make_directories(plan, error) < 0 || read_locked(plan, error) < 0 ? -1 : add_locked(plan, error);

	unlock(plan);
	return result;
}

static void print_device(const struct plan *plan)
{
	char list[TPCSET_TEXT], label[PCI_ADDRESS_TEXT];

	printf(CDI_KIND "=%s:", plan->options->group);
	for (uint32_t i = 0; i < plan->revision.count; i++)
		printf("%s TPCs %s of GPU %s", i > 0 ? "," : "",
		       tpcset_format_list(&plan->revision.partitions[i].set, list),
		       gpus_label(plan->revision.partitions[i].pci, &plan->list, label));
	putchar('\n');
}

int action_cdi_add(const struct options *options, struct error *error)
{
	static struct plan plan; /* large */
	int result;

	plan = (struct plan){.options = options, .group = group_closed, .lock = -1};
	result = find_all(&plan, error);
	if (result == 0 && options->dry_run) {
		result = choose_tpcs(&plan, error);
		if (result == 0)
			set_print(&plan.revision);
	} else if (result == 0) {
		result = add_device(&plan, error);
		if (result == 0)
			print_device(&plan);
	}
	group_close(&plan.group);
	specification_close(&plan.specification);
	return result;
}

/* --- removing ----------------------------------------------------------------------------------------------------- */

/* In this order: no container gets the device any more, and then its TPCs are free. Running containers keep their
 * partition. A killed command may leave a group without a device. */
int action_cdi_remove(const struct options *options, struct error *error)
{
	static struct plan plan; /* large */
	char real[PATH_MAX];
	int result;

	plan = (struct plan){.options = options, .lock = -1};
	result = specification_open(&plan.specification, options->output, error);
	if (result == 0 && !path_join(plan.path, plan.specification.directory, options->group))
		result = error_set(error, "%.80s: its path is too long", options->group);
	if (result == 0 && !specification_find(&plan.specification, options->group) &&
	    (specification_check_name(options->group, NULL) < 0 || access(plan.path, F_OK) < 0))
		result = error_set(error, "%.80s: no device of %.200s", options->group, plan.specification.path);
	/* A groups' directory that was removed by hand is made again, for the lock. */
	if (result == 0)
		result = trust_make_directory(plan.specification.directory, real, error);
	if (result == 0)
		result = read_locked(&plan, error);
	if (result == 0) {
		specification_remove(&plan.specification, options->group);
		result = specification_write(&plan.specification, error);
	}
	if (result == 0)
		result = pool_file_remove(plan.path, NULL, error);
	if (result == 0)
		result = group_file_remove_locked(plan.path, error);
	unlock(&plan);
	specification_close(&plan.specification);
	return result;
}

/* --- listing ------------------------------------------------------------------------------------------------------ */

static void print_container(const struct container *container, void *context)
{
	const char *device = context;

	if (strcmp(container->device, device) != 0)
		return;
	printf("        container %.12s, pid %d", container->id, (int)container->pid);
	if (container->pod[0])
		printf(", pod %s/%s", container->namespace, container->pod);
	printf("%s%s\n", container->trouble[0] ? ": unrestricted: " : "", container->trouble);
}

static void print_group(const struct specification *specification, const char *name, const struct topology_list *gpus)
{
	char path[PATH_MAX], list[TPCSET_TEXT], label[PCI_ADDRESS_TEXT], given[TIME_LINE];
	struct segment_revision revision = {.count = 0};
	struct error why = {.reason = ""};
	struct pool_place pool;
	struct group group;
	uint64_t number;

	path_join(path, specification->directory, name);
	printf(CDI_KIND "=%s:", name);
	if (group_file_open(&group, path, &why) < 0 || !group_read(&group, &revision, &number))
		printf(" %s", why.reason[0] ? why.reason : "its group is damaged");
	for (uint32_t i = 0; i < revision.count; i++)
		printf("%s TPCs %s of GPU %s", i > 0 ? "," : "", tpcset_format_list(&revision.partitions[i].set, list),
		       gpus_label(revision.partitions[i].pci, gpus, label));
	if (revision_gives_any(&revision, SETTING_COUNT))
		printf("; %s", time_format_all(&revision, given));
	if (pool_file_find(path, NULL, &pool))
		printf("; pool %s", pool.name);
	putchar('\n');
	group_close(&group);
}

int action_cdi(const struct options *options, struct error *error)
{
	static struct specification specification; /* large */
	static struct topology_list gpus;
	char notes[PATH_MAX];
	json_t *device;
	size_t i;

	if (specification_open(&specification, options->output, error) < 0)
		return -1;
	if (topology_load(&gpus, NULL) < 0)
		gpus.count = 0;
	path_join(notes, specification.directory, CONTAINERS_NAME);
	if (json_array_size(json_object_get(specification.root, "devices")) == 0)
		printf("No devices in %s; to make one: nvtaskset cdi add -t 0-7 NAME\n", specification.path);
	json_array_foreach(json_object_get(specification.root, "devices"), i, device) {
		const char *name = json_string_value(json_object_get(device, "name"));

		if (!name || specification_check_name(name, NULL) < 0)
			continue;
		print_group(&specification, name, &gpus);
		containers_each(notes, print_container, (void *)name);
	}
	specification_close(&specification);
	return 0;
}
