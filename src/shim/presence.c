#include "presence.h"

#include "driver/channels.h"
#include "memory_use.h"
#include "neighbours.h"
#include "obstacle.h"
#include "presence_thread.h"
#include "reaching.h"
#include "rules.h"
#include "stepping.h"
#include "turnstile.h"

#include <errno.h>

struct presence_news presence_news;

static struct segment segment;

/* --- what an edit gives ------------------------------------------------------------------------------------------------- */

void presence_look(void)
{
	struct segment_revision revision;
	uint64_t number;
	int saved = errno;

	if (segment_read(&segment, &revision, &number)) {
		atomic_store(&presence_news.seen, number);
		if (segment_time_limits(&revision) || presence_thread_exists())
			presence_thread_follow(&revision, number);
		else if (revision.quota.period_us > 0)
			segment_set_time_state(&segment, SEGMENT_TIME_UNLIMITED, number);
	}
	errno = saved;
}

/* --- what the program does ---------------------------------------------------------------------------------------------- */

/* The program is back when this returns. */
static void never_again(enum segment_time_state why)
{
	int saved = errno;

	obstacle_found(why);
	presence_thread_ring();
	obstacle_wait_until_back();
	errno = saved;
}

bool presence_wants_call(int id)
{
	return memory_use_wants_call(id) || reaching_wants_call(id);
}

void presence_call_begins(const struct call *call)
{
	presence_check();
	enum segment_time_state why = memory_use_of_call(call);

	if (why != SEGMENT_TIME_NONE)
		never_again(why);
	else if (reaching_call_begins())
		presence_thread_ring();
}

void presence_module_loaded(const void *cubin, size_t size)
{
	enum segment_time_state why = memory_use_of_module(cubin, size);

	if (why != SEGMENT_TIME_NONE)
		never_again(why);
}

void presence_context_created(void)
{
	channels_have_changed();
	presence_check();
	presence_thread_ring();
}

void presence_context_destroyed(void)
{
	channels_have_changed();
}

/* --- its life ------------------------------------------------------------------------------------------------------------ */

void presence_use(const struct segment *wanted)
{
	segment = *wanted;
	rules_forget();
	presence_thread_use(&segment);
	atomic_store(&presence_news.seen, 0);
	presence_news.segment = &segment;
}

/* The thread comes with the first context: many programs that load CUDA never make one. */
void presence_start(bool is_late)
{
	struct segment_revision revision;
	uint64_t number;

	if (is_late)
		obstacle_found(memory_use_of_past());
	if (segment_read(&segment, &revision, &number) && segment_time_limits(&revision))
		reaching_begin();
}

void presence_after_fork(void)
{
	presence_news.segment = NULL;
	reaching_after_fork();
	presence_thread_after_fork();
	obstacle_after_fork();
	neighbours_after_fork();
	stepping_after_fork();
	turnstile_after_fork();
}

/* Before the driver ends: what it waits for then must run. */
__attribute__((destructor)) static void end(void)
{
	presence_thread_end();
	obstacle_wait_until_back();
}
