/*
 * Usage: split STRATEGY COUNT
 *        split
 *
 * Parts a GPU in two, for the experiments: the first, or the one whose number BENCH_GPU is. Prints "TPCS LIST" for
 * COUNT TPCs (a number, or a share such as 57%) that STRATEGY chooses, and "TPCS LIST" for the rest ("0 " where there
 * is none). STRATEGY is packed or distributed, as nvtaskset's, or gpcs: as many whole GPCs as fit into COUNT. Without
 * arguments: "TPCS SMS-PER-TPC NAME".
 */
#include "gpu/topology/select_tpcs.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int choose_gpcs(struct tpcset *chosen, const struct topology *gpu, unsigned int count, struct error *error)
{
	*chosen = (struct tpcset){{0}};
	for (unsigned int gpc = 0; gpc < TOPOLOGY_GPCS_MAX; gpc++) {
		struct tpcset tpcs = topology_gpc(gpu, gpc);

		if (tpcset_count(chosen) + tpcset_count(&tpcs) <= count)
			*chosen = tpcset_or(chosen, &tpcs);
	}
	return tpcset_is_empty(chosen) ? error_set(error, "no GPC fits into %u TPCs", count) : 0;
}

static int choose(struct tpcset *chosen, const struct topology *gpu, const char *strategy, const char *text,
                  struct error *error)
{
	const struct tpcset none = {{0}};
	unsigned int count;
	int result = select_parse_count(&count, text, gpu, error);

	if (result < 0)
		return result;
	if (strcmp(strategy, "gpcs") == 0)
		result = choose_gpcs(chosen, gpu, count, error);
	else if (strcmp(strategy, "packed") == 0)
		result = select_tpcs(chosen, gpu, &none, count, STRATEGY_PACKED, error);
	else if (strcmp(strategy, "distributed") == 0)
		result = select_tpcs(chosen, gpu, &none, count, STRATEGY_DISTRIBUTED, error);
	else
		result = error_set(error, "%s: not a strategy", strategy);
	return result;
}

/* The GPU of the experiments; NULL if the machine has none of this number. */
static const struct topology *find_gpu(const struct topology_list *list, struct error *error)
{
	const char *text = getenv("BENCH_GPU");
	unsigned long number = text ? strtoul(text, NULL, 10) : 0;

	if (number >= list->count)
		error_set(error, "BENCH_GPU=%s: there are %u GPUs", text, list->count);
	return number < list->count ? &list->gpus[number] : NULL;
}

static void print(const struct tpcset *set)
{
	char text[TPCSET_TEXT];

	printf("%u %s\n", tpcset_count(set), tpcset_format_list(set, text));
}

static int split(const char *strategy, const char *count, const struct topology *gpu, struct error *error)
{
	struct tpcset chosen, rest = topology_all(gpu);
	int result = choose(&chosen, gpu, strategy, count, error);

	if (result == 0) {
		rest = tpcset_without(&rest, &chosen);
		print(&chosen);
		print(&rest);
	}
	return result;
}

int main(int count, char **arguments)
{
	static struct topology_list list;
	const struct topology *gpu = NULL;
	struct error error = {.reason = "Usage: split [packed|distributed|gpcs COUNT]"};
	int result = count == 1 || count == 3 ? topology_load(&list, &error) : -1;

	if (result == 0)
		gpu = find_gpu(&list, &error);
	if (!gpu)
		result = -1;
	else if (count == 3)
		result = split(arguments[1], arguments[2], gpu, &error);
	else
		printf("%u %u %s\n", gpu->tpc_count, gpu->sms_per_tpc, gpu->name);
	if (result < 0)
		fprintf(stderr, "split: %s\n", error.reason);
	return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
