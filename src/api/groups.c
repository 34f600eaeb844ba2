#include "api/time_given.h"

#include "gpu/topology/select_tpcs.h"
#include "state/group/file.h"
#include "state/pool/file.h"
#include "state/segment/find.h"

#include <stdlib.h>
#include <unistd.h>

_Static_assert(NVTASKSET_GROUP_NAME == GROUP_NAME_MAX, "the same text");

struct nvtaskset_group {
	const struct nvtaskset_topology *topology;
	char *path; /* NULL: found by a process */
	struct group group;
};

/* --- handles ------------------------------------------------------------------------------------------------------ */

/* NULL with the reason. */
static struct nvtaskset_group *new_group(const struct nvtaskset_topology *topology, const char *path,
                                         struct error *error)
{
	struct nvtaskset_group *new = calloc(1, sizeof *new);

	if (new) {
		new->topology = topology;
		new->group = group_closed;
		new->path = path ? strdup(path) : NULL;
	}
	if (!new || (path && !new->path)) {
		free(new);
		new = NULL;
		error_set_code(error, NVTASKSET_ERROR_NO_MEMORY, "no memory");
	}
	return new;
}

void nvtaskset_group_close(struct nvtaskset_group *group)
{
	if (group) {
		group_close(&group->group);
		free(group->path);
	}
	free(group);
}

/* Gives the handle out if the group was opened. */
static int give(struct nvtaskset_group **group, struct nvtaskset_group *opened, int result)
{
	if (result == 0)
		*group = opened;
	else
		nvtaskset_group_close(opened);
	return result;
}

int nvtaskset_group_make(struct nvtaskset_group **group, const struct nvtaskset_topology *topology, const char *path,
                         const char *cgroup, struct nvtaskset_error *error)
{
	struct nvtaskset_group *new;

	if (cgroup && strlen(cgroup) >= GROUP_CGROUP_MAX)
		return error_set_code(inside_error(error), NVTASKSET_ERROR_INVALID,
		                      "%.200s: the path of the control group is too long", cgroup);
	new = new_group(topology, path, inside_error(error));
	return new ? give(group, new, group_file_make(&new->group, path, cgroup ? cgroup : "", inside_error(error)))
	           : -1;
}

int nvtaskset_group_open(struct nvtaskset_group **group, const struct nvtaskset_topology *topology, const char *path,
                         struct nvtaskset_error *error)
{
	struct nvtaskset_group *new = new_group(topology, path, inside_error(error));

	return new ? give(group, new, group_file_open(&new->group, path, inside_error(error))) : -1;
}

int nvtaskset_group_of(struct nvtaskset_group **group, const struct nvtaskset_topology *topology, pid_t pid,
                       struct nvtaskset_error *error)
{
	struct nvtaskset_group *new;

	if (pid < 1)
		return error_set_code(inside_error(error), NVTASKSET_ERROR_INVALID, "pid %d: not a process id",
		                      (int)pid);
	new = new_group(topology, NULL, inside_error(error));
	if (!new)
		return -1;
	int result = segment_open_group_of(pid, &new->group)
	                     ? 0
	                     : error_set_code(inside_error(error), NVTASKSET_ERROR_NO_PARTITION,
	                                      "pid %d: is in no group of its user's that can be reached", (int)pid);

	return give(group, new, result);
}

int nvtaskset_group_remove(const char *path, struct nvtaskset_error *error)
{
	return group_file_remove(path, inside_error(error));
}

const char *nvtaskset_group_name(const struct nvtaskset_group *group, char name[NVTASKSET_GROUP_NAME])
{
	char inner[GROUP_NAME_MAX];

	return strcpy(name, group_name(&group->group, inner));
}

/* --- sets --------------------------------------------------------------------------------------------------------- */

static int read_group(const struct nvtaskset_group *group, struct segment_revision *revision, struct error *error)
{
	uint64_t number;

	return group_read(&group->group, revision, &number)
	               ? 0
	               : error_set_code(error, NVTASKSET_ERROR_DAMAGED, "the group is damaged");
}

int nvtaskset_group_get(const struct nvtaskset_group *group, unsigned int gpu, struct nvtaskset_set *set,
                        struct nvtaskset_error *error)
{
	struct segment_revision revision;

	if (!api_gpu(group->topology, gpu, inside_error(error)) ||
	    read_group(group, &revision, inside_error(error)) < 0)
		return -1;
	*set = api_set_on(group->topology, gpu, &revision);
	return 0;
}

int nvtaskset_group_set(struct nvtaskset_group *group, unsigned int gpu, const struct nvtaskset_set *set,
                        struct nvtaskset_error *error)
{
	struct segment_revision wanted;

	return api_want_set(&wanted, group->topology, gpu, set, inside_error(error)) < 0
	               ? -1
	               : pool_file_change(&group->group, &wanted, inside_error(error));
}

