#include "control.h"

#include "driver/channels/channels.h"
#include "driver/streams.h"
#include "gate/gate.h"
#include "gate/keeper.h"
#include "thread.h"
#include "time/demand/company.h"
#include "time/demand/given.h"
#include "time/demand/peers.h"
#include "turns/eligibility.h"
#include "turns/kernel_access.h"
#include "turns/memory_use.h"

#include <errno.h>

static struct segment segment;

/* --- edits ------------------------------------------------------------------------------------------------------- */

void control_look(void)
{
	struct segment_revision revision;
	uint64_t number;
	int saved = errno;

	if (company_read(&segment, &revision, &number)) {
		atomic_store(&time_news.seen, number);
		if (segment_time_limits(&revision) || time_thread_exists())
			time_thread_follow(&revision, number);
		else if (revision.quota.period_us > 0)
			segment_set_time_state(&segment, SEGMENT_TIME_UNLIMITED, number);
	}
	errno = saved;
}

/* --- calls of the program ---------------------------------------------------------------------------------------- */

static void never_again(enum segment_time_state why)
{
	int saved = errno;

	eligibility_lost(why);
	time_thread_ring();
	eligibility_wait_until_resumed();
	errno = saved;
}

/* A graph uploads nothing that asks for a look, and our thread may sleep. A call that waits for the GPU tells of a
 * fault. Under MPS, a fault ends the work of all clients: no client waits. */
bool control_wants_call(int id)
{
	bool has_thread = time_thread_exists(), may_wake = has_thread && calls_run_graph(id);
	bool may_tell_fault = has_thread && calls_synchronize(id) && !kernel_access_is_of_mps();

	return memory_use_wants_call(id) || kernel_access_wants_call(id) || may_wake || may_tell_fault;
}

void control_call_begins(const struct call *call)
{
	control_check(segment_revision_number(&segment));
	if (call->id == CALL_IPC_OPEN_EVENT)
		streams_note_foreign_event();
	enum segment_time_state why = memory_use_of_call(call);

	if (why != SEGMENT_TIME_NONE)
		never_again(why);
	else if (kernel_access_call_begins())
		time_thread_ring();
}

void control_module_loaded(const void *cubin, size_t size)
{
	enum segment_time_state why = memory_use_of_module(cubin, size);

	if (why != SEGMENT_TIME_NONE)
		never_again(why);
}

void control_context_created(void)
{
	channels_context_made();
	control_check(segment_revision_number(&segment));
	time_thread_ring();
}

/* --- its life ---------------------------------------------------------------------------------------------------- */

void control_use(const struct segment *wanted)
{
	segment = *wanted;
	given_forget();
	atomic_store(&time_news.seen, 0);
	time_news.segment = &segment;
}

/* The thread comes with the first context: many programs load CUDA and never make a context. */
void control_start(bool is_late)
{
	struct segment_revision revision;
	uint64_t number;

	if (is_late)
		eligibility_lost(memory_use_of_past());
	if (company_read(&segment, &revision, &number) && segment_time_limits(&revision))
		kernel_access_begin();
}

void control_after_fork(void)
{
	time_news.segment = NULL;
	kernel_access_after_fork();
	time_thread_after_fork();
	eligibility_after_fork();
	peers_after_fork();
	gate_after_fork();
	keeper_after_fork();
}

/* Before the driver ends: the driver waits for work, and the work must run. */
__attribute__((destructor)) static void end(void)
{
	time_thread_end();
	eligibility_wait_until_resumed();
}
