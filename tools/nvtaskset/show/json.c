#include "json.h"

#include "cli/gpcs.h"
#include "state/segment/segment.h"
#include "terminal/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* RFC 7493: programs that read numbers as floating point lose digits of larger integers. */
#define INTEGER_MAX 0x1fffffffffffffp0

/* --- building blocks --------------------------------------------------------------------------------------------- */

static json_t *released(json_t *value)
{
	json_decref(value);
	return NULL;
}

json_t *json_with(json_t *array, json_t *value)
{
	return json_array_append_new(array, value) == 0 ? array : released(array);
}

static int no_memory(struct error *error)
{
	return error_set(error, "JSON: no memory");
}

json_t *json_reading(struct reading reading, bool is_integer)
{
	json_int_t whole = reading.value < INTEGER_MAX ? (json_int_t)reading.value : (json_int_t)INTEGER_MAX;

	return !reading.is_known ? json_null() : is_integer ? json_integer(whole) : json_real(reading.value);
}

json_t *json_ms(double ns)
{
	return json_reading(reading_if(ns > 0, ns / 1e6), false);
}

json_t *json_members(const struct reading *numbers, const struct json_member *members, unsigned int first,
                     unsigned int last)
{
	json_t *object = json_object();

	for (unsigned int number = first; number <= last; number++)
		object = json_joined(object, json_pack("{s:o}", members[number].name,
		                                       json_reading(numbers[number], members[number].is_integer)));
	return object;
}

json_t *json_numbers(const struct reading numbers[NUMBER_COUNT], enum number first, enum number last)
{
	static const struct json_member members[] = {
#define NUMBER_MEMBER(identifier, member, is_integer) {member, is_integer},
		NUMBERS(NUMBER_MEMBER)
#undef NUMBER_MEMBER
	};

	return json_members(numbers, members, first, last);
}

static json_t *counter(uint64_t value)
{
	return json_reading(reading_of((double)value), true);
}

#define CELL_COLUMNS 16
#define CELL_BYTES (4 * CELL_COLUMNS)

/* The text may be from a file of any user. */
static void print_text(const char *text)
{
	char clean[TEXT_ROOM(CELL_BYTES)];
	size_t width = text_print(stdout, text_clean(clean, text, strnlen(text, CELL_BYTES)), CELL_COLUMNS, true);

	printf("%*s", (int)(CELL_COLUMNS - width), "");
}

void json_print_row(const json_t *object, const char *const names[])
{
	for (; *names; names++) {
		const json_t *value = json_object_get(object, *names);

		if (json_is_real(value))
			printf(" %9.3f", json_real_value(value));
		else if (json_is_integer(value))
			printf(" %9" JSON_INTEGER_FORMAT, json_integer_value(value));
		else if (json_is_string(value))
			print_text(json_string_value(value));
		else
			printf(" %9s", "-");
	}
}

