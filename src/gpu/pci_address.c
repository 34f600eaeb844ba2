#include "pci_address.h"

#include <stdio.h>
#include <string.h>

int pci_address_compare(struct pci_address a, struct pci_address b)
{
	uint64_t first = (uint64_t)a.domain << 32 | (uint32_t)a.bus << 16 | a.device;
	uint64_t second = (uint64_t)b.domain << 32 | (uint32_t)b.bus << 16 | b.device;

	return (first > second) - (first < second);
}

bool pci_address_equal(struct pci_address a, struct pci_address b)
{
	return pci_address_compare(a, b) == 0;
}

const void *pci_address_find(struct pci_address pci, const void *structs, size_t count, size_t size)
{
	const struct pci_address *found = NULL;

	for (size_t i = 0; i < count && !found; i++) {
		const struct pci_address *at = (const void *)((const char *)structs + i * size);

		found = pci_address_equal(*at, pci) ? at : NULL;
	}
	return found;
}

bool pci_address_is_known(struct pci_address pci)
{
	return !pci_address_equal(pci, (struct pci_address){.domain = 0});
}

int pci_address_parse(struct pci_address *pci, const char *text, struct error *error)
{
	unsigned int domain = 0, bus, device, function;
	int end = 0;

	/* sscanf would accept signs, blanks and prefixes. */
	bool is_plain = text[strspn(text, "0123456789abcdefABCDEF:.")] == '\0';

	if (is_plain && sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4) {
		domain = 0;
		end = 0;
		sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &end);
	}
	if (end == 0 || text[end] != '\0' || function != 0 || device > 31)
		return error_set(error, "'%.40s': not a bus id such as 0000:3b:00.0", text);
	*pci = (struct pci_address){.domain = domain, .bus = (uint16_t)bus, .device = (uint16_t)device};
	return 0;
}

const char *pci_address_format(struct pci_address pci, char text[PCI_ADDRESS_TEXT])
{
	snprintf(text, PCI_ADDRESS_TEXT, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
	return text;
}

void gpu_uuid_format(const unsigned char bytes[UUID_BYTES], char text[UUID_TEXT])
{
	char *to = text + sprintf(text, "GPU-");

	for (int i = 0; i < UUID_BYTES; i++)
		to += sprintf(to, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}
