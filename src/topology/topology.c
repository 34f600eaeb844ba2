#include "topology/topology.h"

#include <ctype.h>
#include <stdio.h>
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

void topology_disable_mask(const struct topology *gpu, const struct tpcset *set, uint64_t *words,
                           unsigned int bits)
{
	memset(words, 0xff, bits / 8);
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		unsigned int bit = gpu->tpcs[tpc].mask_bit;

		if (bit < bits && tpcset_has(set, tpc))
			words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
	}
}

/* --- the model's promises ----------------------------------------------------------------------------- */

static int check_numbers(const struct topology *gpu, struct error *error)
{
	if (gpu->tpc_count == 0 || gpu->tpc_count > TPCSET_MAX)
		return error_set(error, "%u TPCs: must be 1-%u", gpu->tpc_count, TPCSET_MAX);
	if (gpu->sms_per_tpc < 1 || gpu->sms_per_tpc > 2)
		return error_set(error, "%u SMs in a TPC: must be 1 or 2", gpu->sms_per_tpc);
	if (gpu->compute_major < 1 || gpu->compute_major > 99 || gpu->compute_minor > 9)
		return error_set(error, "compute capability %u.%u: no GPU has it", gpu->compute_major,
		                 gpu->compute_minor);
	if (gpu->gpc_limit > TOPOLOGY_GPCS_MAX)
		return error_set(error, "room for %u GPCs: must be at most %u", gpu->gpc_limit,
		                 TOPOLOGY_GPCS_MAX);
	return 0;
}

static int check_tpcs(const struct topology *gpu, struct error *error)
{
	bool taken[TOPOLOGY_MASK_BITS] = {false};

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		const struct topology_tpc *entry = &gpu->tpcs[tpc];

		if (entry->mask_bit >= TOPOLOGY_MASK_BITS)
			return error_set(error, "TPC %u: mask bit %u is beyond %u", tpc, entry->mask_bit,
			                 TOPOLOGY_MASK_BITS - 1);
		if (taken[entry->mask_bit])
			return error_set(error, "TPC %u: mask bit %u stands for another TPC already", tpc,
			                 entry->mask_bit);
		if (entry->gpc != TOPOLOGY_UNKNOWN && entry->gpc >= TOPOLOGY_GPCS_MAX)
			return error_set(error, "TPC %u: GPC %u is beyond %u", tpc, entry->gpc,
			                 TOPOLOGY_GPCS_MAX - 1);
		taken[entry->mask_bit] = true;
	}
	return 0;
}

int topology_validate(const struct topology *gpu, struct error *error)
{
	return check_numbers(gpu, error) < 0 || check_tpcs(gpu, error) < 0 ? -1 : 0;
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

/* --- PCI addresses -------------------------------------------------------------------------------------- */

bool pci_address_equal(struct pci_address a, struct pci_address b)
{
	return a.domain == b.domain && a.bus == b.bus && a.device == b.device;
}

const struct topology *topology_find(const struct topology_list *list, struct pci_address pci)
{
	const struct topology *found = NULL;

	for (unsigned int i = 0; i < list->count && !found; i++) {
		if (pci_address_equal(list->gpus[i].pci, pci))
			found = &list->gpus[i];
	}
	return found;
}

/* Reads up to `digits` hexadecimal digits and the character behind them; the position after it, or NULL. */
static const char *read_hex(const char *text, unsigned int digits, char end, uint32_t *value)
{
	unsigned int count = 0;

	*value = 0;
	for (; count < digits && isxdigit((unsigned char)*text); count++, text++) {
		int digit = isdigit((unsigned char)*text) ? *text - '0' : tolower((unsigned char)*text) - 'a' + 10;

		*value = *value << 4 | (uint32_t)digit;
	}
	return count > 0 && *text == end ? text + 1 : NULL;
}

int pci_address_parse(struct pci_address *pci, const char *text, struct error *error)
{
	uint32_t domain = 0, bus, device, function;
	const char *at = strchr(text, ':');
	bool has_domain = at && strchr(at + 1, ':');

	at = has_domain ? read_hex(text, 8, ':', &domain) : text;
	at = at ? read_hex(at, 2, ':', &bus) : NULL;
	at = at ? read_hex(at, 2, '.', &device) : NULL;
	at = at ? read_hex(at, 1, '\0', &function) : NULL;
	if (!at || function != 0 || device > 31)
		return error_set(error, "'%.40s': not a bus id such as 0000:3b:00.0", text);
	*pci = (struct pci_address){.domain = domain, .bus = (uint16_t)bus, .device = (uint16_t)device};
	return 0;
}

const char *pci_address_format(struct pci_address pci, char text[PCI_ADDRESS_TEXT])
{
	snprintf(text, PCI_ADDRESS_TEXT, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
	return text;
}