json_int_t json_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return (json_int_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static json_t *numbers(const struct tpcset *set)
{
	json_t *array = json_array();

	for (unsigned int i = tpcset_next(set, 0); i < TPCSET_MAX; i = tpcset_next(set, i + 1))
		array = json_with(array, json_integer(i));
	return array;
}

#define NAME_MOST WORKLOAD_NAME

/* A name from a driver or a file, made harmless. */
static json_t *name_or_null(const char *text)
{
	char clean[TEXT_ROOM(NAME_MOST)];

	return text[0] != '\0' ? json_string(text_clean(clean, text, strlen(text))) : json_null();
}

_Static_assert(TOPOLOGY_UUID_MAX <= NAME_MOST && TOPOLOGY_NAME_MAX <= NAME_MOST, "there is room for all");

/* --- GPUs and sets on them --------------------------------------------------------------------------------------- */

static json_t *gpu_number(struct pci_address pci, const struct topology_list *gpus)
{
	const struct topology *gpu = topology_find(gpus, pci);
	int number = gpu ? gpus_number(gpu, gpus) : -1;

	return number >= 0 ? json_integer(number) : json_null();
}

json_t *json_gpu(struct pci_address pci, const struct topology_list *gpus)
{
	char text[PCI_ADDRESS_TEXT];

	return json_pack("{s:o, s:s}", "gpu", gpu_number(pci, gpus), "bus_id", pci_address_format(pci, text));
}

static json_t *set_members(const struct tpcset *set)
{
	char list[TPCSET_TEXT], mask[TPCSET_TEXT];

	return json_pack("{s:o, s:s, s:s}", "tpcs", numbers(set), "tpc_list", tpcset_format_list(set, list), "tpc_mask",
	                 tpcset_format_mask(set, mask));
}

json_t *json_joined(json_t *object, json_t *more)
{
	bool is_whole = object && more && json_object_update_missing(object, more) == 0;

	json_decref(more);
	return is_whole ? object : released(object);
}

static json_t *gpc_members(const struct topology *gpu, const struct tpcset *set)
{
	struct gpcs gpcs = gpu ? gpcs_of(gpu, set) : (struct gpcs){.whole = {{0}}};

	return json_pack("{s:o, s:o}", "gpcs", numbers(&gpcs.whole), "gpcs_in_part", numbers(&gpcs.part));
}

static json_t *set_on_gpu(struct pci_address pci, const struct tpcset *set, const struct topology_list *gpus)
{
	json_t *object = json_joined(json_gpu(pci, gpus), set_members(set));

	return json_joined(object, gpc_members(topology_find(gpus, pci), set));
}

/* --- processes --------------------------------------------------------------------------------------------------- */

/* An identifier in lower case: stable, unlike the text. */
static json_t *name_of(const char *identifier)
{
	char name[32] = "";

	for (size_t i = 0; i < sizeof name - 1 && identifier[i] != '\0'; i++)
		name[i] = (char)tolower((unsigned char)identifier[i]);
	return json_string(name);
}

static json_t *reasons(const struct segment_counters *counters)
{
	static const char *const identifiers[] = {
#define REASON_NAME(identifier, text) #identifier,
		SEGMENT_REASONS(REASON_NAME)
#undef REASON_NAME
	};
	json_t *array = json_array();

	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++) {
		if (counters->reasons[reason] > 0)
			array = json_with(array, json_pack("{s:o, s:s, s:o}", "reason", name_of(identifiers[reason]),
			                                   "text", segment_reason_text((enum segment_reason)reason),
			                                   "times", counter(counters->reasons[reason])));
	}
	return array;
}

static json_t *partitions(const struct segment_revision *revision, const struct topology_list *gpus)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < revision->count; i++)
		array = json_with(array, set_on_gpu(revision->partitions[i].pci, &revision->partitions[i].set, gpus));
	return array;
}

static json_t *gaps(uint32_t bits)
{
	static const char *const identifiers[] = {
#define GAP_NAME(identifier, text) #identifier,
		COUNTS_GAPS(GAP_NAME)
#undef GAP_NAME
	};
	json_t *array = json_array();

	for (int gap = 0; gap < COUNTS_GAP_COUNT; gap++) {
		if (bits >> gap & 1)
			array = json_with(array, json_pack("{s:o, s:s}", "gap", name_of(identifiers[gap]), "text",
			                                   counts_gap_text((enum counts_gap)gap)));
	}
	return array;
}

/* On the GPUs of the partition, also without counts, and on all further GPUs in use. */
static json_t *kernels(const struct process *process, const struct activities *activities,
                       const struct topology_list *gpus)
{
	struct row row = {.process = process};
	json_t *array = json_array();

	for (; row_find(&row, gpus) && row.has_gpu; row.place++) {
		const struct row *activity = activities ? activities_find(activities, process, row.pci) : NULL;
		json_t *object = json_joined(json_gpu(row.pci, gpus), json_pack("{s:o}", "gaps", gaps(row.gaps)));

		object = json_joined(object, json_numbers(row.numbers, NUMBER_LAUNCHES, NUMBER_UNANNOUNCED));
		object = json_joined(object, json_numbers(row.numbers, NUMBER_MEMORY, NUMBER_MEMORY_LIMIT));
		if (activity)
			object = json_joined(object, json_numbers(activity->numbers, NUMBER_BUSY, NUMBER_BUSY));
		array = json_with(array, object);
	}
	return array;
}

/* The same for all members, and for no other group at the same time. */
static json_t *group_reference(const struct process *process)
{
	const struct process_group *group = &process->group;
	char id[48];

	snprintf(id, sizeof id, "%" PRIx64 "-%" PRIx64 "-%x", group->identity.device, group->identity.inode,
	         (unsigned int)process->uid);
	return group->identity.inode == 0
	               ? json_null()
	               : json_pack("{s:s, s:s?, s:b}", "id", id, "name", group->name[0] != '\0' ? group->name : NULL,
	                           "is_file", group->is_file);
}

