/* Any bytes, as a topology file and as a topology in the environment: refused, or valid GPUs that survive writing and reading. */
#include "fuzz.h"

#include "gpu/topology/topology.h"

#include <string.h>

static struct topology_list list, again;

static int read_text(struct topology_list *into, const void *text, size_t size, struct error *error)
{
	FILE *file = fmemopen((void *)text, size, "r");

	must(file);
	int result = topology_read(into, file, "fuzz", error);

	fclose(file);
	return result;
}

static void check_list(void)
{
	must(list.count > 0 && list.count <= TOPOLOGY_GPUS_MAX);
	for (unsigned int i = 0; i < list.count; i++)
		must(topology_validate(&list.gpus[i], NULL) == 0);
}

static void check_file_again(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	for (unsigned int i = 1; i < list.count; i++)
		must(pci_address_compare(list.gpus[i - 1].pci, list.gpus[i].pci) < 0);
	must(file && topology_write(&list, file) == 0);
	fclose(file);
	must(read_text(&again, text, size, NULL) == 0);
	must(memcmp(&list, &again, sizeof list) == 0);
	free(text);
}

static void check_environment(const uint8_t *data, size_t size)
{
	static char text[TOPOLOGY_ENVIRONMENT_MAX], back[TOPOLOGY_ENVIRONMENT_MAX];

	if (size >= sizeof text)
		return;
	memcpy(text, data, size);
	text[size] = '\0';
	if (topology_environment_read("/nonexistent", text, &list) == 0) {
		check_list();
		must(topology_environment_read("/nonexistent", topology_environment_write("/nonexistent", &list, back), &again) == 0);
		must(memcmp(&list, &again, sizeof list) == 0);
	} else {
		must(list.count == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error error = {.reason = ""};

	if (size > 0 && read_text(&list, data, size, &error) == 0) {
		check_list();
		check_file_again();
	} else if (size > 0) {
		must(list.count == 0);
		must(strncmp(error.reason, "fuzz:", 5) == 0);
	}
	check_environment(data, size);
	return 0;
}
