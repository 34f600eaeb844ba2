#include "own_partition.h"

#include "gpu/topology/topology.h"
#include "own_segment.h"
#include "state/segment/edit.h"

static struct topology_list list;

void own_partition_open(struct own_partition *partition, const struct bench_gpu *gpu)
{
	struct pci_address pci;
	struct error error = {.reason = ""};
	char text[PCI_ADDRESS_TEXT];

	*partition = (struct own_partition){.gpu = NULL};
	bench_check(cuDeviceGetPCIBusId(text, sizeof text, gpu->device));
	if (topology_load(&list, &error) < 0 || pci_address_parse(&pci, text, &error) < 0)
		bench_fail("%s", error.reason);
	partition->gpu = topology_find(&list, pci);
	if (!partition->gpu || partition->gpu->tpc_count < 2)
		bench_fail("GPU %s: its TPCs are unknown, or just one", text);
	partition->all = topology_all(partition->gpu);
	for (unsigned int tpc = 0; tpc < partition->gpu->tpc_count; tpc++)
		tpcset_add(&partition->halves[tpc >= partition->gpu->tpc_count / 2], tpc);
}

void own_partition_set(const struct own_partition *partition, const struct tpcset *set)
{
	const struct segment_partition wanted = {.pci = partition->gpu->pci, .set = *set};
	struct error error;

	if (segment_change(own_segment(), &(struct segment_revision){.count = 1, .partitions[0] = wanted}, NULL, &error) < 0)
		bench_fail("%s", error.reason);
}

uint64_t own_partition_launches(void)
{
	struct segment_counters counters;

	segment_read_counters(own_segment(), &counters);
	return counters.restricted + counters.unrestricted;
}