static json_t *list_of(const struct tpcset *set)
{
	char text[TPCSET_TEXT];

	return json_string(tpcset_format_list(set, text));
}

static json_t *loans(const struct segment_borrowed *borrowed)
{
	json_t *array = json_array();

	for (int i = 0; i < SEGMENT_LOANS && borrowed->loans[i].lender != 0; i++)
		array = json_with(array, json_pack("{s:o, s:o}", "pid", counter(borrowed->loans[i].lender), "tpc_us",
		                                   counter(borrowed->loans[i].tpc_us)));
	return array;
}

/* Named as in the labels of metrics. */
static json_t *workload_members(const struct workload *workload)
{
	const char *const members[][2] = {
		{"hpc_job", workload->hpc_job}, {"namespace", workload->namespace}, {"pod", workload->pod},
		{"pod_uid", workload->pod_uid}, {"container", workload->container},
	};
	json_t *object = json_object();

	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
		object = json_joined(object, json_pack("{s:o}", members[i][0], name_or_null(members[i][1])));
	return object;
}

/* `activities`: with the busy shares of the GPUs; or NULL. */
static json_t *process_members(const struct process *process, const struct activities *activities,
                               const struct topology_list *gpus)
{
	struct row row = {.process = process};
	json_t *object = json_pack("{s:i, s:I, s:s, s:s, s:o, s:s?, s:o, s:o, s:o, s:o, s:o}", "pid", (int)process->pid,
	                           "uid", (json_int_t)process->uid, "user", process->user, "command", process->command,
	                           "group", group_reference(process), "not_in_force", process->not_in_force, "kernels",
	                           kernels(process, activities, gpus), "reasons", reasons(&process->counters),
	                           "borrowed", list_of(&process->borrowed.tpcs), "lent", list_of(&process->lent),
	                           "loans", loans(&process->borrowed));

	row_find(&row, gpus);
	object = json_joined(object, json_pack("{s:o}", "workload", workload_members(&process->workload)));
	return json_joined(object, json_numbers(row.numbers, NUMBER_OF_PROGRAM, NUMBER_COUNT - 1));
}

/* The settings from the first to the last, each null if never given, or without a limit of memory. */
static json_t *json_settings(const struct segment_revision *revision, enum setting first, enum setting last)
{
	static const char *const names[] = {
#define JSON_NAME(identifier, name, kind, member, behind, least, most, json, ...) json,
		SETTINGS(JSON_NAME)
	};
	json_t *object = json_object();
	char text[SETTING_TEXT];

	for (enum setting setting = first; setting <= last; setting++) {
		struct reading number = reading_of_setting(revision, setting);
		bool is_text = !number.is_known && setting != SETTING_MEMORY &&
		               setting_format(revision, setting, SETTING_FOR_PEOPLE, text);

		object = json_joined(object, json_pack("{s:o}", names[setting],
		                                       is_text ? json_string(text) : json_reading(number, true)));
	}
	return object;
}

/* Adds the effect of the given time. */
static json_t *with_use(json_t *object, const struct segment_time *time)
{
	return time ? json_joined(object, json_pack("{s:b, s:s, s:o, s:o, s:o, s:o}", "in_force",
	                                            segment_time_is_in_force(time->state), "state",
	                                            segment_time_text(time->state), "present_us",
	                                            counter(time->present_us), "aside_us", counter(time->aside_us),
	                                            "bounded", counter(time->bounded), "held", counter(time->held)))
	            : object;
}

json_t *json_time(const struct segment_revision *revision, const struct segment_time *time)
{
	struct segment_quota limit = revision->quota;
	json_t *quota = json_null(), *rank = json_null();

	if (limit.period_us != 0)
		quota = with_use(json_pack("{s:I, s:I, s:b}", "run_us", (json_int_t)limit.run_us, "period_us",
		                           (json_int_t)limit.period_us, "limits", segment_quota_limits(limit)),
		                 time);
	if (segment_rank_is_given(revision->rank))
		rank = with_use(json_settings(revision, SETTING_PRIORITY, SETTING_WEIGHT), time);
	return json_joined(json_pack("{s:o, s:o}", "quota", quota, "rank", rank),
	                   json_settings(revision, SETTING_LEND, SETTING_MEMORY));
}

