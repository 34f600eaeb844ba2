/* A neighbour that copies memory, or computes, all the time. */
#include "programs.h"

#include "gpu/neighbour_kernels.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define BYTES (UINT64_C(128) << 20) /* more than any cache */
#define ROUNDS UINT64_C(20000)
#define BLOCKS 2048
#define THREADS 256

static int call(void *library, const char *name, void *a, void *b, void *c)
{
	int (*function)(void *, void *, void *);
	void *address = library ? dlsym(library, name) : NULL;

	memcpy(&function, &address, sizeof function);
	return address ? function(a, b, c) : -1;
}

int neighbour_main(const char *kind, const char *gpu)
{
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
	              void **) = NULL;
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *function,
	     *address = library ? dlsym(library, "cuLaunchKernel") : NULL;
	uint64_t memory = 0, number = strcmp(kind, "memory") == 0 ? BYTES : ROUNDS;
	void *arguments[] = {&memory, &number};
	int failed = prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || call(library, "cuInit", NULL, NULL, NULL) ||
	             call(library, "cuDevicePrimaryCtxRetain", &context, (void *)strtoul(gpu, NULL, 10), NULL) ||
	             call(library, "cuCtxSetCurrent", context, NULL, NULL) ||
	             call(library, "cuModuleLoadData", &module, (void *)neighbour_ptx, NULL) ||
	             call(library, "cuModuleGetFunction", &function, module, (void *)kind) ||
	             call(library, "cuMemAlloc_v2", &memory, (void *)(2 * BYTES), NULL);

	memcpy(&launch, &address, sizeof launch);
	/* Launches in flight: one runs, one waits. */
	for (unsigned int i = 0; !failed; i++)
		failed = launch(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL) ||
		         (i % 2 == 1 && call(library, "cuCtxSynchronize", NULL, NULL, NULL));
	return EXIT_FAILURE;
}

int neighbour_start(pid_t *pid, const char *kind, const struct room *room, const struct tpcset *tpcs,
                    struct error *error)
{
	char line[PROGRAM_LINE], list[TPCSET_TEXT];
	char *command[] = {"/proc/self/exe", NEIGHBOUR_ARGUMENT, (char *)kind, (char *)room->name, NULL};
	struct editor editor;

	tpcset_format_list(tpcs, list);
	snprintf(line, sizeof line, "nvtaskset --mps %s -G %s -t %s", program_mps(room->mps), room->name, list);
	if (program_start(pid, line, command, false, error) < 0)
		return -1;
	if (program_open(&editor, *pid, true, NULL) < 0)
		return error_set(error, "--beside: the neighbour cannot work on TPCs %.60s", list);
	editor_close(&editor);
	return 0;
}
