/* Partitions as text, for the environment. */
#include "layout.h"

#include <stdio.h>
#include <string.h>

/* One "PCI=LIST" of `length` characters. */
static int parse_partition(struct segment_revision *revision, const char *text, size_t length,
                           struct error *error)
{
	char copy[PCI_ADDRESS_TEXT + TPCSET_TEXT];
	struct segment_partition partition;

	if (length >= sizeof copy)
		return error_set(error, "%s: an entry is too long", SEGMENT_ENVIRONMENT);
	memcpy(copy, text, length);
	copy[length] = '\0';
	char *list = strchr(copy, '=');

	if (!list)
		return error_set(error, "%s: '%.40s' is not GPU=TPCs", SEGMENT_ENVIRONMENT, copy);
	*list++ = '\0';
	memset(&partition, 0, sizeof partition);
	if (pci_address_parse(&partition.pci, copy, error) < 0 ||
	    tpcset_parse_list(&partition.set, list, TPCSET_MAX, "TPC", error) < 0)
		return -1;
	return segment_put(revision, &partition, error);
}

int segment_revision_parse(struct segment_revision *revision, const char *text, struct error *error)
{
	const char *at = text;
	int result = 0;

	memset(revision, 0, sizeof *revision);
	while (result == 0 && *at) {
		size_t length = strcspn(at, ";");

		result = parse_partition(revision, at, length, error);
		at += length + (at[length] == ';');
	}
	return result;
}

const char *segment_revision_format(const struct segment_revision *revision,
                                    char text[SEGMENT_ENVIRONMENT_MAX])
{
	char pci[PCI_ADDRESS_TEXT], list[TPCSET_TEXT];
	size_t length = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < revision->count; i++)
		length += (size_t)snprintf(text + length, SEGMENT_ENVIRONMENT_MAX - length, "%s%s=%s",
		                           i ? ";" : "", pci_address_format(revision->partitions[i].pci, pci),
		                           tpcset_format_list(&revision->partitions[i].set, list));
	return text;
}
