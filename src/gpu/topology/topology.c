#include "topology.h"

#include <string.h>

/* --- mask bits -------------------------------------------------------------------------------------- */

unsigned int topology_mask_bit(const struct topology *gpu, unsigned int tpc, unsigned int virtual_gpc,
                               unsigned int migratable_tpc)
{
	unsigned int bit;

	if (gpu->compute_major < 9)
		bit = tpc;
	else if (virtual_gpc < gpu->gpc_limit)
		bit = virtual_gpc * gpu->tpc_limit + migratable_tpc;
	else /* a singleton */
		bit = gpu->gpc_limit * gpu->tpc_limit + (virtual_gpc - gpu->gpc_limit);
	return bit;
}

unsigned int topology_sms_per_tpc(unsigned int compute_major, unsigned int compute_minor)
{
	return compute_major < 6 || (compute_major == 6 && (compute_minor == 1 || compute_minor == 2)) ? 1 : 2;
}

unsigned int topology_mask_bits(const struct topology *gpu)
{
	unsigned int bits = 0;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		if (gpu->tpcs[tpc].mask_bit >= bits)
			bits = gpu->tpcs[tpc].mask_bit + 1U;
	}
	return bits;
}

void topology_disable_mask(const struct topology *gpu, const struct tpcset *set, uint64_t *words,
                           unsigned int bits)
{
	memset(words, 0xff, bits / 8);
	for (unsigned int first = 0; first < gpu->tpc_count; first += 64) {
		unsigned int here = gpu->tpc_count - first;

		/* In the launch path: the time depends on the size of the set, not of the GPU. */
		for (uint64_t rest = set->words[first / 64] & (here < 64 ? (UINT64_C(1) << here) - 1 : UINT64_MAX);
		     rest; rest &= rest - 1) {
			unsigned int bit = gpu->tpcs[first + (unsigned int)__builtin_ctzll(rest)].mask_bit;

			if (bit < bits)
				words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
		}
	}
}

struct tpcset topology_enabled(const struct topology *gpu, const uint64_t *words)
{
	struct tpcset set = {{0}};

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		unsigned int bit = gpu->tpcs[tpc].mask_bit;

		if (!(words[bit / 64] >> (bit % 64) & 1))
			tpcset_add(&set, tpc);
	}
	return set;
}

/* --- sets -------------------------------------------------------------------------------------------- */

struct tpcset topology_all(const struct topology *gpu)
{
	struct tpcset set = {{0}};

	if (gpu->tpc_count > 0)
		tpcset_add_range(&set, 0, gpu->tpc_count - 1u);
	return set;
}

struct tpcset topology_gpc(const struct topology *gpu, unsigned int gpc)
{
	struct tpcset set = {{0}};

	for (unsigned int tpc = 0; tpc < gpu->tpc_count && gpc != TOPOLOGY_UNKNOWN; tpc++) {
		if (gpu->tpcs[tpc].gpc == gpc)
			tpcset_add(&set, tpc);
	}
	return set;
}

struct tpcset topology_virtual_gpc(const struct topology *gpu, unsigned int virtual_gpc)
{
	struct tpcset set = {{0}};

	for (unsigned int tpc = 0; tpc < gpu->tpc_count && virtual_gpc != TOPOLOGY_UNKNOWN; tpc++) {
		if (gpu->tpcs[tpc].virtual_gpc == virtual_gpc)
			tpcset_add(&set, tpc);
	}
	return set;
}

struct tpcset topology_cluster_group(const struct topology *gpu, const struct tpcset *set, unsigned int tpc)
{
	unsigned int number = gpu->tpcs[tpc].virtual_gpc;
	struct tpcset group = number != TOPOLOGY_UNKNOWN ? topology_virtual_gpc(gpu, number) : topology_all(gpu);

	return tpcset_and(&group, set);
}

/* --- lists of GPUs -------------------------------------------------------------------------------------- */

bool topology_wants(const struct topology_wanted *wanted, struct pci_address pci)
{
	return !wanted || pci_address_find(pci, wanted->gpus, wanted->count, sizeof wanted->gpus[0]);
}

const struct topology *topology_find(const struct topology_list *list, struct pci_address pci)
{
	return pci_address_find(pci, list->gpus, list->count, sizeof list->gpus[0]);
}

/* Insertion sort: there are few GPUs, and qsort may allocate. */
void topology_sort(struct topology_list *list)
{
	struct topology *gpus = list->gpus;

	for (unsigned int end = 1; end < list->count; end++) {
		for (unsigned int i = end; i > 0 && pci_address_compare(gpus[i - 1].pci, gpus[i].pci) > 0; i--) {
			struct topology gpu = gpus[i];

			gpus[i] = gpus[i - 1];
			gpus[i - 1] = gpu;
		}
	}
}

