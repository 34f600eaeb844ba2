#include "allocation.h"

#include "common.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <string.h>

/* --- the text ----------------------------------------------------------------------------------------------------- */

static int misread(const char *text, struct nvtaskset_error *error)
{
	return reason_set(error, NVTASKSET_ERROR_OTHER, "'%.100s': this is not how Slurm writes GPUs and shards", text);
}

static int add_gpu(struct allocation *allocation, unsigned int number, unsigned int shards)
{
	if (allocation->count == ALLOCATION_GPUS_MAX)
		return -1;
	allocation->gpus[allocation->count++] = (struct allocation_gpu){number, shards};
	return 0;
}

/* "0-2,5": each is a GPU that the job has whole, or the GPU of all its shards. */
static int parse_numbers(struct allocation *allocation, char *text, unsigned int shards)
{
	int result = 0;

	for (char *rest = text, *part; result == 0 && (part = strsep(&rest, ","));) {
		unsigned int first, last;
		char *dash = strchr(part, '-');

		if (dash)
			*dash = '\0';
		result = number_parse(&first, part, 0, UINT16_MAX);
		last = first;
		if (result == 0 && dash)
			result = number_parse(&last, dash + 1, first, UINT16_MAX);
		for (unsigned int number = first; result == 0 && number <= last; number++)
			result = add_gpu(allocation, number, shards);
	}
	return result;
}

/* "8/66,0/66": for each GPU, the job's shards and the GPU's. */
static int parse_parts(struct allocation *allocation, char *text, unsigned int shards)
{
	unsigned int number = 0, sum = 0;
	int result = 0;

	for (char *rest = text, *part; result == 0 && (part = strsep(&rest, ",")); number++) {
		unsigned int its = 0;
		char *slash = strchr(part, '/');

		if (slash)
			*slash = '\0';
		result = slash ? number_parse(&its, part, 0, shards) : -1;
		if (result == 0 && its > 0)
			result = add_gpu(allocation, number, its);
		sum += its;
	}
	return result == 0 && sum == shards ? 0 : -1;
}

/* An entry "shard:TYPE:8(IDX:0)" or "gpu:2(IDX:0,3)"; the type may be missing. */
static int parse_entry(struct allocation *allocation, const char *text, size_t length, bool is_shards,
                       struct nvtaskset_error *error)
{
	char copy[512];
	unsigned int amount, before = allocation->count;

	if (length >= sizeof copy)
		return misread(text, error);
	memcpy(copy, text, length);
	copy[length] = '\0';
	char *where = strchr(copy, '('), *end = strchr(copy, ')');

	if (where)
		*where++ = '\0';
	const char *last = strrchr(copy, ':');

	if (!last || number_parse(&amount, last + 1, 0, UINT32_MAX) < 0)
		return misread(text, error);
	/* Without a place, nothing is allocated; shards without a place would not be fenced. */
	if (amount == 0 || (!where && !is_shards))
		return 0;
	if (!where || !end || end[1])
		return misread(text, error);
	*end = '\0';
	bool is_index = strncmp(where, "IDX:", strlen("IDX:")) == 0;

	if ((is_index ? parse_numbers(allocation, where + strlen("IDX:"), is_shards ? amount : 0)
	              : is_shards ? parse_parts(allocation, where, amount) : -1) < 0)
		return misread(text, error);
	if (is_index && is_shards && allocation->count - before > 1)
		return reason_set(error, NVTASKSET_ERROR_OTHER, "%u shards of the GPUs %.60s: this version of Slurm "
		                                                "does not say how many of each; ask for shards of one "
		                                                "GPU", amount, where + strlen("IDX:"));
	return 0;
}

/* Commas separate entries, and stand inside of parentheses too: "(IDX:0-1,3)". */
static size_t entry_length(const char *text)
{
	size_t length = 0;

	for (int depth = 0; text[length] && (depth > 0 || text[length] != ','); length++)
		depth += (text[length] == '(') - (text[length] == ')');
	return length;
}

