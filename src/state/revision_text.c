#include "revision_text.h"

#include "setting_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of earlier builds, and read over. */
#define POLICY "policy="

/* Returns the value of the setting, or NULL. */
static const char *value_of(const char *text, enum setting setting)
{
	size_t length = strlen(setting_name(setting));

	return strncmp(text, setting_name(setting), length) == 0 && text[length] == '=' ? text + length + 1 : NULL;
}

static int parse_setting(struct segment_revision *revision, const char *text, enum setting setting, struct error *error)
{
	int result = setting_parse(revision, setting, value_of(text, setting), SETTING_PLAIN, error);

	if (result < 0 && error)
		error_reword(error, SEGMENT_ENVIRONMENT ": '%.40s': %.200s", text, error->reason);
	return result;
}

/* A "PCI=LIST", or a setting, of `length` characters. */
static int parse_entry(struct segment_revision *revision, const char *text, size_t length, struct error *error)
{
	char copy[PCI_ADDRESS_TEXT + TPCSET_TEXT];
	struct segment_partition partition;

	if (length >= sizeof copy)
		return error_set(error, "%s: an entry is too long", SEGMENT_ENVIRONMENT);
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (strncmp(copy, POLICY, strlen(POLICY)) == 0)
		return 0;
	for (enum setting setting = 0; setting < SETTING_COUNT; setting++) {
		if (value_of(copy, setting))
			return parse_setting(revision, copy, setting, error);
	}
	char *list = strchr(copy, '=');

	if (!list)
		return error_set(error, "%s: '%.40s' is not GPU=TPCs", SEGMENT_ENVIRONMENT, copy);
	*list++ = '\0';
	memset(&partition, 0, sizeof partition);
	if (pci_address_parse(&partition.pci, copy, error) < 0 ||
	    tpcset_parse_list(&partition.set, list, TPCSET_MAX, "TPC", error) < 0)
		return -1;
	return revision_put(revision, &partition, error);
}

int revision_parse(struct segment_revision *revision, const char *text, struct error *error)
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

static size_t append_text(char text[SEGMENT_ENVIRONMENT_MAX], size_t length, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static size_t append_text(char text[SEGMENT_ENVIRONMENT_MAX], size_t length, const char *format, ...)
{
	va_list values;

	if (length > 0)
		text[length++] = ';';
	va_start(values, format);
	length += (size_t)vsnprintf(text + length, SEGMENT_ENVIRONMENT_MAX - length, format, values);
	va_end(values);
	return length;
}

const char *revision_format(const struct segment_revision *revision,
                            char text[SEGMENT_ENVIRONMENT_MAX])
{
	char pci[PCI_ADDRESS_TEXT], list[TPCSET_TEXT];
	size_t length = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < revision->count; i++)
		length = append_text(text, length, "%s=%s", pci_address_format(revision->partitions[i].pci, pci),
		                     tpcset_format_list(&revision->partitions[i].set, list));
	for (enum setting setting = 0; setting < SETTING_COUNT; setting++) {
		if (setting_format(revision, setting, SETTING_PLAIN, list))
			length = append_text(text, length, "%s=%s", setting_name(setting), list);
	}
	return text;
}
