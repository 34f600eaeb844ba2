#include "plugin.h"

#include "allocation.h"
#include "base/clock.h"
#include "common.h"
#include "config.h"
#include "jobs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_MS 100
#define PAUSES_BETWEEN_LOOKS 100 /* the controller is asked at first, and then every 10 seconds */

/* A job's claims, by nvtaskset's numbers of GPUs. */
struct claims {
	const struct nvtaskset_topology *topology;
	struct nvtaskset_claim wanted[ALLOCATION_GPUS_MAX];
	size_t count;
	uint64_t memory; /* a limit; 0: none */
};

/* --- the job's control group -------------------------------------------------------------------------------------- */

#define LENGTH_MAX 255 /* the room in a group's file */

bool claim_read_cgroup(uint32_t job, const char *line, char path[PATH_MAX])
{
	char wanted[32];
	size_t length = (size_t)snprintf(wanted, sizeof wanted, "/job_%u", job);
	const char *names = strchr(line, ':'), *begin = names ? strchr(names + 1, ':') : NULL, *found = begin;

	while (found && (found = strstr(found + 1, wanted)) && found[length] != '/' && found[length] != '\n' &&
	       found[length] != '\0')
		;
	if (!found || found + length - (begin + 1) > LENGTH_MAX)
		return false;
	snprintf(path, PATH_MAX, "%.*s", (int)(found + length - (begin + 1)), begin + 1);
	return true;
}

/* The control group of this process, a step of the job. NULL without a group. */
static const char *cgroup_find(uint32_t job, char path[PATH_MAX])
{
	char line[PATH_MAX];
	FILE *file = fopen("/proc/self/cgroup", "re");
	bool found = false;

	while (file && !found && fgets(line, sizeof line, file))
		found = claim_read_cgroup(job, line, path);
	if (file)
		fclose(file);
	return found ? path : NULL;
}

/* --- the job's GPUs ----------------------------------------------------------------------------------------------- */

#define DRIVERS_GPUS "/proc/driver/nvidia/gpus"

static int find_in_order(const struct nvtaskset_topology *topology, const char *order, unsigned int slurms,
                         unsigned int *gpu, struct nvtaskset_error *error)
{
	char name[64];

	for (unsigned int i = 0; i < slurms && order; i++)
		order = strchr(order, ',') ? strchr(order, ',') + 1 : NULL;
	if (!order)
		return reason_set(error, NVTASKSET_ERROR_NOT_KNOWN,
		                  "plugstack.conf: gpus= does not name Slurm's GPU %u", slurms);
	snprintf(name, sizeof name, "%.*s", (int)strcspn(order, ","), order);
	return nvtaskset_topology_find_gpu(topology, name, gpu, error);
}

/* The number N of /dev/nvidiaN; -1 if the driver does not say. */
static int device_number(const char *bus_id)
{
	char path[sizeof DRIVERS_GPUS + 64], line[256];
	int number = -1;

	snprintf(path, sizeof path, DRIVERS_GPUS "/%.32s/information", bus_id);
	for (char *letter = path; *letter; letter++)
		*letter = (char)tolower((unsigned char)*letter);
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof line, file))
		sscanf(line, "Device Minor: %d", &number);
	if (file)
		fclose(file);
	return number;
}

static int find_by_device(const struct nvtaskset_topology *topology, unsigned int slurms, unsigned int *gpu)
{
	struct nvtaskset_gpu description = {.size = sizeof description};

	for (unsigned int i = 0; i < nvtaskset_topology_gpu_count(topology); i++)
		if (nvtaskset_gpu_describe(topology, i, &description, NULL) == 0 &&
		    device_number(description.bus_id) == (int)slurms) {
			*gpu = i;
			return 0;
		}
	return -1;
}

/* Slurm counts the files of gres.conf, /dev/nvidia0 and so on, with the driver's numbers. nvtaskset counts by PCI
 * addresses. On most machines the numbers are equal; else the driver or plugstack.conf has the order: Slurm's bus ids,
 * or "". */
static int find_gpu(const struct nvtaskset_topology *topology, const char *order, unsigned int slurms,
                    unsigned int *gpu, struct nvtaskset_error *error)
{
	if (*order)
		return find_in_order(topology, order, slurms, gpu, error);
	if (find_by_device(topology, slurms, gpu) == 0)
		return 0;
	*gpu = slurms;
	return slurms < nvtaskset_topology_gpu_count(topology)
	               ? 0
	               : reason_set(error, NVTASKSET_ERROR_NOT_KNOWN, "Slurm's GPU %u: this machine has %u", slurms,
	                            nvtaskset_topology_gpu_count(topology));
}

/* --- claiming ----------------------------------------------------------------------------------------------------- */

