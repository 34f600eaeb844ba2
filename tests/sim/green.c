/* Green contexts: contexts with a part of the GPU, which the driver enforces with the same mask as we do
 * (facts.md, "Launch descriptors"). */
#include "context.h"
#include "hook.h"
#include "stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct CUgreenCtx_st {
	struct CUctx_st context;
};

struct CUdevResourceDesc_st {
	struct tpcset tpcs;
	struct CUdevResourceDesc_st *next;
};

/* --- resources: a set of TPCs, kept in the bytes that are private to the driver ------------------------- */

struct content {
	CUdevice device;
	struct tpcset tpcs;
};

_Static_assert(sizeof(struct content) <= sizeof((CUdevResource *)0)->internal, "room for the content");

static struct content content_of(const CUdevResource *resource)
{
	struct content content;

	memcpy(&content, resource->internal, sizeof content);
	return content;
}

/* The least number of SMs of a green context, of which its size is a multiple, by compute capability: published in the
 * driver API's documentation. */
static unsigned int sm_alignment(const struct topology *gpu)
{
	return gpu->compute_major >= 9 ? 8 : gpu->compute_major >= 7 ? 2 : 1;
}

static unsigned int smallest_part(const struct topology *gpu)
{
	return gpu->compute_major == 8 ? 4 : sm_alignment(gpu);
}

static CUdevResource make_resource(CUdevice device, const struct tpcset *tpcs)
{
	const struct topology *gpu = device_topology(device);
	const struct content content = {.device = device, .tpcs = *tpcs};
	CUdevResource resource = {.type = CU_DEV_RESOURCE_TYPE_SM};

	memcpy(resource.internal, &content, sizeof content);
	resource.sm.smCount = tpcset_count(tpcs) * gpu->sms_per_tpc;
	resource.sm.minSmPartitionSize = smallest_part(gpu);
	resource.sm.smCoscheduledAlignment = sm_alignment(gpu);
	return resource;
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, int type)
{
	const struct topology *gpu = device_topology(device);

	if (!gpu || type != CU_DEV_RESOURCE_TYPE_SM)
		return gpu ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
	struct tpcset all = topology_all(gpu);

	*resource = make_resource(device, &all);
	return CUDA_SUCCESS;
}

/* --- splitting ------------------------------------------------------------------------------------------ */

static struct tpcset first_tpcs(const struct tpcset *set, unsigned int count)
{
	struct tpcset first = {{0}};
	unsigned int tpc = tpcset_next(set, 0);

	for (; count > 0 && tpc < TPCSET_MAX; count--, tpc = tpcset_next(set, tpc + 1))
		tpcset_add(&first, tpc);
	return first;
}

/* SMs that are handed out together lie in one virtual GPC. A part takes such chunks from one GPC after the
 * other: 16 SMs were four TPCs of virtual GPC 0 and four of virtual GPC 1 (facts.md, "Launch descriptors"). */
static bool take_chunk(const struct topology *gpu, struct tpcset *left, unsigned int *virtual_gpc, struct tpcset *part)
{
	unsigned int wanted = (sm_alignment(gpu) + gpu->sms_per_tpc - 1) / gpu->sms_per_tpc;
	unsigned int gpcs = gpu->compute_major >= 9 ? gpu->gpc_limit : 1u;
	bool taken = false;

	for (unsigned int tries = 0; tries < gpcs && !taken; tries++) {
		struct tpcset gpc = gpu->compute_major >= 9 ? topology_virtual_gpc(gpu, *virtual_gpc)
		                                            : topology_all(gpu);
		struct tpcset usable = tpcset_and(&gpc, left);

		*virtual_gpc = (*virtual_gpc + 1) % gpcs;
		if (tpcset_count(&usable) >= wanted) {
			struct tpcset chunk = first_tpcs(&usable, wanted);

			*left = tpcset_without(left, &chunk);
			*part = tpcset_or(part, &chunk);
			taken = true;
		}
	}
	return taken;
}

/* Fills one part, or leaves `left` unchanged if there is not enough. */
static bool take_part(const struct topology *gpu, struct tpcset *left, unsigned int *virtual_gpc,
                      unsigned int sms, struct tpcset *part)
{
	struct tpcset rest = *left;
	bool enough = true;

	*part = (struct tpcset){{0}};
	while (enough && tpcset_count(part) * gpu->sms_per_tpc < sms)
		enough = take_chunk(gpu, &rest, virtual_gpc, part);
	if (enough)
		*left = rest;
	return enough;
}

/* With groups == NULL it only returns their number. */
CUresult cuDevSmResourceSplitByCount(CUdevResource *groups, unsigned int *count, const CUdevResource *input,
                                     CUdevResource *remaining, unsigned int flags, unsigned int smallest)
{
	struct content content = content_of(input);
	const struct topology *gpu = device_topology(content.device);
	unsigned int wanted = groups ? *count : UINT32_MAX, made = 0, virtual_gpc = 0;
	struct tpcset part;

	if (!gpu || input->type != CU_DEV_RESOURCE_TYPE_SM || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (smallest < smallest_part(gpu))
		smallest = smallest_part(gpu);
	while (made < wanted && take_part(gpu, &content.tpcs, &virtual_gpc, smallest, &part)) {
		if (groups)
			groups[made] = make_resource(content.device, &part);
		made++;
	}
	*count = made;
	if (remaining)
		*remaining = make_resource(content.device, &content.tpcs);
	return CUDA_SUCCESS;
}

/* The driver has no function that frees a description. */
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources, unsigned int count)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static CUdevResourceDesc all;
	CUdevResourceDesc new = calloc(1, sizeof *new);

	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < count; i++) {
		struct content content = content_of(&resources[i]);

		new->tpcs = tpcset_or(&new->tpcs, &content.tpcs);
	}
	pthread_mutex_lock(&lock);
	new->next = all;
	all = new;
	pthread_mutex_unlock(&lock);
	*description = new;
	return CUDA_SUCCESS;
}

/* --- green contexts -------------------------------------------------------------------------------------- */

static CUresult make(CUgreenCtx *green, CUcontext primary, const struct tpcset *tpcs)
{
	if (primary->hides_green_contexts)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUgreenCtx new = malloc(sizeof *new);

	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context_prepare(&new->context, primary->device);
	new->context.family = primary;
	new->context.tpcs = *tpcs;
	new->context.is_green = true;
	hook_context(CONTEXT_CREATED, &new->context);
	*green = new;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc description, CUdevice device, unsigned int flags)
{
	CUcontext primary;

	if (flags != CU_GREEN_CTX_DEFAULT_STREAM || tpcset_is_empty(&description->tpcs))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = cuDevicePrimaryCtxRetain(&primary, device);

	if (result != CUDA_SUCCESS)
		return result;
	result = make(green, primary, &description->tpcs);
	if (result != CUDA_SUCCESS)
		cuDevicePrimaryCtxRelease_v2(device);
	return result;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	CUdevice device = green->context.device;
	CUresult result = cuCtxDestroy_v2(&green->context);

	if (result == CUDA_SUCCESS)
		result = cuDevicePrimaryCtxRelease_v2(device);
	return result;
}

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
	*context = &green->context;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags, int priority)
{
	if (flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_create(stream, &green->context);
}
