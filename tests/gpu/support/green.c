#include "green.h"

#include "../../cases.h"

struct green green;

CUresult green_make(CUgreenCtx *made)
{
	CUdevResource all, part, rest;
	CUdevResourceDesc description;
	unsigned int count = 1;
	CUdevice device;

	gpu_check(cuDeviceGet(&device, 0));
	gpu_check(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	gpu_check(cuDevSmResourceSplitByCount(&part, &count, &all, &rest, 0, GREEN_SMS));
	assert_int_equal(count, 1);
	assert_int_equal(part.sm.smCount, GREEN_SMS);
	gpu_check(cuDevResourceGenerateDesc(&description, &part, 1));
	return cuGreenCtxCreate(made, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
}

void green_enter(void)
{
	struct tpcset all = gpu_all(&gpu);
	CUcontext context;

	if (!cuGreenCtxCreate)
		gpu_skip("this driver has no green contexts");
	gpu_check(green_make(&green.context));
	gpu_check(cuCtxFromGreenCtx(&context, green.context));
	gpu_check(cuCtxPushCurrent_v2(context));
	gpu_open_current(&green.inside, 0);
	gpu_set_partition(&gpu, all);
	green.tpcs = gpu_where(&green.inside, NULL);
}

int green_leave(void **state)
{
	if (green.context) {
		gpu_close_current(&green.inside);
		gpu_check(cuCtxPopCurrent_v2(NULL));
		gpu_check(cuGreenCtxDestroy(green.context));
		green.context = NULL;
	}
	return 0;
}