int allocation_parse(struct allocation *allocation, const char *gres, struct nvtaskset_error *error)
{
	int result = 0;

	allocation->count = 0;
	while (*gres && result == 0) {
		size_t length = entry_length(gres);
		bool is_shards = strncmp(gres, "shard:", strlen("shard:")) == 0;

		if (is_shards || strncmp(gres, "gpu:", strlen("gpu:")) == 0)
			result = parse_entry(allocation, gres, length, is_shards, error);
		gres += length + (gres[length] == ',');
	}
	return result;
}

/* --- the controller ----------------------------------------------------------------------------------------------- */

static const job_info_t *find_job(const job_info_msg_t *message, uint32_t job)
{
	for (uint32_t i = 0; i < message->record_count; i++)
		if (message->job_array[i].job_id == job)
			return &message->job_array[i];
	return NULL;
}

/* -1: the node is not in the list. */
static int index_of(const char *nodes, const char *node)
{
	hostlist_t list = nodes ? slurm_hostlist_create(nodes) : NULL;
	int index = list ? slurm_hostlist_find(list, node) : -1;

	if (list)
		slurm_hostlist_destroy(list);
	return index;
}

/* Whether a part of "gres:shard:TYPE:8,gres:gpu:1" is about shards, with a number other than 0. */
bool allocation_asks_for_shards(const char *text)
{
	bool asks = false;

	for (const char *part = strstr(text, "shard"); part && !asks; part = strstr(part, "shard")) {
		const char *end = part + strcspn(part, ","), *number = end;

		while (number > part && number[-1] >= '0' && number[-1] <= '9')
			number--;
		asks = number == end || strspn(number, "0") != (size_t)(end - number);
		part = end;
	}
	return asks;
}

static int read_job(struct allocation *allocation, const job_info_t *job, const char *node,
                    struct nvtaskset_error *error)
{
	uint32_t state = job->job_state & JOB_STATE_BASE;
	int index = index_of(job->nodes, node);

	allocation->start = job->start_time;
	allocation->restarts = job->restart_cnt;
	allocation->is_ending = job->job_state & JOB_COMPLETING;
	allocation->is_here = index >= 0 && (state == JOB_RUNNING || state == JOB_SUSPENDED || allocation->is_ending);
	if (allocation->is_here && (uint32_t)index < job->gres_detail_cnt && job->gres_detail_str[index] &&
	    allocation_parse(allocation, job->gres_detail_str[index], error) < 0)
		return -1;
	/* Slurm 22.05 starts jobs without shards just after a start of the controller: the job would not be fenced. */
	if (allocation->is_here && allocation->count == 0 && job->tres_per_node &&
	    allocation_asks_for_shards(job->tres_per_node))
		return reason_set(error, NVTASKSET_ERROR_NO_ROOM,
		                  "the job asks for %.60s, and Slurm has started it without", job->tres_per_node);
	return 0;
}

int allocation_ask(struct allocation *allocation, uint32_t job, const char *node, struct nvtaskset_error *error)
{
	job_info_msg_t *message = NULL;
	const job_info_t *found;
	int result = 0;

	*allocation = (struct allocation){.is_here = false};
	if (slurm_load_job(&message, job, SHOW_DETAIL | SHOW_ALL) != SLURM_SUCCESS)
		return slurm_get_errno() == ESLURM_INVALID_JOB_ID
		               ? 0
		               : reason_set(error, NVTASKSET_ERROR_SYSTEM,
		                            "the controller does not say what job %u has: %.200s", job,
		                            slurm_strerror(slurm_get_errno()));
	found = find_job(message, job);
	if (found)
		result = read_job(allocation, found, node, error);
	slurm_free_job_info_msg(message);
	return result;
}

int allocation_requeue(uint32_t job)
{
	return slurm_requeue(job, 0) == SLURM_SUCCESS ? 0 : -1;
}