static bool is_whole_gpcs(const struct nvtaskset_topology *topology, unsigned int gpu, const struct nvtaskset_set *set,
                          unsigned int count)
{
	struct nvtaskset_set seen = {{0}};
	unsigned int gpcs = 0;

	for (unsigned int tpc = nvtaskset_set_next(set, 0); tpc < NVTASKSET_TPCS_MAX;
	     tpc = nvtaskset_set_next(set, tpc + 1)) {
		int gpc = nvtaskset_gpu_gpc_of(topology, gpu, tpc);

		if (gpc < 0)
			return false;
		if (!nvtaskset_set_has(&seen, tpc)) {
			struct nvtaskset_set whole = nvtaskset_gpu_tpcs_of_gpc(topology, gpu, (unsigned int)gpc);

			seen = nvtaskset_set_or(&seen, &whole);
			gpcs++;
		}
	}
	return gpcs == count && nvtaskset_set_equal(&seen, set);
}

/* Claims the TPCs of all GPUs, or of none; `first` is the set of the first GPU. Without enough TPCs, the group stays,
 * without any: a second step may be waiting for TPCs. If the limit of memory cannot be set, the group is removed. */
static int claim_tpcs(const struct job *job, enum nvtaskset_strategy strategy, const struct claims *claims,
                      struct nvtaskset_set *first, struct nvtaskset_error *error)
{
	char path[PATH_MAX], cgroup[PATH_MAX];
	struct nvtaskset_group *group = NULL;
	int result = nvtaskset_group_make(&group, claims->topology, jobs_path(job, path), cgroup_find(job->id, cgroup),
	                                  error);

	if (result == 0)
		result = nvtaskset_group_claim(group, claims->wanted, claims->count, strategy, error);
	if (result == 0)
		result = nvtaskset_group_get(group, claims->wanted[0].gpu, first, error);
	if (result == 0 && claims->memory > 0) {
		result = nvtaskset_group_set_memory(group, claims->memory, error);
		if (result < 0)
			nvtaskset_group_remove(path, NULL);
	}
	nvtaskset_group_close(group);
	return result;
}

/* Gives back a set that is not made of whole GPCs. */
static int try_gpcs(const struct job *job, const struct claims *claims, unsigned int gpcs,
                    struct nvtaskset_error *error)
{
	struct nvtaskset_set set;
	unsigned int gpu = claims->wanted[0].gpu;
	char path[PATH_MAX];
	int result = claim_tpcs(job, NVTASKSET_PACKED, claims, &set, error);

	if (result == 0 && !is_whole_gpcs(claims->topology, gpu, &set, gpcs)) {
		result = reason_set(error, NVTASKSET_ERROR_NO_ROOM,
		                    "--gpcs=%u: no %u whole GPCs of GPU %u are free now", gpcs, gpcs, gpu);
		nvtaskset_group_remove(jobs_path(job, path), NULL);
	}
	return result;
}

/* GPCs have different numbers of TPCs: first tries the largest number that the job's shards allow. */
static int claim_gpcs(const struct job *job, const struct claims *claims, unsigned int gpcs,
                      struct nvtaskset_error *error)
{
	struct claims some = *claims;
	int result = claims->count == 1
	                     ? reason_set(error, NVTASKSET_ERROR_NO_ROOM, "--gpcs=%u: the job has %u shards", gpcs,
	                                  claims->wanted[0].count)
	                     : reason_set(error, NVTASKSET_ERROR_OTHER, "--gpcs: the job has %zu GPUs", claims->count);

	for (; result < 0 && error->code == NVTASKSET_ERROR_NO_ROOM && some.wanted[0].count >= gpcs;
	     some.wanted[0].count--)
		result = try_gpcs(job, &some, gpcs, error);
	return result;
}

