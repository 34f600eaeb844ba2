/* Sets up the library, and connects the driver's events to the modules. On failure the program runs on without us. */
#include "shim.h"

#include "base/clock.h"
#include "base/log.h"
#include "driver/channels/channels.h"
#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/graph_instances.h"
#include "driver/hook.h"
#include "driver/pushbuffer/queue.h"
#include "driver/releases.h"
#include "driver/slot.h"
#include "gpu/cubin.h"
#include "launch/account/account.h"
#include "launch/account/streams_made.h"
#include "launch/account/violation.h"
#include "launch/graphs/counts.h"
#include "launch/graphs/graphs.h"
#include "launch/launch.h"
#include "launch/queued.h"
#include "launch/space/app_masks.h"
#include "launch/space/epoch.h"
#include "launch/space/partition.h"
#include "launch/timestamps/timestamps.h"
#include "memory/memory.h"
#include "state/kernels/timestamps.h"
#include "state/segment/owner.h"
#include "time/control.h"
#include "time/gate/gates.h"
#include "time/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

static struct segment segment = {.memory = NULL, .file = -1};

/* There may be unannounced contexts and graphs. */
static atomic_bool some_are_older;

/* A thread is in segment_keep_findable. */
static atomic_flag looking = ATOMIC_FLAG_INIT;

/* Another tool holds the driver's callback slot. */
static atomic_bool waiting;

/* The child of a fork gets a partition of its own, equal to the parent's at the fork. The partition is read before the
 * fork, since the parent's may change right afterwards. The child of a parent with an unreadable revision gets an
 * unreadable revision, too: with a revision of no GPU, kernels would have the whole GPU without being counted as
 * outside. Threads can fork at the same time: from glibc 2.36 on, fork holds no lock while running handlers. */
#define FORKS_AT_ONCE 16
#define UNREADABLE (SEGMENT_GPUS + 1)
static struct segment_revision forked[FORKS_AT_ONCE];
static atomic_uint forks;
static __thread unsigned int own_fork __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
	uint64_t number;

	own_fork = atomic_fetch_add(&forks, 1) % FORKS_AT_ONCE;
	if (!segment_read(&segment, &forked[own_fork], &number))
		forked[own_fork].count = UNREADABLE;
}

static void use_segment(void)
{
	epoch_use(&segment);
	partition_use(&segment);
	account_use(&segment);
	streams_made_use(&segment);
	control_use(&segment);
	memory_use(&segment);
	graphs_use(&segment);
	timestamps_use(&segment);
}

static void in_child(void)
{
	struct segment parents = segment;
	int saved = errno;

	/* A thread that was looking does not exist in the child. */
	atomic_flag_clear(&looking);
	clock_begin();
	app_masks_after_fork();
	slot_after_fork();
	queue_after_fork();
	graph_instances_after_fork();
	graph_counts_after_fork();
	timestamps_graphs_after_fork();
	releases_after_fork();
	control_after_fork();
	memory_after_fork();
	if (segment_create(&segment, &forked[own_fork], &parents.group, segment_group_descriptor(&parents),
	                   segment_is_findable(&parents) ? parents.file : -1, NULL) == 0) {
		segment_set_at_work(&segment);
		segment_set_in_force(&segment, !atomic_load(&waiting));
		segment_slots_forget();
		use_segment();
		parents.file = -1; /* the new segment's handle has the number now */
		segment_close(&parents);
	} else {
		/* Sharing the parent's partition is better than no partition. */
		segment = parents;
		account_stop();
		epoch_raise();
	}
	errno = saved;
}

/* Warns once in a process. */
static void warn_out_of_reach(const char *reason)
{
	static atomic_flag has_warned = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&has_warned))
		log_warning("%s; the partition of this program is in force, and cannot be changed", reason);
}

/* Checks that editors find the segment: a program may have closed our descriptor before. Later the program will hardly
 * close descriptors, since the driver's would close too. */