static int check_range(const char *what, unsigned int number, unsigned int first, unsigned int last,
                       struct error *error)
{
	if (number < first || number > last)
		return error_set(error, "%s: %u, must be %u-%u", what, number, first, last);
	return 0;
}

static int check_numbers(const struct topology *gpu, struct error *error)
{
	if (check_range("PCI bus", gpu->pci.bus, 0, 255, error) < 0 ||
	    check_range("PCI device", gpu->pci.device, 0, 31, error) < 0 ||
	    check_range("compute capability, before the point", gpu->compute_major, 1, 99, error) < 0 ||
	    check_range("compute capability, behind the point", gpu->compute_minor, 0, 9, error) < 0 ||
	    check_range("SMs in a TPC", gpu->sms_per_tpc, 1, 2, error) < 0 ||
	    check_range("room for GPCs", gpu->gpc_limit, 1, TOPOLOGY_GPCS_MAX, error) < 0 ||
	    check_range("room for TPCs in a GPC", gpu->tpc_limit, 1, TPCSET_MAX, error) < 0)
		return -1;
	return check_range("TPCs", gpu->tpc_count, 1, TPCSET_MAX, error);
}

/* Names are shown on terminals, which obey control characters, and written to files of lines. */
static int check_text(const char *what, const char *text, size_t size, struct error *error)
{
	if (strnlen(text, size) == size)
		return error_set(error, "%s: longer than %zu characters", what, size - 1);
	if (text[0] == ' ')
		return error_set(error, "%s: a space in front", what);
	for (const char *at = text; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return error_set(error, "%s: a control character", what);
	}
	return 0;
}

static int check_texts(const struct topology *gpu, struct error *error)
{
	if (check_text("name", gpu->name, sizeof gpu->name, error) < 0 ||
	    check_text("UUID", gpu->uuid, sizeof gpu->uuid, error) < 0)
		return -1;
	return strchr(gpu->uuid, ' ') ? error_set(error, "UUID: a space in it") : 0;
}

/* What a TPC has for itself alone. */
struct taken {
	bool bits[TOPOLOGY_MASK_BITS];
	bool singletons[TPCSET_MAX]; /* by virtual GPC, from the topology's gpc_limit on */
};

static int check_bit(const struct topology *gpu, unsigned int tpc, struct taken *taken, struct error *error)
{
	unsigned int bit = gpu->tpcs[tpc].mask_bit;

	if (bit >= TOPOLOGY_MASK_BITS)
		return error_set(error, "TPC %u: mask bit %u is beyond %u", tpc, bit, TOPOLOGY_MASK_BITS - 1);
	if (taken->bits[bit])
		return error_set(error, "TPC %u: mask bit %u stands for another TPC already", tpc, bit);
	taken->bits[bit] = true;
	return 0;
}

static int check_gpcs(const struct topology *gpu, unsigned int tpc, struct taken *taken, struct error *error)
{
	unsigned int gpc = gpu->tpcs[tpc].gpc, virtual_gpc = gpu->tpcs[tpc].virtual_gpc;

	if (gpc != TOPOLOGY_UNKNOWN && gpc >= TOPOLOGY_GPCS_MAX)
		return error_set(error, "TPC %u: GPC %u is beyond %u", tpc, gpc, TOPOLOGY_GPCS_MAX - 1);
	if (virtual_gpc == TOPOLOGY_UNKNOWN || virtual_gpc < gpu->gpc_limit)
		return 0;
	unsigned int singleton = virtual_gpc - gpu->gpc_limit;

	if (singleton >= TPCSET_MAX)
		return error_set(error, "TPC %u: virtual GPC %u is beyond %u", tpc, virtual_gpc,
		                 gpu->gpc_limit + TPCSET_MAX - 1u);
	if (taken->singletons[singleton])
		return error_set(error, "TPC %u: virtual GPC %u is a singleton's, and has another TPC already",
		                 tpc, virtual_gpc);
	taken->singletons[singleton] = true;
	return 0;
}

static int check_tpcs(const struct topology *gpu, struct error *error)
{
	struct taken taken = {{false}, {false}};
	int result = 0;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count && result == 0; tpc++) {
		result = check_bit(gpu, tpc, &taken, error);
		if (result == 0)
			result = check_gpcs(gpu, tpc, &taken, error);
	}
	return result;
}

int topology_validate(const struct topology *gpu, struct error *error)
{
	int result = check_numbers(gpu, error);

	if (result == 0)
		result = check_texts(gpu, error);
	if (result == 0)
		result = check_tpcs(gpu, error);
	return result;
}
