#include "pci_address.h"

#include <ctype.h>
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

bool pci_address_is_known(struct pci_address pci)
{
	return !pci_address_equal(pci, (struct pci_address){.domain = 0});
}

/* Reads up to `digits` hexadecimal digits and the character `end`. Returns the position after it, or NULL. */
static const char *read_hex(const char *text, unsigned int digits, char end, uint32_t *value)
{
	unsigned int count = 0;

	*value = 0;
	for (; count < digits && isxdigit((unsigned char)*text); count++, text++) {
		unsigned char c = (unsigned char)*text;

		*value = *value << 4 | (uint32_t)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
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

void uuid_format(const unsigned char bytes[UUID_BYTES], char text[UUID_TEXT])
{
	char *to = text + sprintf(text, "GPU-");

	for (int i = 0; i < UUID_BYTES; i++)
		to += sprintf(to, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}