/* One step at a time: a step may count on TPCs that the step before gives back. The first claim holds for all steps. */
static int claim_once(const struct job *job, const struct config *config, const struct options *options,
                      const struct claims *claims, struct jobs_note *note, struct nvtaskset_error *error)
{
	struct jobs_note done;
	struct nvtaskset_set set;
	int lock = jobs_lock(job, JOBS_LOCK, error), result = lock < 0 ? -1 : 0;

	if (result == 0 && !(jobs_read_note(job, &done) && done.is_claimed)) {
		result = options->unit == OPTIONS_GPCS ? claim_gpcs(job, claims, options->number, error)
		                                       : claim_tpcs(job, config->strategy, claims, &set, error);
		note->is_claimed = result == 0;
		note->memory = options->memory;
		if (result == 0)
			jobs_write_note(job, note);
	}
	if (lock >= 0)
		close(lock);
	return result;
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

/* Removes the files of dead jobs. Whether this job is still to run. */
static bool is_still_to_run(const struct job *job)
{
	struct allocation allocation;
	struct nvtaskset_error ignored;

	jobs_reconcile(job, &ignored);
	return allocation_ask(&allocation, job->id, job->node, &ignored) < 0 ||
	       (allocation.is_here && !allocation.is_ending);
}

static int claim_in_time(const struct job *job, const struct config *config, const struct options *options,
                         const struct claims *claims, struct jobs_note *note, struct nvtaskset_error *error)
{
	double end = clock_ms() + config->wait * 1e3;
	int result = claim_once(job, config, options, claims, note, error);
	bool goes_on = true;

	for (unsigned int i = 0;
	     goes_on && result < 0 && (error->code == NVTASKSET_ERROR_NO_ROOM || error->code == NVTASKSET_ERROR_BUSY);
	     i++) {
		goes_on = (i % PAUSES_BETWEEN_LOOKS != 0 || is_still_to_run(job)) && (i == 0 || clock_ms() < end);
		if (goes_on && i > 0)
			clock_pause_us(PAUSE_MS * 1000L);
		if (goes_on)
			result = claim_once(job, config, options, claims, note, error);
	}
	return result;
}

/* --- all claims --------------------------------------------------------------------------------------------------- */

/* A job with the whole GPU has all its TPCs. */
static int find_claim(const struct nvtaskset_topology *topology, const char *order, struct jobs_gpu *gpu,
                      struct nvtaskset_claim *claim, struct nvtaskset_error *error)
{
	if (find_gpu(topology, order, gpu->number, &claim->gpu, error) < 0)
		return -1;
	struct nvtaskset_set all = nvtaskset_gpu_tpcs(topology, claim->gpu);

	gpu->tpcs = nvtaskset_set_count(&all);
	claim->count = gpu->shards ? gpu->shards : gpu->tpcs;
	return 0;
}

static int check_options(const struct options *options, const struct jobs_note *note, struct nvtaskset_error *error)
{
	return note->count <= 1 || options->unit == OPTIONS_NONE
	               ? options_check(options, note->gpus[0].shards, note->gpus[0].tpcs, error)
	               : reason_set(error, NVTASKSET_ERROR_INVALID,
	                            "--tpcs and --gpcs are for jobs on one GPU, and this one has %u", note->count);
}

static int claim_on(const struct nvtaskset_topology *topology, const struct job *job, const struct config *config,
                    const struct options *options, struct jobs_note *note, struct nvtaskset_error *error)
{
	struct claims claims = {.topology = topology, .count = note->count, .memory = options->memory};

	for (unsigned int i = 0; i < note->count; i++)
		if (find_claim(topology, config->gpus, &note->gpus[i], &claims.wanted[i], error) < 0)
			return -1;
	return check_options(options, note, error) < 0 ? -1 : claim_in_time(job, config, options, &claims, note, error);
}

/* Jobs with whole GPUs start also without a topology: jobs with shards do not. */
static int claim_all(const struct job *job, const struct config *config, const struct options *options,
                     struct jobs_note *note, struct nvtaskset_error *error)
{
	struct nvtaskset_topology *topology = NULL;
	int result = nvtaskset_topology_load(&topology, error);

	if (result == 0)
		result = claim_on(topology, job, config, options, note, error);
	else if (!jobs_has_shards(note))
		result = check_options(options, note, error);
	nvtaskset_topology_free(topology);
	return result;
}

/* --- later steps -------------------------------------------------------------------------------------------------- */

static int set_memory(const struct job *job, uint64_t limit, struct nvtaskset_error *error)
{
	struct nvtaskset_topology *topology = NULL;
	struct nvtaskset_group *group = NULL;
	char path[PATH_MAX];
	int result = nvtaskset_topology_load(&topology, error);

	if (result == 0)
		result = nvtaskset_group_open(&group, topology, jobs_path(job, path), error);
	if (result == 0)
		result = nvtaskset_group_set_memory(group, limit, error);
	nvtaskset_group_close(group);
	nvtaskset_topology_free(topology);
	return result;
}

/* A limit that differs from the limit of the step before. Steps have the options of the job's script: the same limit
 * again does not undo a change made by root meanwhile. */
static int change_memory(const struct job *job, const struct options *options, struct jobs_note *note,
                         struct nvtaskset_error *error)
{
	int lock = jobs_lock(job, JOBS_LOCK, error), result = lock < 0 ? -1 : 0;

	if (result == 0 && jobs_read_note(job, note) && note->memory != options->memory) {
		result = set_memory(job, options->memory, error);
		note->memory = options->memory;
		if (result == 0)
			jobs_write_note(job, note);
	}
	if (lock >= 0)
		close(lock);
	return result;
}

int claim(const struct job *job, unsigned int user, const struct config *config, const struct options *options,
          struct jobs_note *note, struct nvtaskset_error *error)
{
	bool is_known = jobs_is_held(job) && jobs_read_note(job, note);

	if (!is_known && jobs_begin(job, user, note, error) < 0)
		return -1;
	jobs_hold(job);
	if (note->count > 0 && !note->is_claimed)
		return claim_all(job, config, options, note, error);
	int result = check_options(options, note, error);

	return result == 0 && note->is_claimed && options->memory > 0 ? change_memory(job, options, note, error) : result;
}
