#include "kernel_access.h"

#include "base/error.h"
#include "driver/channels/channels.h"
#include "driver/channels/kernel_client.h"
#include "driver/hook.h"
#include "eligibility.h"
#include "mps/reach.h"

#include <stdatomic.h>

static atomic_bool listens;
static atomic_bool is_of_mps;

/* The most provoked requests: after a hundred in vain, more do not help. */
#define ASKED_MAX 100
static atomic_uint asked;

static void listen(bool wanted)
{
	if (atomic_exchange(&listens, wanted) == wanted)
		return;
	if (wanted)
		hook_want_more();
	else
		hook_want_less();
}

bool kernel_access_is_of_mps(void)
{
	if (!atomic_load(&is_of_mps) && mps_is_in_reach())
		atomic_store(&is_of_mps, true);
	return atomic_load(&is_of_mps);
}

void kernel_access_begin(void)
{
	struct error error;

	atomic_store(&asked, 0);
	if (kernel_access_is_of_mps())
		eligibility_lost(SEGMENT_TIME_MPS_CLIENT);
	else if (channels_watch(&error) < 0)
		eligibility_lost(SEGMENT_TIME_UNREACHABLE);
}

void kernel_access_end(void)
{
	listen(false);
	channels_unwatch();
}

bool kernel_access_find(void)
{
	if (!kernel_client_is_known())
		kernel_client_provoke_in_primary();
	listen(!kernel_client_is_known());
	return kernel_client_is_known();
}

bool kernel_access_wants_call(int id)
{
	return atomic_load_explicit(&listens, memory_order_relaxed) && (calls_launch(id) || calls_synchronize(id));
}

bool kernel_access_call_begins(void)
{
	bool asks = atomic_load_explicit(&listens, memory_order_relaxed) && !kernel_client_is_known() &&
	            atomic_fetch_add(&asked, 1) < ASKED_MAX;

	if (asks)
		kernel_client_provoke();
	return asks;
}

void kernel_access_after_fork(void)
{
	channels_after_fork();
	atomic_store(&listens, false);
	atomic_store(&is_of_mps, false);
}
