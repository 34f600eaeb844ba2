#include "strict.h"

#include "gpu/qmd.h"

static int check_gpu(const struct topology *gpu, struct error *error)
{
	const struct qmd_family *family = qmd_family_for(gpu->compute_major, gpu->compute_minor);
	char pci[PCI_ADDRESS_TEXT];

	pci_address_format(gpu->pci, pci);
	if (!family)
		return error_set(error, "GPU %s: launch descriptors of compute capability %u.%u are not known: "
		                        "--strict starts nothing there", pci, gpu->compute_major, gpu->compute_minor);
	if (topology_mask_bits(gpu) > qmd_mask_bits(family))
		return error_set(error, "GPU %s: its launch descriptors cannot name all of its TPCs: "
		                        "--strict starts nothing there", pci);
	if (!qmd_shows_must_fit(family))
		return error_set(error, "GPU %s: before Hopper, a cooperative node of a CUDA graph that does not fit "
		                        "its partition is not recognised, and hangs: --strict starts nothing there",
		                 pci);
	return 0;
}

int strict_check_gpus(const struct segment_revision *revision, const struct topology_list *list, struct error *error)
{
	int result = 0;

	for (uint32_t i = 0; i < revision->count && result == 0; i++)
		result = check_gpu(topology_find(list, revision->partitions[i].pci), error);
	return result;
}
