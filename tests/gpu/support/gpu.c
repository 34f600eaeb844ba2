#include "gpu.h"

#include "../../cases.h"
#include "gpu/kernels.h"
#include "state/kernels/counts_read.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"

#include <dlfcn.h>

#define CUDA_DEFINE(name, number, arguments) CUresult(*name) arguments;
CUDA_API(CUDA_DEFINE)
#undef CUDA_DEFINE

#define SMS_MAX (TPCSET_MAX * 2)
#define BLOCKS_MAX (SMS_MAX * 8)

static void *library;

void gpu_check_result(CUresult result, const char *call, const char *file, int line)
{
	if (result != CUDA_SUCCESS) {
		print_error("%s: error %d\n", call, result);
		_fail(file, line);
	}
}

void gpu_skip(const char *reason)
{
	skip_because(reason);
}

void gpu_load_driver(void)
{
	static const struct {
		const char *name;
		void **function;
	} functions[] = {
#define CUDA_LOOK_UP(name, number, arguments) {#name, (void **)&name},
		CUDA_API(CUDA_LOOK_UP)
#undef CUDA_LOOK_UP
	};

	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		fail_msg("%s", dlerror());
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
		*functions[i].function = dlsym(library, functions[i].name);
}

int gpu_load(void **state)
{
	gpu_load_driver();
	return 0;
}

bool gpu_is_simulated(void)
{
	return dlsym(library, "simulated_gpu") != NULL;
}

int gpu_initialise(void)
{
	int count = 0;

	gpu_load_driver();
	gpu_check(cuInit(0));
	gpu_check(cuDeviceGetCount(&count));
	return count;
}

/* Whether SM ids are a client's own. */
static bool ids_are_own;

/* --- a GPU ------------------------------------------------------------------------------------------------ */

void gpu_open_current(struct gpu_under_test *gpu, int number)
{
	static struct topology_list list;
	char text[PCI_ADDRESS_TEXT];
	struct pci_address pci;
	int sms, is_client;

	gpu_check(cuDeviceGet(&gpu->device, number));
	gpu_check(cuDeviceGetAttribute(&is_client, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, gpu->device));
	ids_are_own = is_client && !gpu_is_simulated();
	gpu_check(cuCtxGetCurrent(&gpu->context));
	gpu_check(cuDeviceGetPCIBusId(text, sizeof text, gpu->device));
	if (list.count == 0)
		topology_load(&list, NULL);
	assert_int_equal(pci_address_parse(&pci, text, NULL), 0);
	gpu->topology = topology_find(&list, pci); /* NULL if it is unknown; some tests need that case */
	gpu_check(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu->device));
	gpu->sm_count = (unsigned int)sms;
	if (gpu->topology)
		assert_int_equal(gpu->sm_count, gpu->topology->tpc_count * gpu->topology->sms_per_tpc);
	gpu_check(cuModuleLoadData(&gpu->module, kernels_ptx));
	gpu_check(cuModuleGetFunction(&gpu->where, gpu->module, "where"));
	gpu_check(cuModuleGetFunction(&gpu->nothing, gpu->module, "nothing"));
	gpu->output = gpu_new_output(gpu);
}

void gpu_close_current(struct gpu_under_test *gpu)
{
	gpu_check(cuMemFree_v2(gpu->output));
	gpu_check(cuModuleUnload(gpu->module));
}

void gpu_open(struct gpu_under_test *gpu, int number)
{
	CUcontext context;
	CUdevice device;

	gpu_check(cuDeviceGet(&device, number));
	gpu_check(cuCtxCreate_v2(&context, 0, device));
	gpu_open_current(gpu, number);
}

void gpu_close(struct gpu_under_test *gpu)
{
	gpu_close_current(gpu);
	gpu_check(cuCtxDestroy_v2(gpu->context));
}

/* --- launches ---------------------------------------------------------------------------------------------- */

CUdeviceptr gpu_new_output(const struct gpu_under_test *gpu)
{
	CUdeviceptr output;

	gpu_check(cuMemAlloc_v2(&output, BLOCKS_MAX * sizeof(uint32_t)));
	return output;
}

static CUresult start(const struct gpu_under_test *gpu, const CUlaunchConfig *config, CUdeviceptr output)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&output, &cycles};

	return cuLaunchKernelEx(config, gpu->where, parameters, NULL);
}

/* Words that the launch does not write must not look like an SM. They are filled by a copy, because a memset can be a
 * kernel, and tests that count launches would count it. */
