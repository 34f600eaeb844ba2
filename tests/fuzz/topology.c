/* Any bytes: refused with a reason, or a valid topology that survives writing and reading. */
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
	for (unsigned int i = 0; i < list.count; i++) {
		must(topology_validate(&list.gpus[i], NULL) == 0);
		must(i == 0 || pci_address_compare(list.gpus[i - 1].pci, list.gpus[i].pci) < 0);
	}
}

static void check_round_trip(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	must(file && topology_write(&list, file) == 0);
	fclose(file);
	must(read_text(&again, text, size, NULL) == 0);
	must(memcmp(&list, &again, sizeof list) == 0);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error error = {.reason = ""};

	if (size > 0 && read_text(&list, data, size, &error) == 0) {
		check_list();
		check_round_trip();
	} else if (size > 0) {
		must(list.count == 0);
		must(strncmp(error.reason, "fuzz:", 5) == 0);
	}
	return 0;
}
