/* A GPU's PCI address: the identity of the GPU here. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pci_address {
	uint32_t domain;
	uint16_t bus; /* 0 … 255, and device 0 … 31; without padding, for sharing and comparing */
	uint16_t device;
};

int pci_address_compare(struct pci_address a, struct pci_address b); /* <0, 0, >0, like strcmp */
bool pci_address_equal(struct pci_address a, struct pci_address b);

/* The first of `count` structs of `size` bytes that begins with the address; NULL if there is none. */
const void *pci_address_find(struct pci_address pci, const void *structs, size_t count, size_t size);

/* All 0 is an unknown address. */
bool pci_address_is_known(struct pci_address pci);

/* "00000000:3b:00.0", "0000:3b:00.0" or "3b:00.0", in any case; function 0 only. */
#define PCI_ADDRESS_TEXT 24
int pci_address_parse(struct pci_address *pci, const char *text, struct error *error);
const char *pci_address_format(struct pci_address pci, char text[PCI_ADDRESS_TEXT]); /* "0000:3b:00.0" */

/*
 * A GPU's UUID as text, like nvidia-smi's.
 */

#define UUID_BYTES 16
#define UUID_TEXT 41 /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" */

void gpu_uuid_format(const unsigned char bytes[UUID_BYTES], char text[UUID_TEXT]);