static json_t *list_process(const struct process *process, const struct activities *activities)
{
	json_t *object = process_members(process, activities->measures_times ? activities : NULL, activities->gpus);

	object = json_joined(object, json_pack("{s:o}", "partitions",
	                                       partitions(&process->revision, activities->gpus)));
	return json_joined(object, json_time(&process->revision, &process->time));
}

/* The processes that share TPCs, or the members of a group. */
static json_t *pids(const struct processes *processes, const struct shared *shared, const struct group_sum *group)
{
	json_t *array = json_array();

	for (size_t i = 0; i < processes->count; i++) {
		const struct process *process = &processes->list[i];

		if (shared ? process_shares(process, shared) : group_has(group, process))
			array = json_with(array, json_integer(process->pid));
	}
	return array;
}

static json_t *overlaps(const struct processes *processes, const struct topology_list *gpus)
{
	json_t *array = json_array();

	for (size_t i = 0; i < processes->shared_count; i++) {
		const struct shared *shared = &processes->shared[i];

		array = json_with(array, json_joined(set_on_gpu(shared->gpu, &shared->tpcs, gpus),
		                                json_pack("{s:o}", "pids", pids(processes, shared, NULL))));
	}
	return array;
}

static json_t *group_sums(const struct processes *processes, const struct groups *groups)
{
	json_t *array = json_array();

	for (size_t i = 0; i < groups->count; i++) {
		const struct group_sum *sum = &groups->list[i];
		json_t *group = json_joined(group_reference(sum->first),
		                            json_pack("{s:o}", "pids", pids(processes, NULL, sum)));

		group = json_joined(group, json_numbers(sum->numbers, NUMBER_LAUNCHES, NUMBER_IN_FLIGHT));
		array = json_with(array,
		                  json_joined(group, json_numbers(sum->numbers, NUMBER_UPLOADS, NUMBER_OUTSIDE)));
	}
	return array;
}

json_t *json_list(const struct activities *activities, const struct groups *groups)
{
	const struct processes *processes = &activities->processes;
	json_t *array = json_array();

	for (size_t i = 0; i < processes->count; i++)
		array = json_with(array, list_process(&processes->list[i], activities));
	return json_pack("{s:s, s:I, s:o, s:o, s:o}", "schema", "nvtaskset-list/4", "time_ms", json_now(), "processes",
	                 array, "overlaps", overlaps(processes, activities->gpus), "groups",
	                 group_sums(processes, groups));
}

/* --- GPUs, TPC by TPC -------------------------------------------------------------------------------------------- */

static json_t *number_or_null(unsigned int number)
{
	return number != TOPOLOGY_UNKNOWN ? json_integer(number) : json_null();
}

static json_t *tpc_sms(const struct topology *gpu, unsigned int tpc)
{
	json_t *array = json_array();

	for (unsigned int sm = 0; sm < gpu->sms_per_tpc; sm++)
		array = json_with(array, json_integer(tpc * gpu->sms_per_tpc + sm));
	return array;
}

static json_t *tpc_pids(const struct topology *gpu, unsigned int tpc, const struct processes *processes)
{
	struct shared shared = {.gpu = gpu->pci};

	tpcset_add_range(&shared.tpcs, tpc, tpc);
	return pids(processes, &shared, NULL);
}

static json_t *tpcs(const struct topology *gpu, const struct processes *processes)
{
	json_t *array = json_array();

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		unsigned int virtual_gpc = gpu->tpcs[tpc].virtual_gpc;

		array = json_with(array,
		                  json_pack("{s:i, s:o, s:o, s:o, s:b, s:o}", "tpc", (int)tpc, "sms",
		                            tpc_sms(gpu, tpc), "gpc", number_or_null(gpu->tpcs[tpc].gpc),
		                            "virtual_gpc", number_or_null(virtual_gpc), "singleton",
		                            gpcs_is_singleton(gpu, tpc), "pids",
		                            tpc_pids(gpu, tpc, processes)));
	}
	return array;
}

