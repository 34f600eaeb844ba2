#include "environment.h"

#include "base/proc.h"

#include <stdio.h>
#include <string.h>

#define VERSION_MAX 32 /* of a driver version: "580.159.04" */

/* The version of the kernel module; "" if there is none, or it has no version. Without stdio, which allocates. */
static void read_driver_version(const char *root, char version[VERSION_MAX])
{
	proc_read_text(version, VERSION_MAX, "%s/sys/module/nvidia/version", root);
	version[strcspn(version, " \n;")] = '\0';
}

/* --- writing ------------------------------------------------------------------------------------------------ */

static char *write_number(char *to, char before, unsigned int number)
{
	return number == TOPOLOGY_UNKNOWN ? to + sprintf(to, "%c-", before) : to + sprintf(to, "%c%u", before, number);
}

static char *write_gpu(char *to, const struct topology *gpu)
{
	char pci[PCI_ADDRESS_TEXT];

	to += sprintf(to, "%s %s %u.%u %u %u %u", pci_address_format(gpu->pci, pci), gpu->uuid, gpu->compute_major,
	              gpu->compute_minor, gpu->sms_per_tpc, gpu->gpc_limit, gpu->tpc_limit);
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		to = write_number(to, tpc == 0 ? ' ' : ',', gpu->tpcs[tpc].gpc);
		to = write_number(to, '.', gpu->tpcs[tpc].virtual_gpc);
		to = write_number(to, '.', gpu->tpcs[tpc].mask_bit);
	}
	return stpcpy(to, ";");
}

const char *topology_environment_write(const char *root, const struct topology_list *list,
                                       char text[TOPOLOGY_ENVIRONMENT_MAX])
{
	char version[VERSION_MAX];
	unsigned int written = 0;

	read_driver_version(root, version);
	char *to = stpcpy(stpcpy(text, version), ";");

	for (unsigned int i = 0; i < list->count; i++) {
		if (list->gpus[i].uuid[0] && !strchr(list->gpus[i].uuid, ';')) {
			to = write_gpu(to, &list->gpus[i]);
			written++;
		}
	}
	if (written == 0)
		text[0] = '\0';
	return text;
}

/* --- reading ------------------------------------------------------------------------------------------------ */

/* The rest of the text. After the first unexpected character, nothing more is read. */
struct reader {
	const char *at;
	bool failed;
};

static void expect(struct reader *reader, char wanted)
{
	if (reader->failed || *reader->at != wanted)
		reader->failed = true;
	else
		reader->at++;
}

static bool comes(const struct reader *reader, char wanted)
{
	return !reader->failed && *reader->at == wanted;
}

static uint16_t read_number(struct reader *reader)
{
	unsigned int number = 0, digits = 0;

	while (!reader->failed && *reader->at >= '0' && *reader->at <= '9' && number < TOPOLOGY_UNKNOWN) {
		number = number * 10 + (unsigned int)(*reader->at++ - '0');
		digits++;
	}
	reader->failed = reader->failed || digits == 0 || number >= TOPOLOGY_UNKNOWN;
	return (uint16_t)number;
}

static uint16_t read_known(struct reader *reader)
{
	uint16_t number = TOPOLOGY_UNKNOWN;

	if (comes(reader, '-'))
		reader->at++;
	else
		number = read_number(reader);
	return number;
}

/* Reads a word and the space behind it. */
static void read_word(struct reader *reader, char *word, size_t size)
{
	size_t length = reader->failed ? 0 : strcspn(reader->at, " ;");

	reader->failed = reader->failed || length == 0 || length >= size;
	if (!reader->failed) {
		memcpy(word, reader->at, length);
		word[length] = '\0';
		reader->at += length;
	}
	expect(reader, ' ');
}

static void read_tpcs(struct reader *reader, struct topology *gpu)
{
	do {
		struct topology_tpc *tpc = &gpu->tpcs[gpu->tpc_count++];

		reader->at += gpu->tpc_count > 1;
		tpc->gpc = read_known(reader);
		expect(reader, '.');
		tpc->virtual_gpc = read_known(reader);
		expect(reader, '.');
		tpc->mask_bit = read_number(reader);
	} while (comes(reader, ',') && gpu->tpc_count < TPCSET_MAX);
}

static bool read_gpu(struct reader *reader, struct topology *gpu)
{
	char pci[PCI_ADDRESS_TEXT] = "";

	memset(gpu, 0, sizeof *gpu);
	read_word(reader, pci, sizeof pci);
	read_word(reader, gpu->uuid, sizeof gpu->uuid);
	gpu->compute_major = read_number(reader);
	expect(reader, '.');
	gpu->compute_minor = read_number(reader);
	expect(reader, ' ');
	gpu->sms_per_tpc = read_number(reader);
	expect(reader, ' ');
	gpu->gpc_limit = read_number(reader);
	expect(reader, ' ');
	gpu->tpc_limit = read_number(reader);
	expect(reader, ' ');
	read_tpcs(reader, gpu);
	expect(reader, ';');
	return !reader->failed && pci_address_parse(&gpu->pci, pci, NULL) == 0 && topology_validate(gpu, NULL) == 0;
}

int topology_environment_read(const char *root, const char *text, struct topology_list *list)
{
	struct reader reader = {.at = text};
	char version[VERSION_MAX];

	read_driver_version(root, version);
	memset(list, 0, sizeof *list);
	for (const char *at = version; *at; at++)
		expect(&reader, *at);
	expect(&reader, ';');
	while (!reader.failed && *reader.at && list->count < TOPOLOGY_GPUS_MAX) {
		struct topology gpu;

		reader.failed = !read_gpu(&reader, &gpu) || topology_find(list, gpu.pci);
		list->gpus[list->count++] = gpu;
	}
	if (reader.failed || *reader.at)
		list->count = 0;
	topology_sort(list);
	return list->count > 0 ? 0 : -1;
}
