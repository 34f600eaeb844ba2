/* What happens when, once we are in a process. Whatever goes wrong here, the program runs on without us. */
#include "shim.h"

#include "account.h"
#include "allowed.h"
#include "app_masks.h"
#include "base/log.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/graph_instances.h"
#include "driver/hook.h"
#include "driver/modules.h"
#include "driver/slot.h"
#include "epoch.h"
#include "escape.h"
#include "graphs.h"
#include "inherit.h"
#include "launch.h"
#include "partition.h"
#include "state/segment.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

static struct segment segment = {.memory = NULL, .file = -1};

/* There may be contexts and graphs that nobody announced to us. */
static atomic_bool some_are_older;

/* Some thread sees to it that the segment can be found. */
static atomic_flag looking = ATOMIC_FLAG_INIT;

/* Another tool has the driver's callbacks. */
static atomic_bool waiting;

/* A child of fork has its parent's memory, but a partition of its own, which starts as the parent's was at the
 * fork: read before it, since the parent's can change as soon as there are two. Nothing else forks meanwhile: fork
 * serialises its handlers. */
static struct segment_revision forked;

static void before_fork(void)
{
	uint64_t number;

	if (!segment_read(&segment, &forked, &number))
		forked.count = 0;
}

static void use_segment(void)
{
	epoch_use(&segment);
	partition_use(&segment);
	account_use(&segment);
	allowed_use(&segment);
	graphs_use(&segment);
}

static void in_child(void)
{
	struct segment parents = segment;
	int saved = errno;

	/* The thread that was looking is the parent's. */
	atomic_flag_clear(&looking);
	app_masks_after_fork();
	slot_after_fork();
	graph_instances_after_fork();
	if (segment_create(&segment, &forked, segment_is_findable(&parents) ? parents.file : -1, NULL) == 0) {
		segment_set_at_work(&segment);
		segment_set_in_force(&segment, !atomic_load(&waiting));
		segment_free_places();
		use_segment();
		parents.file = -1; /* which is the child's now */
		segment_close(&parents);
	} else {
		/* Sharing the parent's partition is better than having none. */
		segment = parents;
	}
	errno = saved;
}

/* Said once, whenever it was. */
static void tell_out_of_reach(const char *reason)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&told))
		log_warning("%s; the partition of this program is in force, and cannot be changed", reason);
}

/* A context is the last good moment to see to it that editors find us: a program that closes descriptors later closes the
 * driver's too, and has no use for either. */
static void on_context_created(CUcontext context)
{
	struct error error;
	int saved = errno;

	if (!atomic_flag_test_and_set(&looking)) {
		if (segment_keep_findable(&segment, &error) < 0)
			tell_out_of_reach(error.reason);
		atomic_flag_clear(&looking);
	}
	errno = saved;
	launch_context_created(context);
}

static void expect_older(void)
{
	atomic_store(&some_are_older, true);
	graphs_expect_older();
}

/* What else is found out when a context is made. */
static void on_subscribed(void)
{
	launch_subscribed(atomic_load(&some_are_older));
}

static void on_module_loaded(const void *cubin, size_t size)
{
	if (modules_launch_kernels(cubin, size))
		escape_note(SEGMENT_LAUNCHED_BY_KERNELS);
}

static void on_unknown_gpus(const char *reason)
{
	escape_note_all(reason, "");
}

/* Contexts and graphs that are made meanwhile are made without us. */
static void on_waiting(void)
{
	atomic_store(&waiting, true);
	segment_set_in_force(&segment, false);
	expect_older();
	graphs_use(&segment);
}

static void on_late_coming(void)
{
	atomic_store(&waiting, false);
	segment_set_in_force(&segment, true);
	app_masks_open(true);
}

/* Where limits leave no room for one that others can find, the partition holds all the same. */
static int make_private_segment(const struct segment_revision *revision, const char *reason, struct error *error)
{
	int result = segment_create_private(&segment, revision, error);

	if (result == 0)
		tell_out_of_reach(reason);
	return result;
}

/* The one that the process has from before; else one that starts with what its ancestors have, or with nothing: `is_new`, nobody
 * but us has made it. What a program with more privileges has inherited is left for those whom it executes. */
static int have_segment(bool *is_new, struct error *error)
{
	struct segment_revision revision = {.count = 0};
	struct error why;
	int result;

	*is_new = false;
	/* Who has more privileges than its user obeys nobody with less. */
	if (!identity_is_privileged() && segment_find_own(&segment))
		return 0;
	if (!identity_is_privileged() && inherit_partition(&revision, error) < 0)
		return -1;
	*is_new = revision.count == 0;
	/* What is inherited is meant, also by one whose environment was cleared. */
	if (!*is_new)
		log_wake();
	result = identity_is_privileged() ? segment_create(&segment, &revision, -1, &why)
	                                  : segment_replace(&segment, &revision, &why);
	return result == 0 ? 0 : make_private_segment(&revision, why.reason, error);
}

enum hook_state shim_set_up(const char *driver_name, bool is_late, struct error *error)
{
	static const struct hook_events events = {
		.launch = launch_upload,
		.subscribed = on_subscribed,
		.context_created = on_context_created,
		.context_destroyed = launch_context_destroyed,
		.module_loaded = on_module_loaded,
		.wants_call = launch_wants_call,
		.call_begins = launch_call_begins,
		.call_ended = launch_call_ended,
		.waits = on_waiting,
		.comes_late = on_late_coming,
	};

	bool is_new;

	if (driver_resolve(driver_name, error) < 0 || have_segment(&is_new, error) < 0)
		return HOOK_FAILED;
	if (is_late)
		expect_older();
	gpus_open(on_unknown_gpus);
	use_segment();
	enum hook_state state = hook_subscribe(&events, error);

	/* Where nobody will ever obey, the segment says that the library is not at work; there is none where there was none. */
	if (state == HOOK_FAILED && is_new) {
		segment_close(&segment);
	} else if (state != HOOK_FAILED) {
		segment_set_at_work(&segment);
		account_follow_threads();
		pthread_atfork(before_fork, NULL, in_child);
		app_masks_open(state == HOOK_SUBSCRIBED);
	}
	return state;
}