static json_t *occupants(const struct topology *gpu, const struct processes *processes,
                         const struct topology_list *gpus)
{
	json_t *array = json_array();

	for (size_t i = 0; i < processes->count; i++) {
		const struct tpcset *set = process_set(&processes->list[i], gpu->pci);

		if (set)
			array = json_with(array, json_joined(process_members(&processes->list[i], NULL, gpus),
			                                set_on_gpu(gpu->pci, set, gpus)));
	}
	return array;
}

static json_t *one_gpu(const struct topology *gpu, const struct processes *processes, const struct topology_list *gpus)
{
	char compute[16];

	snprintf(compute, sizeof compute, "%u.%u", gpu->compute_major, gpu->compute_minor);
	return json_joined(json_gpu(gpu->pci, gpus),
	              json_pack("{s:o, s:o, s:s, s:i, s:i, s:o, s:o}", "uuid", name_or_null(gpu->uuid), "name",
	                        name_or_null(gpu->name), "compute_capability", compute, "sms_per_tpc",
	                        (int)gpu->sms_per_tpc, "tpc_count", (int)gpu->tpc_count, "tpcs", tpcs(gpu, processes),
	                        "processes", occupants(gpu, processes, gpus)));
}

json_t *json_topology(const struct gpu_choices *chosen, const struct processes *processes,
                      const struct topology_list *gpus)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < chosen->count; i++)
		array = json_with(array, one_gpu(chosen->choices[i].gpu, processes, gpus));
	return json_pack("{s:s, s:I, s:o}", "schema", "nvtaskset-topology/3", "time_ms", json_now(), "gpus",
	                 array);
}

/* --- one partition ----------------------------------------------------------------------------------------------- */

static struct tpcset set_of(const struct segment_revision *revision, const struct topology *gpu)
{
	const struct segment_partition *partition = revision_find_partition(revision, gpu->pci);

	return partition ? partition->set : topology_all(gpu);
}

static json_t *set_before(const struct segment_revision *before, const struct topology *gpu)
{
	struct tpcset set = before ? set_of(before, gpu) : (struct tpcset){{0}};

	return before ? json_joined(set_members(&set), gpc_members(gpu, &set)) : json_null();
}

json_t *json_partitions(void)
{
	return json_pack("{s:s, s:I, s:[]}", "schema", "nvtaskset-partition/2", "time_ms", json_now(), "processes");
}

static json_t *sets_on_gpus(const struct gpu_choices *chosen, const struct segment_revision *revision,
                            const struct segment_revision *before, const struct topology_list *gpus)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < chosen->count; i++) {
		const struct topology *gpu = chosen->choices[i].gpu;
		struct tpcset set = set_of(revision, gpu);

		array = json_with(array, json_joined(set_on_gpu(gpu->pci, &set, gpus),
		                                json_pack("{s:o}", "before", set_before(before, gpu))));
	}
	return array;
}

int json_add_partition(json_t *document, pid_t pid, const struct gpu_choices *chosen,
                       const struct segment_revision *revision, const struct segment_revision *before,
                       const struct segment_time *time, const struct topology_list *gpus, struct error *error)
{
	json_t *process = json_pack("{s:i, s:o}", "pid", (int)pid, "partitions",
	                            sets_on_gpus(chosen, revision, before, gpus));

	process = json_joined(process, json_time(revision, time));
	return json_array_append_new(json_object_get(document, "processes"), process) == 0 ? 0 : no_memory(error);
}

int json_add_group(json_t *document, const char *name, const struct gpu_choices *chosen,
                   const struct segment_revision *revision, const struct segment_revision *before,
                   const struct topology_list *gpus, struct error *error)
{
	json_t *group = json_pack("{s:s?, s:o}", "name", name[0] != '\0' ? name : NULL, "partitions",
	                          sets_on_gpus(chosen, revision, before, gpus));

	group = json_joined(group, json_time(revision, NULL));
	return json_object_set_new(document, "group", group) == 0 ? 0 : no_memory(error);
}

/* ------------------------------------------------------------------------------------------------------------------ */

int json_write(json_t *document, bool one_line, FILE *file, struct error *error)
{
	size_t layout = one_line ? JSON_COMPACT : JSON_INDENT(2);
	char *text = document ? json_dumps(document, layout | JSON_ENSURE_ASCII) : NULL;

	json_decref(document);
	if (!text)
		return no_memory(error);
	fprintf(file, "%s\n", text);
	free(text);
	return 0;
}
