#include "driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define DRIVER_NAME "libnvtaskset-driver.so.1"

struct driver driver;

/* Where in `struct driver` each function goes. */
static const struct {
	const char *name;
	size_t offset;
} functions[] = {
	{"cuGetExportTable", offsetof(struct driver, get_export_table)},
	{"cuCtxGetCurrent", offsetof(struct driver, context_get_current)},
	{"cuCtxPushCurrent_v2", offsetof(struct driver, context_push)},
	{"cuCtxPopCurrent_v2", offsetof(struct driver, context_pop)},
	{"cuCtxGetDevice", offsetof(struct driver, context_get_device)},
	{"cuDeviceGetPCIBusId", offsetof(struct driver, device_get_pci_bus_id)},
	{"cuFuncGetAttribute", offsetof(struct driver, function_get_attribute)},
	{"cuOccupancyMaxActiveBlocksPerMultiprocessor", offsetof(struct driver, occupancy_blocks)},
};

static bool is_ours(const void *address)
{
	Dl_info theirs, ours;

	return dladdr(address, &theirs) && dladdr(&driver, &ours) && theirs.dli_fbase == ours.dli_fbase;
}

int driver_resolve(struct error *error)
{
	void *library = dlopen(DRIVER_NAME, RTLD_LAZY | RTLD_NOLOAD);

	if (!library)
		return error_set(error, "the driver library: " DRIVER_NAME " is not loaded");
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
		void *address = dlsym(library, functions[i].name);

		if (!address || is_ours(address))
			return error_set(error, "the driver library: it has no %s", functions[i].name);
		memcpy((char *)&driver + functions[i].offset, &address, sizeof address);
	}
	return 0;
}