static void on_context_created(CUcontext context)
{
	struct error error;
	int saved = errno;

	if (!atomic_flag_test_and_set(&looking)) {
		if (segment_keep_findable(&segment, &error) < 0)
			warn_out_of_reach(error.reason);
		atomic_flag_clear(&looking);
	}
	events_context_created(context);
	control_context_created();
	if (time_thread_exists())
		gates_open(contexts_gpu(context));
	errno = saved;
}

static void on_context_destroyed(CUcontext context)
{
	events_context_destroyed(context);
	channels_context_going();
}

static void expect_older(void)
{
	atomic_store(&some_are_older, true);
	graphs_expect_older();
}

/* Existing contexts are not announced. */
static void on_subscribed(void)
{
	events_subscribed(atomic_load(&some_are_older));
}

static void on_module_loaded(const void *cubin, size_t size)
{
	timestamps_forget_names();
	if (cubin_launches_kernels(cubin, size))
		violation_note(SEGMENT_LAUNCHED_BY_KERNELS);
	control_module_loaded(cubin, size);
}

static void on_unknown_gpus(const char *reason)
{
	violation_note_all(reason, "");
}

/* Contexts and graphs made while we wait are not announced. */
static void on_waiting(void)
{
	atomic_store(&waiting, true);
	segment_set_in_force(&segment, false);
	expect_older();
	graphs_use(&segment);
}

static void on_subscribed_late(void)
{
	atomic_store(&waiting, false);
	segment_set_in_force(&segment, true);
	app_masks_open(true);
}

/* For limits of the process that allow no segment for others to find: the partition is in force nevertheless. */
static int make_private_segment(const struct inheritance *inheritance, const char *reason, struct error *error)
{
	int result = segment_create_private(&segment, &inheritance->revision, error);

	if (result == 0)
		warn_out_of_reach(reason);
	return result;
}

/* Uses the segment of the process, or makes a segment, with the inherited partition or without (`is_new`). A program
 * with more privileges than the user does not obey an inherited partition, but keeps it for programs executed later. */
static int have_segment(bool *is_new, struct error *error)
{
	struct inheritance inheritance = {.group = group_closed, .descriptor = -1};
	struct error why;
	int result;

	*is_new = false;
	if (!identity_is_privileged() && segment_find_own(&segment))
		return 0;
	if (!identity_is_privileged() && inherit_partition(&inheritance, error) < 0)
		return -1;
	*is_new = inheritance.revision.count == 0 && !inheritance.group.memory;
	/* There is a partition, although the environment may not name it: warnings are printed from now on. */
	if (!*is_new)
		log_wake();
	result = segment_create(&segment, &inheritance.revision, &inheritance.group, inheritance.descriptor,
	                        identity_is_privileged() ? -1 : SEGMENT_OF_BEFORE, &why);
	if (result < 0)
		result = make_private_segment(&inheritance, why.reason, error);
	group_close(&inheritance.group);
	return result;
}

enum hook_state shim_set_up(const char *driver_name, bool is_late, const char *gpus, struct error *error)
{
	static const struct hook_events events = {
		.launch = launch_upload,
		.mask = launch_mask,
		.keep_mask = launch_keep_mask,
		.subscribed = on_subscribed,
		.context_created = on_context_created,
		.context_destroyed = on_context_destroyed,
		.submits = events_submits,
		.module_loaded = on_module_loaded,
		.wants_call = events_want_call,
		.call_begins = events_call_begins,
		.call_ended = events_call_ended,
		.waits = on_waiting,
		.subscribed_late = on_subscribed_late,
	};

	bool is_new;

	if (driver_resolve(driver_name, error) < 0 || have_segment(&is_new, error) < 0)
		return HOOK_FAILED;
	if (is_late)
		expect_older();
	gpus_open(gpus, on_unknown_gpus);
	account_open();
	use_segment();
	enum hook_state state = hook_subscribe(&events, error);

	/* After a failure, an older segment says that the library is not at work; a new segment is closed. */
	if (state == HOOK_FAILED && is_new) {
		segment_close(&segment);
	} else if (state != HOOK_FAILED) {
		segment_set_at_work(&segment);
		account_follow_threads();
		control_start(is_late);
		pthread_atfork(before_fork, NULL, in_child);
		app_masks_open(state == HOOK_SUBSCRIBED);
	}
	return state;
}
