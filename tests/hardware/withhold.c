/*
 * For LD_PRELOAD: the kernel driver does not say which SMs a GPU has (gpu/topology/rm.c), as drivers before 515 and on
 * Jetson. The CUDA driver's own questions are answered.
 */
#include "gpu/topology/rm_abi.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_NOT_SUPPORTED 0x56

typedef int ioctl_function(int file, unsigned long request, void *argument);

/* Our library has the name of the driver's link, and no version behind the name. */
static bool is_of_driver(const void *code)
{
	char path[PATH_MAX];
	Dl_info library;

	return dladdr(code, &library) != 0 && realpath(library.dli_fname, path) &&
	       (strstr(path, "/libnvidia-") || (strstr(path, "/libcuda.so.") && !strstr(path, "/libcuda.so.1")));
}

__attribute__((visibility("default"))) int ioctl(int file, unsigned long request, ...)
{
	const void *caller = __builtin_return_address(0);
	va_list arguments;

	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);

	va_end(arguments);
	int result = ((ioctl_function *)dlsym(RTLD_NEXT, "ioctl"))(file, request, argument);
	struct rm_control *call = argument;

	if (result == 0 && request == IOCTL_CONTROL && call->command == SM_ORDER && !is_of_driver(caller))
		call->status = STATUS_NOT_SUPPORTED;
	return result;
}
