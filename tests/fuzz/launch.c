/*
 * Launches of a process whose segment has been overwritten with any bytes. A descriptor must always keep a TPC that the
 * GPU has, and only its mask may change; a launch whose blocks must run at once must have room for them.
 *
 * This file stands for the driver: one context on the GPU of share/topologies/h200.txt (from the root of the tree).
 */
#include "fuzz.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/owner.h"

#include "base/log.h"
#include "driver/functions.h"
#include "gpu/topology/topology.h"
#include "launch/account/account.h"
#include "launch/launch.h"
#include "launch/space/epoch.h"
#include "launch/space/partition.h"
#include "launch/timestamps/timestamps.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define QMD_WORDS 96
#define VERSION_BYTE 72
#define MASK_WORD (304 / 4)
#define CLUSTER_BYTE 268
#define CLUSTER_MAX 16

/* Any address will do. */
static char context_object;
#define CONTEXT ((CUcontext)&context_object)

static struct topology_list machine;
static const struct topology *gpu;
static struct segment segment;
static uint8_t *memory; /* a second mapping of the segment */
static uint8_t *pristine;
static size_t memory_size;

/* --- the driver -------------------------------------------------------------------------------------------------- */

static CUresult get_current(CUcontext *current)
{
	*current = CONTEXT;
	return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device)
{
	*device = 0;
	return CUDA_SUCCESS;
}

static CUresult get_count(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

static CUresult get_numbered_device(CUdevice *device, int number)
{
	*device = number;
	return CUDA_SUCCESS;
}

static CUresult get_pci_bus_id(char *text, int length, CUdevice device)
{
	char address[PCI_ADDRESS_TEXT];

	snprintf(text, (size_t)length, "%s", pci_address_format(gpu->pci, address));
	return CUDA_SUCCESS;
}

static CUresult get_attribute(int *value, int attribute, CUfunction function)
{
	*value = 0;
	return CUDA_SUCCESS;
}

static CUresult get_occupancy(int *blocks, CUfunction function, int threads, size_t dynamic_bytes)
{
	*blocks = 2;
	return CUDA_SUCCESS;
}

static void set_up(void)
{
	static const struct segment_revision nothing;
	struct stat status;

	setenv("NVTASKSET_TOPOLOGY", "share/topologies/h200.txt", 1);
	setenv("NVTASKSET_LOG", "off", 1);
	log_open();
	must(topology_load(&machine, NULL) == 0);
	gpu = &machine.gpus[0];
	driver.context_get_current = get_current;
	driver.context_get_device = get_device;
	driver.device_get_count = get_count;
	driver.device_get = get_numbered_device;
	driver.device_get_pci_bus_id = get_pci_bus_id;
	driver.function_get_attribute = get_attribute;
	driver.occupancy_blocks = get_occupancy;
	must(segment_create(&segment, &nothing, NULL, -1, -1, NULL) == 0);
	must(fstat(segment.file, &status) == 0);
	memory_size = (size_t)status.st_size;
	memory = (uint8_t *)segment.memory;
	pristine = malloc(memory_size);
	must(pristine);
	memcpy(pristine, memory, memory_size);
}

/* --- launches ---------------------------------------------------------------------------------------------------- */

static struct tpcset enabled_in(const uint32_t *qmd)
{
	struct tpcset set = {{0}};

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		unsigned int bit = gpu->tpcs[tpc].mask_bit;

		if (!(qmd[0] >> 31 && qmd[MASK_WORD + bit / 32] >> (bit % 32) & 1))
			tpcset_add(&set, tpc);
	}
	return set;
}

static bool has_room(const struct tpcset *enabled, unsigned int cluster)
{
	bool found = false;

	for (unsigned int tpc = tpcset_next(enabled, 0); tpc < TPCSET_MAX; tpc = tpcset_next(enabled, tpc + 1)) {
		struct tpcset group = topology_virtual_gpc(gpu, gpu->tpcs[tpc].virtual_gpc);
		struct tpcset usable = tpcset_and(&group, enabled);

		found = found || tpcset_count(&usable) * gpu->sms_per_tpc >= cluster;
	}
	return found;
}

/* With a mask of the driver. Returns the enabled TPCs. */
static struct tpcset check_masked_launch(uint8_t cluster, uint64_t disable)
{
	uint32_t qmd[QMD_WORDS] = {disable != 0 ? UINT32_C(1) << 31 : 0}, before[QMD_WORDS];
	struct launch launch = {.context = CONTEXT, .qmd = qmd};

	((uint8_t *)qmd)[VERSION_BYTE] = 0x40;
	if (cluster > 1) {
		const uint8_t sizes[] = {cluster, 1, 1};

		memcpy((uint8_t *)qmd + CLUSTER_BYTE, sizes, sizeof sizes);
	}
	memcpy(&qmd[MASK_WORD], &disable, sizeof disable);
	memcpy(before, qmd, sizeof before);
	before[0] &= INT32_MAX;
	memset(&before[MASK_WORD], 0, 16);
	launch_upload(&launch);
	struct tpcset enabled = enabled_in(qmd);

	must(!tpcset_is_empty(&enabled) && (cluster == 1 || has_room(&enabled, cluster)));
	qmd[0] &= INT32_MAX;
	memset(&qmd[MASK_WORD], 0, 16);
	must(memcmp(qmd, before, sizeof before) == 0);
	return enabled;
}

static void check_launch(uint8_t cluster)
{
	check_masked_launch(cluster, 0);
}

/* A kept mask is the mask of a launch that is decided anew. */
static void check_kept(uint8_t cluster, uint64_t disable)
{
	struct tpcset unmasked = check_masked_launch(cluster, 0), kept, anew;

	for (uint8_t other = 2; other <= CLUSTER_MAX; other = (uint8_t)(2 * other))
		check_masked_launch(other, disable);
	kept = check_masked_launch(cluster, disable);
	epoch_raise();
	anew = check_masked_launch(cluster, disable);
	must(tpcset_equal(&kept, &anew));
	epoch_raise();
	anew = check_masked_launch(cluster, 0);
	must(tpcset_equal(&unmasked, &anew));
}

/* --- from bytes -------------------------------------------------------------------------------------------------- */

struct input {
	uint8_t cluster; /* blocks */
	uint8_t edited;  /* whether an editor writes a set before the segment is overwritten */
	uint16_t at;     /* where overwriting starts */
	struct tpcset set;
};

static void edit(const struct tpcset *set)
{
	const struct segment_revision revision = {.count = 1, .partitions = {{.pci = gpu->pci, .set = *set}}};
	struct segment editor;

	must(segment_open(&editor, getpid(), NULL, NULL) == SEGMENT_FOUND);
	must(segment_change(&editor, &revision, NULL, NULL) == 0);
	segment_close(&editor);
}

static void scribble(size_t at, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		memory[(at + i) % memory_size] = data[i];
}

/* Each input starts with a new segment, in a process without a launch. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input;

	if (!memory)
		set_up();
	if (size < sizeof input)
		return 0;
	memcpy(&input, data, sizeof input);
	memcpy(memory, pristine, memory_size);
	epoch_use(&segment);
	partition_use(&segment);
	timestamps_use(&segment);
	account_use(&segment);
	check_launch(1);
	if (input.edited)
		edit(&input.set);
	check_launch(1);
	check_kept(1 + input.cluster % CLUSTER_MAX, input.set.words[1]);
	scribble(input.at, data + sizeof input, size - sizeof input);
	check_launch(1 + input.cluster % CLUSTER_MAX);
	check_launch(1);
	return 0;
}
