#include "gpus.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The number in decimal digits; -1 for any other text. For a number above TOPOLOGY_GPUS_MAX, some number above it. */
static int parse_number(const char *text, size_t length)
{
	int number = length > 0 ? 0 : -1;

	for (size_t i = 0; i < length && number >= 0; i++) {
		if (!isdigit((unsigned char)text[i]))
			number = -1;
		else if (number <= TOPOLOGY_GPUS_MAX)
			number = number * 10 + (text[i] - '0');
	}
	return number;
}

/* By default CUDA puts the fastest GPU first, and only CUDA knows the fastest: different GPUs need PCI_BUS_ID. */
static int check_order(const struct topology_list *list, struct error *error)
{
	const char *order = getenv("CUDA_DEVICE_ORDER");
	bool alike = true;

	for (unsigned int i = 1; i < list->count; i++)
		alike = alike && strcmp(list->gpus[i].name, list->gpus[0].name) == 0 &&
		        list->gpus[i].tpc_count == list->gpus[0].tpc_count;
	if (!alike && (!order || strcmp(order, "PCI_BUS_ID") != 0))
		return error_set(error, "GPU numbers: the GPUs here differ and CUDA puts the fastest first; "
		                        "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name GPUs by bus id (-G)");
	return 0;
}

static const struct topology *find_uuid(const struct topology_list *list, const char *text, size_t length)
{
	const struct topology *found = NULL;

	for (unsigned int i = 0; i < list->count && length > 4; i++) {
		if (strncasecmp(list->gpus[i].uuid, text, length) == 0)
			found = &list->gpus[i];
	}
	return found;
}

/* Like CUDA, reads the list up to the first entry that names no GPU. */
static void read_visible(struct gpu_choices *visible, const struct topology_list *list, const char *text)
{
	const struct topology *gpu;

	do {
		size_t length = strcspn(text, ",");
		int number = parse_number(text, length);

		gpu = number >= 0 && number < (int)list->count ? &list->gpus[number]
		                                               : find_uuid(list, text, length);
		if (gpu && visible->count < TOPOLOGY_GPUS_MAX)
			visible->choices[visible->count++] = (struct gpu_choice){.gpu = gpu};
		text += length;
	} while (gpu && *text++ == ',');
}

int gpus_visible(struct gpu_choices *visible, const struct topology_list *list, struct error *error)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");

	visible->count = 0;
	if (check_order(list, error) < 0)
		return -1;
	if (text) {
		read_visible(visible, list, text);
	} else {
		for (; visible->count < list->count; visible->count++)
			visible->choices[visible->count] =
				(struct gpu_choice){.gpu = &list->gpus[visible->count]};
	}
	if (visible->count == 0)
		return error_set(error, "CUDA_VISIBLE_DEVICES=%.60s: shows none of this machine's %u GPUs", text,
		                 list->count);
	return 0;
}

int gpus_number(const struct topology *gpu, const struct topology_list *list)
{
	struct gpu_choices visible;
	int number = -1;

	if (gpus_visible(&visible, list, NULL) == 0) {
		for (unsigned int i = visible.count; i-- > 0;) {
			if (visible.choices[i].gpu == gpu)
				number = (int)i;
		}
	}
	return number;
}

const char *gpus_label(struct pci_address gpu, const struct topology_list *list, char text[PCI_ADDRESS_TEXT])
{
	const struct topology *known = topology_find(list, gpu);
	int number = known ? gpus_number(known, list) : -1;

	if (number < 0)
		return pci_address_format(gpu, text);
	snprintf(text, PCI_ADDRESS_TEXT, "%d", number);
	return text;
}

/* --- -G ------------------------------------------------------------------------------------------ */

/* In a bus id, a dot and a digit stand behind the last colon; numbers and UUIDs have neither. */
const char *gpus_set_of(const char *text)
{
	const char *dot = strchr(text, '.');
	const char *colon = dot && dot[1] ? dot + 2 : text + strcspn(text, ":");

	return *colon == ':' ? colon + 1 : NULL;
}

/* The GPU of this name. NULL with the reason; `text` is the argument with the name. */
static const struct topology *find_named(const struct topology_list *list, const char *name, const char *text,
                                         struct error *error)
{
	const struct topology *found = NULL;
	struct gpu_choices visible;
	struct pci_address pci;
	int number = parse_number(name, strlen(name));

	if (number >= 0) {
		if (gpus_visible(&visible, list, error) < 0)
			return NULL;
		if ((unsigned int)number < visible.count)
			found = visible.choices[number].gpu;
		else if (visible.count == 1)
			error_set(error, "GPU %s: CUDA sees one GPU here, number 0", name);
		else
			error_set(error, "GPU %s: CUDA sees GPUs 0-%u here", name, visible.count - 1);
	} else if (strncasecmp(name, "GPU-", 4) == 0) {
		found = find_uuid(list, name, strlen(name));
		if (!found)
			error_set(error, "%s: no GPU here has this UUID", name);
	} else if (pci_address_parse(&pci, name, NULL) == 0) {
		found = topology_find(list, pci);
		if (!found)
			error_set(error, "%s: no GPU here has this bus id", name);
	} else {
		error_set(error, "-G %.60s: not a GPU's number, bus id or UUID, nor 'all'", text);
	}
	return found;
}

static int add_gpu(struct gpu_choices *chosen, const struct topology *gpu, const char *set, const char *text,
                   struct error *error)
{
	for (unsigned int i = 0; i < chosen->count; i++) {
		if (chosen->choices[i].gpu == gpu)
			return error_set(error, "-G %.60s: this GPU is named twice", text);
	}
	chosen->choices[chosen->count++] = (struct gpu_choice){.gpu = gpu, .set = set};
	return 0;
}

static int add_all(struct gpu_choices *chosen, const struct topology_list *list, const char *set,
                   const char *text, struct error *error)
{
	struct gpu_choices visible;
	int result = gpus_visible(&visible, list, error);

	for (unsigned int i = 0; result == 0 && i < visible.count; i++)
		result = add_gpu(chosen, visible.choices[i].gpu, set, text, error);
	return result;
}

static int choose_gpu(struct gpu_choices *chosen, const struct topology_list *list, const char *text,
                      struct error *error)
{
	const char *set = gpus_set_of(text);
	size_t length = set ? (size_t)(set - 1 - text) : strlen(text);
	char name[TOPOLOGY_UUID_MAX];

	snprintf(name, sizeof name, "%.*s", (int)length, text);
	if (strcmp(name, "all") == 0)
		return add_all(chosen, list, set, text, error);
	const struct topology *gpu = find_named(list, name, text, error);

	return gpu ? add_gpu(chosen, gpu, set, text, error) : -1;
}

int gpus_choose(struct gpu_choices *chosen, const struct topology_list *list, const struct gpus_given *given,
                struct error *error)
{
	int result = 0;

	chosen->count = 0;
	if (given->count == 0) {
		result = gpus_visible(chosen, list, error);
		if (result == 0)
			chosen->count = 1;
	}
	for (unsigned int i = 0; result == 0 && i < given->count; i++)
		result = choose_gpu(chosen, list, given->texts[i], error);
	for (unsigned int i = 1; result == 0 && i < chosen->count; i++) {
		if (!chosen->choices[i].set != !chosen->choices[0].set)
			result = error_set(error, "-G: give every GPU its own SET (-G 0:SET -G 1:SET), or none");
	}
	return result;
}
