#include "visible.h"

#include "functions.h"
#include "gpu/pci_address.h"

bool visible_find_pci(CUdevice device, struct pci_address *pci)
{
	char text[PCI_ADDRESS_TEXT];

	return driver.device_get_pci_bus_id(text, sizeof text, device) == CUDA_SUCCESS &&
	       pci_address_parse(pci, text, NULL) == 0;
}

static void find_uuid(CUdevice device, char text[TOPOLOGY_UUID_MAX])
{
	CUuuid uuid;

	text[0] = '\0';
	if (driver.device_get_uuid && driver.device_get_uuid(&uuid, device) == CUDA_SUCCESS)
		uuid_format(uuid.bytes, text);
}

static bool add(struct visible *visible, int number)
{
	CUdevice device;
	unsigned int place = visible->gpus.count;

	if (driver.device_get(&device, number) != CUDA_SUCCESS || !visible_find_pci(device, &visible->gpus.gpus[place]))
		return false;
	find_uuid(device, visible->uuids[place]);
	visible->gpus.count++;
	return true;
}

void visible_find(struct visible *visible)
{
	int count = 0;
	bool found = driver.device_get_count(&count) == CUDA_SUCCESS && count > 0 && count <= TOPOLOGY_GPUS_MAX;

	visible->gpus.count = 0;
	for (int number = 0; number < count && found; number++)
		found = add(visible, number);
	if (!found)
		visible->gpus.count = 0;
}
