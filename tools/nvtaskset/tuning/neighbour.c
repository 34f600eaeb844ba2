/* A neighbour that copies memory, or computes, all the time. */
#include "programs.h"

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

/*
 * PTX (gpu/kernels.h). memory(void *at, uint64_t bytes): copies `bytes` bytes from `at` to the bytes behind.
 * compute(float *at, uint64_t rounds): each thread multiplies and adds, twice in each round.
 */
static const char neighbour_ptx[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .entry memory(.param .u64 at, .param .u64 bytes)\n"
	"{\n"
	"	.reg .pred %p<2>; .reg .b32 %r<7>; .reg .b64 %d<8>;\n"
	"	ld.param.u64 %d1, [at]; ld.param.u64 %d2, [bytes]; cvta.to.global.u64 %d5, %d1;\n"
	"	mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, %nctaid.x;\n"
	"	mad.lo.u32 %r5, %r1, %r2, %r3; mul.lo.u32 %r6, %r4, %r2;\n"
	"	mul.wide.u32 %d3, %r5, 16; mul.wide.u32 %d4, %r6, 16;\n"
	"MORE:	setp.ge.u64 %p1, %d3, %d2;\n"
	"	@%p1 bra DONE;\n"
	"	add.u64 %d6, %d5, %d3; add.u64 %d7, %d6, %d2;\n"
	"	ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d6]; st.global.v4.u32 [%d7], {%r1, %r2, %r3, %r4};\n"
	"	add.u64 %d3, %d3, %d4;\n"
	"	bra MORE;\n"
	"DONE:	ret;\n"
	"}\n"
	".visible .entry compute(.param .u64 at, .param .u64 rounds)\n"
	"{\n"
	"	.reg .pred %p<2>; .reg .f32 %f<3>; .reg .b64 %d<4>;\n"
	"	ld.param.u64 %d1, [at]; ld.param.u64 %d2, [rounds]; cvta.to.global.u64 %d3, %d1;\n"
	"	mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F000000;\n"
	"MORE:	fma.rn.f32 %f1, %f1, %f2, %f1; fma.rn.f32 %f2, %f2, %f1, %f2;\n"
	"	sub.u64 %d2, %d2, 1; setp.ne.u64 %p1, %d2, 0;\n"
	"	@%p1 bra MORE;\n"
	"	st.global.f32 [%d3], %f1;\n"
	"	ret;\n"
	"}\n";

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

int neighbour_start(pid_t *pid, const char *kind, const struct space *space, const struct tpcset *tpcs,
                    struct error *error)
{
	char line[PROGRAM_LINE], list[TPCSET_TEXT];
	char *command[] = {"/proc/self/exe", NEIGHBOUR_ARGUMENT, (char *)kind, (char *)space->name, NULL};
	struct editor editor;

	tpcset_format_list(tpcs, list);
	snprintf(line, sizeof line, "nvtaskset --mps %s -G %s -t %s", program_mps(space->mps), space->name, list);
	if (program_start(pid, line, command, false, error) < 0)
		return -1;
	if (program_open(&editor, *pid, true, NULL) < 0)
		return error_set(error, "--beside: the neighbour cannot work on TPCs %.60s", list);
	editor_close(&editor);
	return 0;
}
