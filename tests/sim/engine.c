#include "engine.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "context.h"
#include "costs.h"
#include "faults.h"
#include "gpu_time.h"
#include "module.h"
#include "turns.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct work {
	struct work *next;
	struct launch launch;
	struct descriptor descriptor;
	uint64_t left_ns;
};

struct engine {
	struct work *first, *last;
	uint64_t taken, ended; /* kernels */
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

/* --- running ---------------------------------------------------------------------------------------------- */

static uint64_t duration_of(const struct launch *launch)
{
	uint64_t cycles = 0;

	if (strcmp(launch->function->name, "where") == 0)
		memcpy(&cycles, launch->arguments + 8, sizeof cycles);
	return cycles >= ENGINE_CYCLES ? cycles / 2 : 0;
}

/* With the lock. Until the kernel has had its time, beside other programs, or the context is suspended. */
static void run_for_a_while(const struct engine *engine, struct work *work)
{
	struct tpcset tpcs = descriptor_enabled(&work->descriptor, work->launch.context->gpu);

	turns_begin(engine->slice_us, &tpcs);
	while (!engine->is_aside && work->left_ns > 0) {
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
	free(work);
	pthread_cond_broadcast(&changed);
}

static void *run(void *data)
{
	struct engine *engine = data;

	take_lock();
	while (engine->first) {
		if (engine->is_aside)
			pthread_cond_wait(&changed, &lock);
		else if (engine->first->left_ns > 0)
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

static void add(struct engine *engine, const struct launch *launch, const struct descriptor *descriptor)
{
	struct work *work = malloc(sizeof *work);

	if (!work)
		fatal("no memory");
	*work = (struct work){.launch = *launch, .descriptor = *descriptor, .left_ns = duration_of(launch)};
	if (work->left_ns > 0)
		work->left_ns += engine->first ? cost_ns(COST_STAMP) + cost_ns(COST_NEXT) : cost_ns(COST_LAUNCH);
	if (engine->first)
		engine->last->next = work;
	else
		engine->first = work;
	engine->last = work;
	engine->taken++;
	have_thread(engine);
}

bool engine_takes(const struct launch *launch, const struct descriptor *descriptor)
{
	take_lock();
	struct engine *engine = engine_of(launch->context);
	bool takes = engine->is_aside || engine->first || duration_of(launch) > 0;

	while (takes && engine->taken - engine->ended >= ENGINE_ROOM)
		pthread_cond_wait(&changed, &lock);
	if (takes)
		add(engine, launch, descriptor);
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
