#include "shared.h"

#include <stdlib.h>

bool process_shares(const struct process *process, const struct shared *shared)
{
	const struct tpcset *set = process_set(process, shared->gpu);

	return set && tpcset_is_subset(&shared->tpcs, set);
}

/* Finds the TPCs of `left` that exactly those processes have that have `tpc`, and how many these processes are. */
static struct tpcset group_of(const struct processes *processes, struct pci_address gpu, const struct tpcset *left,
                              unsigned int tpc, unsigned int *holders)
{
	struct tpcset group = *left;

	*holders = 0;
	for (size_t i = 0; i < processes->count; i++) {
		const struct tpcset *set = process_set(&processes->list[i], gpu);

		if (set && tpcset_has(set, tpc)) {
			group = tpcset_and(&group, set);
			++*holders;
		} else if (set) {
			group = tpcset_without(&group, set);
		}
	}
	return group;
}

static int add_shared(struct processes *processes, struct pci_address gpu, const struct tpcset *tpcs,
                      struct error *error)
{
	struct shared *more = realloc(processes->shared, (processes->shared_count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	processes->shared = more;
	processes->shared[processes->shared_count++] = (struct shared){.gpu = gpu, .tpcs = *tpcs};
	return 0;
}

static int find_shared_of(struct processes *processes, struct pci_address gpu, struct error *error)
{
	struct tpcset left = {{0}};
	int result = 0;

	for (size_t i = 0; i < processes->count; i++) {
		const struct tpcset *set = process_set(&processes->list[i], gpu);

		left = set ? tpcset_or(&left, set) : left;
	}
	while (result == 0 && !tpcset_is_empty(&left)) {
		unsigned int holders;
		struct tpcset group = group_of(processes, gpu, &left, tpcset_next(&left, 0), &holders);

		if (holders > 1)
			result = add_shared(processes, gpu, &group, error);
		left = tpcset_without(&left, &group);
	}
	return result;
}

/* Whether a partition of a process before this one names the GPU. */
static bool is_named_before(const struct processes *processes, size_t number, struct pci_address gpu)
{
	bool is = false;

	for (size_t i = 0; i < number && !is; i++)
		is = segment_find(&processes->list[i].revision, gpu) != NULL;
	return is;
}

int shared_find(struct processes *processes, struct error *error)
{
	int result = 0;

	for (size_t i = 0; i < processes->count; i++) {
		const struct segment_revision *revision = &processes->list[i].revision;

		for (uint32_t place = 0; place < revision->count && result == 0; place++) {
			struct pci_address gpu = revision->partitions[place].pci;

			if (!is_named_before(processes, i, gpu))
				result = find_shared_of(processes, gpu, error);
		}
	}
	return result;
}
