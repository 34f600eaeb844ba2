#include "tool.h"

#include <cupti.h>

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

static CUpti_SubscriberHandle subscriber;
static atomic_uint announced;

static void on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const CUpti_CallbackData *data)
{
	(void)user;
	if (domain == CUPTI_CB_DOMAIN_DRIVER_API && data->callbackSite == CUPTI_API_ENTER &&
	    (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx || id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel))
		announced++;
}

int tool_subscribe(void)
{
	return cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)on_callback, NULL);
}

int tool_unsubscribe(void)
{
	return cuptiUnsubscribe(subscriber);
}

int tool_enable_launches(bool on)
{
	return cuptiEnableCallback(on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx);
}

int tool_enable_domain(bool on)
{
	return cuptiEnableDomain(on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
}

int tool_enable_all(bool on)
{
	return cuptiEnableAllDomains(on, subscriber);
}

unsigned int tool_announced(void)
{
	return atomic_exchange(&announced, 0);
}

#define BUFFER_SIZE (1 << 20)

static atomic_uint recorded;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*buffer = aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, BUFFER_SIZE);
	*size = *buffer ? BUFFER_SIZE : 0;
	*records_max = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context, (void)stream, (void)size;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
		recorded += record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	free(buffer);
}

int tool_trace(bool on)
{
	int result = on ? cuptiActivityRegisterCallbacks(give_buffer, take_buffer) : CUPTI_SUCCESS;

	if (result == CUPTI_SUCCESS)
		result = on ? cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
		            : cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	return result;
}

unsigned int tool_recorded(void)
{
	cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	return atomic_exchange(&recorded, 0);
}

int tool_finalize(void)
{
	return cuptiFinalize();
}