static CUresult launch(const struct gpu_under_test *gpu, const CUlaunchConfig *config, CUdeviceptr output)
{
	static const uint32_t no_sms[BLOCKS_MAX] = {[0 ... BLOCKS_MAX - 1] = UINT32_MAX};

	gpu_check(cuMemcpyHtoDAsync_v2(output, no_sms, sizeof no_sms, config->hStream));
	return start(gpu, config, output);
}

CUlaunchConfig gpu_config(unsigned int blocks, unsigned int threads, CUstream stream)
{
	return (CUlaunchConfig){
		.gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1, .blockDimX = threads, .blockDimY = 1, .blockDimZ = 1,
		.hStream = stream,
	};
}

CUstream gpu_new_stream(void)
{
	CUstream stream;

	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

static CUstream streams[16];
static unsigned int stream_count;

CUstream gpu_stream_of_case(void)
{
	assert_true(stream_count < COUNT_OF(streams));
	return streams[stream_count++] = gpu_new_stream();
}

void gpu_destroy_streams(void)
{
	while (stream_count > 0)
		gpu_check(cuStreamDestroy_v2(streams[--stream_count]));
}

void gpu_run(const struct gpu_under_test *gpu)
{
	CUlaunchConfig config = gpu_config(GPU_BLOCKS(gpu), GPU_THREADS, NULL);

	gpu_check(start(gpu, &config, gpu->output));
	gpu_check(cuCtxSynchronize());
}

void gpu_launch_empty(const struct gpu_under_test *gpu)
{
	CUlaunchConfig config = gpu_config(1, 1, NULL);

	gpu_check(cuLaunchKernelEx(&config, gpu->nothing, NULL, NULL));
}

/* Copies the SM of each block of a launch that has run. The caller frees the copy. */
static uint32_t *read_sms(const struct gpu_under_test *gpu, CUdeviceptr output, unsigned int blocks)
{
	uint32_t *sms = malloc(blocks * sizeof *sms);

	assert_non_null(sms);
	gpu_check(cuMemcpyDtoH_v2(sms, output, blocks * sizeof *sms));
	for (unsigned int block = 0; block < blocks; block++)
		assert_true(sms[block] < gpu->sm_count);
	return sms;
}

/* Marks the SMs of all blocks; as many of the first SMs where ids are a client's own. */
static void mark_sms(const struct gpu_under_test *gpu, const uint32_t *sms, unsigned int blocks, bool *used)
{
	unsigned int count = 0;

	for (unsigned int block = 0; block < blocks; block++) {
		if (sms[block] < gpu->sm_count) {
			count += !used[sms[block]];
			used[sms[block]] = true;
		}
	}
	for (unsigned int sm = 0; ids_are_own && sm < gpu->sm_count; sm++)
		used[sm] = sm < count;
}

struct tpcset gpu_tpcs_of(const struct gpu_under_test *gpu, const uint32_t *sms, unsigned int blocks)
{
	bool used[SMS_MAX] = {false};
	struct tpcset set = {{0}};

	mark_sms(gpu, sms, blocks, used);
	for (unsigned int sm = 0; sm < gpu->sm_count; sm++)
		tpcset_add(&set, used[sm] ? sm / gpu->topology->sms_per_tpc : TPCSET_MAX);
	return set;
}

struct tpcset gpu_read_tpcs(const struct gpu_under_test *gpu, CUdeviceptr output, unsigned int blocks)
{
	uint32_t *sms = read_sms(gpu, output, blocks);
	struct tpcset set = gpu_tpcs_of(gpu, sms, blocks);

	free(sms);
	return set;
}

struct tpcset gpu_where_into(const struct gpu_under_test *gpu, CUstream stream, CUdeviceptr output)
{
	CUlaunchConfig config = gpu_config(GPU_BLOCKS(gpu), GPU_THREADS, stream);

	gpu_check(launch(gpu, &config, output));
	gpu_check(cuStreamSynchronize(stream));
	return gpu_read_tpcs(gpu, output, GPU_BLOCKS(gpu));
}

struct tpcset gpu_where(const struct gpu_under_test *gpu, CUstream stream)
{
	struct tpcset set = gpu_where_into(gpu, stream, gpu->output);
	uint32_t *sms = read_sms(gpu, gpu->output, GPU_BLOCKS(gpu));
	bool used[SMS_MAX] = {false};

	mark_sms(gpu, sms, GPU_BLOCKS(gpu), used);
	free(sms);
	for (unsigned int sm = 0; sm < gpu->sm_count; sm++)
		assert_int_equal(used[sm], tpcset_has(&set, sm / gpu->topology->sms_per_tpc));
	return set;
}

struct tpcset gpu_where_clusters(const struct gpu_under_test *gpu, unsigned int cluster, unsigned int blocks, uint32_t *sms)
{
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
	CUlaunchConfig config = gpu_config(blocks, GPU_THREADS, NULL);

	attribute.value.clusterDim.x = cluster;
	attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
	config.attrs = &attribute;
	config.numAttrs = cluster > 0;
	if (cluster > 8)
		gpu_check(cuFuncSetAttribute(gpu->where, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	gpu_check(launch(gpu, &config, gpu->output));
	gpu_check(cuCtxSynchronize());
	gpu_check(cuMemcpyDtoH_v2(sms, gpu->output, blocks * sizeof *sms));
	return gpu_read_tpcs(gpu, gpu->output, blocks);
}

CUresult gpu_launch_cooperative(const struct gpu_under_test *gpu, unsigned int blocks)
{
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
	CUlaunchConfig config = gpu_config(blocks, GPU_COOPERATIVE_THREADS, NULL);

	config.attrs = &attribute;
	config.numAttrs = 1;
	return launch(gpu, &config, gpu->output);
}

CUresult gpu_launch_on_devices(const struct gpu_under_test *gpus, const CUstream *theirs, unsigned int count,
                               unsigned int blocks)
{
	uint64_t cycles = GPU_CYCLES;
	CUdeviceptr outputs[2];
	void *parameters[2][2];
	CUDA_LAUNCH_PARAMS launches[2];

	if (!cuLaunchCooperativeKernelMultiDevice)
		gpu_skip("this driver launches on no more than one device");
	for (unsigned int i = 0; i < count; i++) {
		outputs[i] = gpus[i].output;
		parameters[i][0] = &outputs[i];
		parameters[i][1] = &cycles;
		launches[i] = (CUDA_LAUNCH_PARAMS){
			gpus[i].where, blocks, 1, 1, GPU_COOPERATIVE_THREADS, 1, 1, 0, theirs[i], parameters[i]};
	}
	return cuLaunchCooperativeKernelMultiDevice(launches, count, 0);
}

CUDA_KERNEL_NODE_PARAMS gpu_where_node(const struct gpu_under_test *gpu, void **arguments)
{
	return (CUDA_KERNEL_NODE_PARAMS){
		.func = gpu->where, .gridDimX = GPU_BLOCKS(gpu), .gridDimY = 1, .gridDimZ = 1, .blockDimX = GPU_THREADS,
		.blockDimY = 1, .blockDimZ = 1, .kernelParams = arguments,
	};
}

CUgraphNodeParams gpu_conditional_node(const struct gpu_under_test *gpu, CUgraph root, int type, unsigned int bodies,
                                       unsigned int value)
{
	CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};

	parameters.conditional.type = type;
	parameters.conditional.size = bodies;
	parameters.conditional.ctx = gpu->context;
	gpu_check(cuGraphConditionalHandleCreate(&parameters.conditional.handle, root, gpu->context, value,
	                                         CU_GRAPH_COND_ASSIGN_DEFAULT));
	return parameters;
}

CUgraph gpu_conditional_graph(const struct gpu_under_test *gpu, const CUDA_KERNEL_NODE_PARAMS *inside)
{
	CUgraphNode node;
	CUgraph graph;

	gpu_check(cuGraphCreate(&graph, 0));
	CUgraphNodeParams conditional = gpu_conditional_node(gpu, graph, CU_GRAPH_COND_TYPE_IF, 1, 1);

	gpu_check(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &conditional));
	gpu_check(cuGraphAddKernelNode_v2(&node, *conditional.conditional.phGraph_out, NULL, 0, inside));
	return graph;
}

/* --- partitions ---------------------------------------------------------------------------------------------- */

struct segment gpu_own_segment(void)
{
	struct segment segment;
	struct error error = {.reason = ""};

	if (segment_open(&segment, getpid(), NULL, &error) != SEGMENT_FOUND)
		fail_msg("%s", error.reason);
	return segment;
}

bool gpu_is_in_force(void)
{
	struct segment segment = gpu_own_segment();
	bool in_force = !segment_obstacle(&segment, getpid());

	segment_close(&segment);
	return in_force;
}

int gpu_nvtaskset(const char *options)
{
	/* For kernels that let only its parents trace a process. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	int status = system(text_of("'%s' %s %d >/dev/null 2>&1", in_build("nvtaskset"), options, (int)getpid()));

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void gpu_set_partition(const struct gpu_under_test *gpu, struct tpcset set)
{
	struct segment_partition partition = {.pci = gpu->topology->pci, .set = set};
	struct segment segment = gpu_own_segment();
	struct error error = {.reason = ""};

	assert_done(segment_change(&segment, &(struct segment_revision){.count = 1, .partitions[0] = partition}, NULL, &error));
	segment_close(&segment);
}

struct segment_counters gpu_counters(void)
{
	struct segment segment = gpu_own_segment();
	struct segment_counters now;

	segment_read_counters(&segment, &now);
	segment_close(&segment);
	return now;
}

uint64_t gpu_counted(enum segment_reason reason)
{
	return gpu_counters().reasons[reason];
}

uint64_t gpu_launches(void)
{
	struct segment_counters now = gpu_counters();

	return now.restricted + now.unrestricted;
}

struct counts_of_gpu gpu_kernels(const struct gpu_under_test *gpu)
{
	struct segment segment = gpu_own_segment();
	struct counts_of_gpu found = {.launched = 0};
	struct counts counts;

	assert_int_equal(counts_read(&segment, getpid(), &counts, NULL), 0);
	for (unsigned int i = 0; i < counts.count; i++) {
		if (pci_address_equal(counts.gpus[i].pci, gpu->topology->pci))
			found = counts.gpus[i];
	}
	found.gaps |= counts.gaps;
	segment_close(&segment);
	return found;
}

#define PATIENCE_SECONDS 60

struct counts_of_gpu gpu_kernels_at_rest(const struct gpu_under_test *gpu)
{
	time_t end = time(NULL) + PATIENCE_SECONDS;

	gpu_check(cuCtxSynchronize());
	struct counts_of_gpu counts = gpu_kernels(gpu);

	while (counts.ended < counts.launched && !(counts.gaps & 1 << COUNTS_NO_SLOTS) && time(NULL) < end) {
		sched_yield();
		counts = gpu_kernels(gpu);
	}
	return counts;
}

struct tpcset gpu_all(const struct gpu_under_test *gpu)
{
	return topology_all(gpu->topology);
}

struct tpcset gpu_range(unsigned int first, unsigned int last)
{
	struct tpcset set = {{0}};

	tpcset_add_range(&set, first, last);
	return set;
}

struct tpcset gpu_first_of(struct tpcset set, unsigned int count)
{
	struct tpcset first = {{0}};

	assert_true(tpcset_count(&set) >= count);
	for (unsigned int tpc = tpcset_next(&set, 0); count > 0; count--, tpc = tpcset_next(&set, tpc + 1))
		tpcset_add(&first, tpc);
	return first;
}

struct tpcset gpu_singletons(const struct gpu_under_test *gpu)
{
	struct tpcset set = {{0}};

	for (unsigned int tpc = 0; tpc < gpu->topology->tpc_count; tpc++) {
		unsigned int group = gpu->topology->tpcs[tpc].virtual_gpc;

		if (group != TOPOLOGY_UNKNOWN && group >= gpu->topology->gpc_limit)
			tpcset_add(&set, tpc);
	}
	return set;
}

/* The sets of own ids have TPCs from the first one on: so the first ones of `set` are as many. */
static struct tpcset as_ran(struct tpcset set)
{
	unsigned int count = tpcset_count(&set);

	return count > 0 && ids_are_own ? gpu_range(0, count - 1) : set;
}

bool gpu_ran_in(struct tpcset ran, struct tpcset set)
{
	set = as_ran(set);
	return tpcset_equal(&ran, &set);
}

bool gpu_ran_inside(struct tpcset ran, struct tpcset set)
{
	set = as_ran(set);
	return tpcset_is_subset(&ran, &set);
}

void gpu_assert_ran(struct tpcset ran, struct tpcset expected)
{
	char text[TPCSET_TEXT], wanted[TPCSET_TEXT];

	if (!gpu_ran_in(ran, expected))
		fail_msg("ran on TPCs %s instead of %s", tpcset_format_list(&ran, text), tpcset_format_list(&expected, wanted));
}

void gpu_assert_runs_in(const struct gpu_under_test *gpu, CUstream stream, struct tpcset set)
{
	gpu_assert_ran(gpu_where(gpu, stream), set);
}

unsigned int gpu_blocks_per_sm(const struct gpu_under_test *gpu)
{
	int blocks = 0;

	gpu_check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu->where, GPU_COOPERATIVE_THREADS, 0));
	return (unsigned int)blocks;
}
