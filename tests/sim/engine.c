#include "engine.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "context.h"
#include "costs.h"
#include "faults.h"
#include "gpu_time.h"
#include "module.h"
#include "pushbuffer.h"
#include "scheduler.h"
#include "turns.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_AT_WORD_NS 50000

struct work {
	struct work *next;
	struct launch launch;
	struct descriptor descriptor;
	uint64_t left_ns; /* until the kernel begins: for blocks that all run at once */
	bool has_begun;
	struct segment_place place;
	bool has_place; /* not of a graph's node */
	bool is_read;   /* the entry */
	bool syncs;     /* as the entry was read */
	bool is_fetched;
	const _Atomic uint32_t *word; /* no kernel: waits until the word has the value */
	uint32_t value;
};

struct engine {
	struct work *first, *last;
	uint64_t taken, ended; /* kernels */
	unsigned int entering; /* launches for which there is room */
	uint64_t slice_us;
	unsigned int ending; /* kernels: they have had their time, and will be counted */
	bool is_aside;
	bool has_thread;
};

/* Guards all engines, and everybody waits for the same: something has changed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static unsigned int aside;

static void prepare(void)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void take_lock(void)
{
	pthread_once(&prepared, prepare);
	pthread_mutex_lock(&lock);
}

/* With the lock. */
static struct engine *engine_of(CUcontext context)
{
	CUcontext family = context->family;

	if (!family->engine)
		family->engine = calloc(1, sizeof *family->engine);
	if (!family->engine)
		fatal("no memory");
	if (family->engine->slice_us == 0)
		family->engine->slice_us = ENGINE_SLICE_US;
	return family->engine;
}

/* --- fetching --------------------------------------------------------------------------------------------- */

/* What the GPU has fetched of a channel. */
struct ahead {
	unsigned int segments, bytes; /* behind the first, which the GPU processes */
	unsigned int entries;         /* all */
	bool is_full;
};

static void fetch(struct work *work)
{
	struct descriptor fetched = work->descriptor;

	pushbuffer_fetch(&work->place, &fetched);
	descriptor_check_change(&work->descriptor, &fetched, work->launch.context->gpu);
	work->descriptor = fetched;
	work->is_fetched = true;
}

/* An entry is read once, so that a SYNC which comes later has no effect. */
static void read_entry(struct work *work, const struct ahead *ahead)
{
	if (!work->is_read && ahead->entries < READ_ENTRIES) {
		work->syncs = pushbuffer_syncs(work->launch.context, &work->place);
		work->is_read = true;
	}
}

static void look_at(struct work *work, struct ahead *ahead)
{
	read_entry(work, ahead);
	if (ahead->entries++ > 0) {
		ahead->segments++;
		ahead->bytes += work->place.bytes;
	}
	ahead->is_full |= !work->is_read || ahead->segments > FETCHED_SEGMENTS || ahead->bytes > FETCHED_BYTES ||
	                  (work->syncs && ahead->segments > 1);
	if (!ahead->is_full && !work->is_fetched)
		fetch(work);
	if (ahead->entries <= 2)
		pushbuffer_process(work->launch.context, &work->place);
}

/* With the lock. A channel that leaves the GPU gives back what was fetched behind its kernel, and has it fetched
 * again. */
static void discard(struct engine *engine)
{
	for (struct work *work = engine->first ? engine->first->next : NULL; work; work = work->next)
		work->is_read = work->is_fetched = false;
}

/* With the lock, after each change of the queue. */
static void fetch_ahead(struct engine *engine)
{
	struct ahead ahead[CHANNELS] = {0};

	for (struct work *work = engine->first; work; work = work->next) {
		if (work->has_place)
			look_at(work, &ahead[work->place.channel]);
	}
}

/* --- running ---------------------------------------------------------------------------------------------- */

static uint64_t duration_of(const struct launch *launch)
{
	uint64_t cycles = 0;

	if (strcmp(launch->function->name, "where") == 0)
		memcpy(&cycles, launch->arguments + 8, sizeof cycles);
	return cycles >= ENGINE_CYCLES ? cycles / 2 : 0;
}

/* How many times more blocks the kernel has than its TPCs hold at once; at least 1. */
static double waves(const struct launch *launch, const struct tpcset *tpcs)
{
	const struct topology *gpu = launch->context->gpu;
	unsigned int room = tpcset_count(tpcs) * gpu->sms_per_tpc *
	                    occupancy_blocks(gpu, launch_threads(launch), launch->shared_bytes);
	double blocks = (double)launch_blocks(launch);

	return room > 0 && blocks > room ? blocks / room : 1;
}

/* With the lock. Until the kernel has had its time, beside other programs, or the context is suspended. */
static void run_for_a_while(const struct engine *engine, struct work *work)
{
	struct tpcset tpcs = descriptor_enabled(&work->descriptor, work->launch.context->gpu);

	if (!work->has_begun)
		work->left_ns = (uint64_t)((double)work->left_ns * waves(&work->launch, &tpcs));
	work->has_begun = true;
	turns_begin(engine->slice_us, &tpcs);
	while (!engine->is_aside && work->left_ns > 0 && context_failure() == CUDA_SUCCESS) {
		uint64_t begin = gpu_time_of_cpu(), end;
		double share = turns_share(begin, &end);

		end = share > 0 ? min_u64(end, begin + (uint64_t)((double)work->left_ns / share)) : end;
		struct timespec until = clock_for_kernel(end);

		pthread_cond_timedwait(&changed, &lock, &until);
		work->left_ns -= min_u64((uint64_t)((double)(min_u64(gpu_time_of_cpu(), end) - begin) * share + 0.5), work->left_ns);
	}
	turns_end();
}

