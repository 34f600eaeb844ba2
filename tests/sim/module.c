#include "module.h"

#include "context.h"
#include "engine.h"
#include "faults.h"
#include "hook.h"
#include "scheduler.h"

#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define SHARED_WITHOUT_ASKING (48 * 1024)

/* --- reading PTX ------------------------------------------------------------------------------------ */

/* The size of a parameter such as ".u64 out", and of a structure such as ".align 8 .b8 config[24]". */
static unsigned int parameter_bytes(const char *text, const char *end)
{
	const char *type = memchr(text, '.', (size_t)(end - text));
	const char *array = memchr(text, '[', (size_t)(end - text));
	unsigned int bytes = 0;

	if (type && strncmp(type, ".align", 6) == 0)
		type = memchr(type + 1, '.', (size_t)(end - type - 1));
	if (type && type + 2 < end)
		bytes = (unsigned int)strtoul(type + 2, NULL, 10) / 8;
	return array ? bytes * (unsigned int)strtoul(array + 1, NULL, 10) : bytes;
}

static void add_parameter(CUfunction function, unsigned int bytes)
{
	unsigned int number = function->parameter_count;
	unsigned int alignment = bytes < 8 ? bytes : 8;
	unsigned int offset = 0;

	if (number == FUNCTION_PARAMETERS_MAX || bytes == 0)
		fatal("kernel %s: parameters of a kind that the simulator does not know", function->name);
	if (number > 0)
		offset = function->parameters[number - 1].offset + function->parameters[number - 1].bytes;
	function->parameters[number].offset = (offset + alignment - 1) / alignment * alignment;
	function->parameters[number].bytes = bytes;
	if (function->parameters[number].offset + bytes > LAUNCH_ARGUMENTS_MAX)
		fatal("kernel %s: more parameters than the simulator has room for", function->name);
	function->parameter_count++;
}

/* `text` is the PTX after the name; the list of parameters may be missing. */
static void read_parameters(CUfunction function, const char *text)
{
	static const char keyword[] = ".param";

	text += strspn(text, " \t\n");
	const char *end = *text == '(' ? strchr(text, ')') : NULL;
	const char *found = end ? strstr(text, keyword) : NULL;

	while (found && found < end) {
		const char *stop = found + strcspn(found, ",)");

		found += strlen(keyword);
		add_parameter(function, parameter_bytes(found, stop));
		found = strstr(stop, keyword);
	}
}

static CUfunction read_function(CUmodule module, const char *text)
{
	CUfunction function = calloc(1, sizeof *function);

	if (!function)
		fatal("out of memory");
	text += strspn(text, " \t\n");
	size_t length = strcspn(text, " \t\n({");

	if (length >= sizeof function->name)
		fatal("a kernel's name is longer than %zu", sizeof function->name - 1);
	memcpy(function->name, text, length);
	function->module = module;
	function->model = kernel_model_of(function->name);
	atomic_init(&function->dynamic_shared_limit, SHARED_WITHOUT_ASKING);
	read_parameters(function, text + length);
	return function;
}

/* --- modules ------------------------------------------------------------------------------------------- */

/* There is no code. A file with a table of names takes its place, since only the table is read. */
static void announce_code(CUcontext context, CUmodule module, bool has_runtime)
{
	static const char names[] = "\0__CNPRT_VERSION_NUMBER__";
	struct {
		Elf64_Ehdr header;
		Elf64_Shdr section;
		char names[sizeof names];
	} file = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64}, .e_shentsize = sizeof(Elf64_Shdr),
	                   .e_shnum = 1},
		.section = {.sh_type = SHT_STRTAB, .sh_size = sizeof names},
	};

	file.header.e_shoff = (size_t)((char *)&file.section - (char *)&file);
	file.section.sh_offset = (size_t)(file.names - (char *)&file);
	if (has_runtime)
		memcpy(file.names, names, sizeof names);
	hook_module_loaded(context, module, &file, sizeof file, !module);
}

void module_announce_drivers(CUcontext context)
{
	announce_code(context, NULL, true);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	static const char keyword[] = ".entry";
	CUcontext context = context_current();
	const char *text = image;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (strncmp(text, ".version", strlen(".version")) != 0)
		return CUDA_ERROR_INVALID_IMAGE;
	engine_wait_for_all();
	CUmodule new = calloc(1, sizeof *new);

	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	new->family = context->family;
	for (text = strstr(text, keyword); text; text = strstr(text, keyword)) {
		text += strlen(keyword);
		CUfunction function = read_function(new, text);

		function->next = new->functions;
		new->functions = function;
	}
	announce_code(context, new, fault(FAULT_DEVICE_RUNTIME));
	*module = new;
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
	if (context_current())
		engine_wait(context_current());
	while (module->functions) {
		CUfunction next = module->functions->next;

		free(module->functions);
		module->functions = next;
	}
	free(module);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	CUfunction found = module->functions;

	while (found && strcmp(found->name, name) != 0)
		found = found->next;
	*function = found;
	return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* --- functions ----------------------------------------------------------------------------------------- */

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
	const struct {
		int attribute, value;
	} known[] = {
		{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, OCCUPANCY_THREADS_PER_BLOCK},
		{CU_FUNC_ATTRIBUTE_NUM_REGS, OCCUPANCY_REGISTERS_PER_THREAD},
		{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, atomic_load(&function->dynamic_shared_limit)},
		{CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, atomic_load(&function->allows_large_clusters)},
	};
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (known[i].attribute == attribute) {
			*value = known[i].value;
			result = CUDA_SUCCESS;
		}
	}
	return result;
}

HOOKED_2(cuFuncGetName, const char **, name, CUfunction, function)
{
	*name = function->name;
	return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
	const struct topology *gpu = function->module->family->gpu;
	CUresult result = CUDA_SUCCESS;

	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value >= 0 && (unsigned int)value <= occupancy_shared_per_block(gpu))
			atomic_store(&function->dynamic_shared_limit, value);
		else
			result = CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		atomic_store(&function->allows_large_clusters, value != 0);
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	return result;
}
