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

/* Finds the next GPU, by PCI address, that a partition names: the first after `gpu`, or of all if that is NULL. */
static bool next_gpu(const struct processes *processes, const struct pci_address *gpu, struct pci_address *next)
{
	bool found = false;

	for (size_t i = 0; i < processes->count; i++) {
		const struct segment_revision *revision = &processes->list[i].revision;

		for (uint32_t place = 0; place < revision->count; place++) {
			struct pci_address pci = revision->partitions[place].pci;

			if ((!gpu || pci_address_compare(pci, *gpu) > 0) &&
			    (!found || pci_address_compare(pci, *next) < 0)) {
				*next = pci;
				found = true;
			}
		}
	}
	return found;
}

int shared_find(struct processes *processes, struct error *error)
{
	struct pci_address gpu, next = {.bus = 0};
	int result = 0;

	for (bool more = next_gpu(processes, NULL, &gpu); more && result == 0;) {
		result = find_shared_of(processes, gpu, error);
		more = next_gpu(processes, &gpu, &next);
		gpu = next;
	}
	return result;
}
