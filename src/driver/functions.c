#include "functions.h"

#include "base/own_image.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

struct driver driver;
static void *opened;

/* --- calls of ours ------------------------------------------------------------------------------------------------ */

/* The driver's own functions. */
static struct driver real;

static __thread bool is_called_by_us __attribute__((tls_model("initial-exec")));

bool driver_is_called_by_us(void)
{
	return is_called_by_us;
}

/* Calls may nest: in a callback of the driver's, we call the driver again. */
#define CALL(member, name, parameters, arguments)        \
	static CUresult call_##member parameters         \
	{                                                \
		bool was_called = is_called_by_us;       \
                                                         \
		is_called_by_us = true;                  \
		CUresult result = real.member arguments; \
                                                         \
		is_called_by_us = was_called;            \
		return result;                           \
	}

DRIVER_NEEDED(CALL)
DRIVER_OPTIONAL(CALL)

#define MEMBER(member, name, parameters, arguments) .member = call_##member,

static const struct driver marked = {DRIVER_NEEDED(MEMBER) DRIVER_OPTIONAL(MEMBER)};

/* --- looking up --------------------------------------------------------------------------------------------------- */

/* A function, and the offset of the pointer in `struct driver`. */
struct function {
	const char *name;
	size_t offset;
};

#define FUNCTION(member, name, parameters, arguments) {#name, offsetof(struct driver, member)},

static const struct function needed[] = {DRIVER_NEEDED(FUNCTION)};
static const struct function optional[] = {DRIVER_OPTIONAL(FUNCTION)};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static int resolve(void *library, const struct function *function, struct error *error)
{
	void *address = dlsym(library, function->name);

	if (!address || own_image_has(address))
		return error_set(error, "the driver library: it has no %s", function->name);
	memcpy((char *)&real + function->offset, &address, sizeof address);
	memcpy((char *)&driver + function->offset, (const char *)&marked + function->offset, sizeof address);
	return 0;
}

int driver_resolve(const char *name, struct error *error)
{
	void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
	int result = 0;

	if (!library)
		return error_set(error, "the driver library: %s is not loaded", name);
	opened = library;
	for (size_t i = 0; i < COUNT(needed) && result == 0; i++)
		result = resolve(library, &needed[i], error);
	for (size_t i = 0; i < COUNT(optional) && result == 0; i++)
		resolve(library, &optional[i], NULL);
	return result;
}

const struct link_map *driver_library(void)
{
	struct link_map *library = NULL;

	return opened && dlinfo(opened, RTLD_DI_LINKMAP, &library) == 0 ? library : NULL;
}

bool driver_can_register(void)
{
	return driver.memory_register && driver.memory_get_device_pointer && driver.thread_exchange_capture_mode;
}

bool driver_captures(CUstream stream)
{
	int status = CU_STREAM_CAPTURE_STATUS_NONE;

	return stream != CU_STREAM_LEGACY && driver.stream_is_capturing &&
	       driver.stream_is_capturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool driver_has_graphs(void)
{
	return driver.graph_create && driver.graph_destroy && driver.graph_get_nodes &&
	       driver.graph_node_get_type && driver.graph_child && driver.graph_node_get_enabled &&
	       driver.graph_node_set_enabled;
}