/* --- the time ----------------------------------------------------------------------------------------------------- */

#define READER(name)                                                                                    \
	int nvtaskset_group_##name(const struct nvtaskset_group *group, struct nvtaskset_##name *name,  \
	                           struct nvtaskset_error *error)                                       \
	{                                                                                               \
		struct api_given given = {.time.number = 0};                                            \
                                                                                                        \
		return read_group(group, &given.revision, inside_error(error)) < 0                      \
		               ? -1                                                                     \
		               : api_fill_##name(name, &given, inside_error(error));                    \
	}
API_READERS(READER)

#define SETTER(name, setting, text, ...)                                                                              \
	int nvtaskset_group_set_##name(struct nvtaskset_group *group, __VA_ARGS__, struct nvtaskset_error *error)     \
	{                                                                                                             \
		struct segment_revision wanted;                                                                       \
                                                                                                                      \
		return api_want(&wanted, setting, inside_error(error), API_TEXT text) < 0                             \
		               ? -1                                                                                   \
		               : pool_file_change(&group->group, &wanted, inside_error(error));                       \
	}
API_SETTERS(SETTER)

/* --- memory ------------------------------------------------------------------------------------------------------- */

int nvtaskset_group_memory(const struct nvtaskset_group *group, unsigned int gpu, struct nvtaskset_memory *memory,
                           struct nvtaskset_error *error)
{
	const struct topology *model = api_gpu(group->topology, gpu, inside_error(error));
	struct segment_memory_use use = {0};

	if (model)
		use = segment_read_memory_use_of_group(&group->group, model->pci);
	return model ? api_fill_memory(memory, &use, inside_error(error)) : -1;
}

/* --- claims ------------------------------------------------------------------------------------------------------- */

static int choose_tpcs(const struct nvtaskset_group *group, const struct nvtaskset_claim *claim, enum strategy strategy,
                       const struct segment_revision *taken, const struct segment_revision *before,
                       struct segment_partition *chosen, struct error *error)
{
	static const struct tpcset none;
	const struct topology *model = api_gpu(group->topology, claim->gpu, error);

	if (!model)
		return -1;
	const struct segment_partition *has = revision_find_partition(before, model->pci);
	const struct segment_partition *used = revision_find_partition(taken, model->pci);

	chosen->pci = model->pci;
	if (has && tpcset_count(&has->set) != claim->count)
		return error_set_code(error, NVTASKSET_ERROR_INVALID,
		                      "the group has %u TPCs of GPU %u already, and not %u", tpcset_count(&has->set),
		                      claim->gpu, claim->count);
	if (has) {
		chosen->set = has->set;
		return 0;
	}
	if (claim->count == 0)
		return error_set_code(error, NVTASKSET_ERROR_INVALID, "0 TPCs: a program without TPCs would never run");
	return select_tpcs(&chosen->set, model, used ? &used->set : &none, claim->count, strategy, error) < 0
	               ? api_failed((struct nvtaskset_error *)error, NVTASKSET_ERROR_NO_ROOM)
	               : 0;
}

static int claim_locked(struct nvtaskset_group *group, const struct nvtaskset_claim *claims, size_t count,
                        enum strategy strategy, struct error *error)
{
	struct segment_revision taken = {.count = 0}, before, chosen = {.count = 0};
	int result = group_file_add_taken(&taken, group->path, group->group.identity, error);

	if (result == 0)
		result = read_group(group, &before, error);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct segment_partition partition;

		result = choose_tpcs(group, &claims[i], strategy, &taken, &before, &partition, error);
		if (result == 0 && !revision_find_partition(&before, partition.pci))
			result = revision_put(&chosen, &partition, error);
	}
	/* A repeated claim changes nothing: members may have been moved inside. */
	return result == 0 && chosen.count > 0 ? pool_file_change(&group->group, &chosen, error) : result;
}

int nvtaskset_group_claim(struct nvtaskset_group *group, const struct nvtaskset_claim *claims, size_t count,
                          enum nvtaskset_strategy strategy, struct nvtaskset_error *error)
{
	if (!group->path || (strategy != NVTASKSET_PACKED && strategy != NVTASKSET_DISTRIBUTED))
		return error_set_code(inside_error(error), NVTASKSET_ERROR_INVALID, "%s",
		                      group->path ? "no such strategy"
		                                  : "the group was not opened by the path of its file");
	int lock = group_file_lock_directory(group->path, inside_error(error));

	if (lock < 0)
		return -1;
	int result =
	    claim_locked(group, claims, count, strategy == NVTASKSET_PACKED ? STRATEGY_PACKED : STRATEGY_DISTRIBUTED,
	                 inside_error(error));

	close(lock);
	return result;
}
