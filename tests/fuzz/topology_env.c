/* Any bytes as a topology in the environment: refused, or valid GPUs that survive writing and reading. */
#include "fuzz.h"

#include "gpu/topology/topology.h"

#include <string.h>

static struct topology_list list, again;
static char text[TOPOLOGY_ENVIRONMENT_MAX], back[TOPOLOGY_ENVIRONMENT_MAX];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (topology_environment_read("/nonexistent", text, &list) == 0) {
		must(list.count > 0 && list.count <= TOPOLOGY_GPUS_MAX);
		for (unsigned int i = 0; i < list.count; i++)
			must(topology_validate(&list.gpus[i], NULL) == 0);
		must(topology_environment_read("/nonexistent", topology_environment_write("/nonexistent", &list, back),
		                               &again) == 0);
		must(memcmp(&list, &again, sizeof list) == 0);
	} else {
		must(list.count == 0);
	}
	return 0;
}
