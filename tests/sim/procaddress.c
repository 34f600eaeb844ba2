/* cuGetProcAddress, and the names of errors. */
#include "api.h"

#include <stdio.h>
#include <string.h>

enum {
	STATUS_FOUND,
	STATUS_NOT_FOUND
};

static const struct {
	const char *name;
	void *address;
} functions[] = {
#define FUNCTION(name, id, parameters) {#name, (void *)name},
	CUDA_API(FUNCTION)
#undef FUNCTION
};

static void *find(const char *symbol, const char *suffix)
{
	char name[128];
	void *found = NULL;

	snprintf(name, sizeof name, "%s%s", symbol, suffix);
	for (size_t i = 0; i < sizeof functions / sizeof functions[0] && !found; i++) {
		if (strcmp(functions[i].name, name) == 0)
			found = functions[i].address;
	}
	return found;
}

/* Programs that ask for "cuMemAlloc" mean cuMemAlloc_v2. The simulator has one version of each function, so the
 * requested driver version does not matter. */
static void *find_any_version(const char *symbol, bool per_thread)
{
	static const char *const suffixes[] = {"_ptsz", "", "_v2"};
	void *found = NULL;

	for (size_t i = per_thread ? 0 : 1; i < sizeof suffixes / sizeof suffixes[0] && !found; i++)
		found = find(symbol, suffixes[i]);
	return found;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags, int *status)
{
	*address = find_any_version(symbol, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	if (status)
		*status = *address ? STATUS_FOUND : STATUS_NOT_FOUND;
	return *address || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* --- errors ------------------------------------------------------------------------------------------------ */

static const struct {
	CUresult error;
	const char *name, *text;
} errors[] = {
#define ERROR(name, text) {name, #name, text}
	ERROR(CUDA_SUCCESS, "no error"),
	ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
	ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
	ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
	ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
	ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
	ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
	ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
};

static CUresult look_up(CUresult error, bool is_name, const char **text)
{
	*text = NULL;
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		if (errors[i].error == error)
			*text = is_name ? errors[i].name : errors[i].text;
	}
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
	return look_up(error, true, name);
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	return look_up(error, false, text);
}
