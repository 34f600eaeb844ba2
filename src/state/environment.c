/* Partitions as text, for the environment. */
#include "layout.h"

#include <stdio.h>
#include <string.h>

#define QUOTA "quota="

static int parse_quota(struct segment_quota *quota, const char *text, struct error *error)
{
	unsigned int run_us, period_us;
	int length = 0;

	if (sscanf(text, "%9u/%9u%n", &run_us, &period_us, &length) != 2 || text[length] != '\0' || period_us == 0)
		return error_set(error, "%s: '%.40s' is not RUN/PERIOD", SEGMENT_ENVIRONMENT, text);
	*quota = (struct segment_quota){.run_us = run_us, .period_us = period_us};
	return 0;
}

/* One "PCI=LIST", or the quota, of `length` characters. */
static int parse_entry(struct segment_revision *revision, const char *text, size_t length, struct error *error)
{
	char copy[PCI_ADDRESS_TEXT + TPCSET_TEXT];
	struct segment_partition partition;

	if (length >= sizeof copy)
		return error_set(error, "%s: an entry is too long", SEGMENT_ENVIRONMENT);
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (strncmp(copy, QUOTA, strlen(QUOTA)) == 0)
		return parse_quota(&revision->quota, copy + strlen(QUOTA), error);
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

		result = parse_entry(revision, at, length, error);
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
	if (revision->quota.period_us > 0)
		snprintf(text + length, SEGMENT_ENVIRONMENT_MAX - length, "%s" QUOTA "%u/%u", length > 0 ? ";" : "",
		         revision->quota.run_us, revision->quota.period_us);
	return text;
}