static void finish(struct engine *engine)
{
	struct work *work = engine->first;

	engine->ending++;
	pthread_mutex_unlock(&lock);
	gpu_time_launch();
	launch_run(&work->launch, &work->descriptor);
	take_lock();
	engine->ending--;
	engine->first = work->next;
	engine->ended++;
	fetch_ahead(engine);
	free(work);
	pthread_cond_broadcast(&changed);
}

/* With the lock. */
static void wait_for_word(struct engine *engine)
{
	const struct timespec until = clock_for_kernel(gpu_time_of_cpu() + LOOK_AT_WORD_NS);
	struct work *work = engine->first;

	if (atomic_load(work->word) == work->value || context_failure() != CUDA_SUCCESS) {
		engine->first = work->next;
		engine->ended++;
		free(work);
		fetch_ahead(engine);
		pthread_cond_broadcast(&changed);
	} else {
		pthread_cond_timedwait(&changed, &lock, &until);
	}
}

static void *run(void *data)
{
	struct engine *engine = data;

	take_lock();
	while (engine->first) {
		if (engine->is_aside)
			pthread_cond_wait(&changed, &lock);
		else if (engine->first->word)
			wait_for_word(engine);
		else if (engine->first->left_ns > 0 && context_failure() == CUDA_SUCCESS)
			run_for_a_while(engine, engine->first);
		else
			finish(engine);
	}
	engine->has_thread = false;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* A thread for as long as there is work. */
static void have_thread(struct engine *engine)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;

	if (engine->has_thread)
		return;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, &attributes, run, engine) != 0)
		fatal("no thread");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	engine->has_thread = true;
}

/* --- being given work --------------------------------------------------------------------------------------- */

static void add(struct engine *engine, const struct work *given)
{
	struct work *work = malloc(sizeof *work);

	if (!work)
		fatal("no memory");
	*work = *given;
	if (engine->first)
		engine->last->next = work;
	else
		engine->first = work;
	engine->last = work;
	engine->taken++;
	fetch_ahead(engine);
	have_thread(engine);
}

static void add_launch(struct engine *engine, const struct launch *launch, const struct descriptor *descriptor,
                       const struct segment_place *place)
{
	struct work work = {
		.launch = *launch, .descriptor = *descriptor, .left_ns = duration_of(launch), .has_place = place,
	};

	if (work.left_ns > 0)
		work.left_ns += engine->first ? cost_ns(COST_STAMP) + cost_ns(COST_NEXT) : cost_ns(COST_LAUNCH);
	if (place)
		work.place = *place;
	add(engine, &work);
}

void engine_wait_for_word(CUcontext context, const _Atomic uint32_t *word, uint32_t value)
{
	take_lock();
	add(engine_of(context), &(const struct work){.word = word, .value = value});
	pthread_mutex_unlock(&lock);
}

void engine_wait_for_room(CUcontext context)
{
	take_lock();
	struct engine *engine = engine_of(context);

	while (engine->taken - engine->ended + engine->entering >= ENGINE_ROOM)
		pthread_cond_wait(&changed, &lock);
	engine->entering++;
	pthread_mutex_unlock(&lock);
}

bool engine_takes(const struct launch *launch, const struct descriptor *descriptor, const struct segment_place *place)
{
	take_lock();
	struct engine *engine = engine_of(launch->context);
	bool takes = engine->is_aside || engine->first || duration_of(launch) > 0;

	engine->entering--;
	if (takes)
		add_launch(engine, launch, descriptor, place);
	else
		engine->ending++;
	pthread_mutex_unlock(&lock);
	return takes;
}

void engine_has_run(CUcontext context)
{
	take_lock();
	engine_of(context)->ending--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

void engine_put_aside(CUcontext context, bool is_aside)
{
	take_lock();
	struct engine *engine = engine_of(context);

	if (engine->is_aside != is_aside)
		aside += is_aside ? 1 : -1U;
	engine->is_aside = is_aside;
	discard(engine);
	if (!is_aside)
		fetch_ahead(engine);
	pthread_cond_broadcast(&changed);
	while (engine->is_aside && engine->ending > 0)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

bool engine_some_are_aside(void)
{
	take_lock();
	bool some = aside > 0;

	pthread_mutex_unlock(&lock);
	return some;
}

void engine_set_slice(CUcontext context, uint64_t slice_us)
{
	take_lock();
	engine_of(context)->slice_us = slice_us;
	pthread_mutex_unlock(&lock);
}

/* --- waiting ------------------------------------------------------------------------------------------------ */

void engine_wait(CUcontext context)
{
	engine_wait_for(context, engine_last(context));
}

uint64_t engine_last(CUcontext context)
{
	take_lock();
	uint64_t last = engine_of(context)->taken;

	pthread_mutex_unlock(&lock);
	return last;
}

void engine_wait_for(CUcontext context, uint64_t kernel)
{
	take_lock();
	const struct engine *engine = engine_of(context);

	while (engine->ended < kernel)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

bool engine_has_ended(CUcontext context, uint64_t kernel)
{
	take_lock();
	bool has_ended = engine_of(context)->ended >= kernel;

	pthread_mutex_unlock(&lock);
	return has_ended;
}

void engine_wait_for_all(void)
{
	take_lock();
	while (aside > 0)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

void engine_forget(CUcontext context)
{
	if (context->family != context)
		return;
	take_lock();
	struct engine *engine = engine_of(context);

	while (engine->first || engine->has_thread)
		pthread_cond_wait(&changed, &lock);
	if (engine->is_aside)
		aside--;
	context->engine = NULL;
	pthread_mutex_unlock(&lock);
	free(engine);
}
