/*
 * Programs that share a simulated GPU and give way to each other by the rules of priorities and weights, on a clock of the
 * test's own. The GPU gives those that want to run their time slices in turn. Putting a program aside, and taking it back, takes its
 * time, and so do the looks of its thread. Programs see of each other what they said last. What they got is what the GPU did, not what
 * the rules think.
 */
#ifndef TESTS_SHARED_GPU_H
#define TESTS_SHARED_GPU_H

#include "shim/priority.h"
#include "shim/weight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#define US UINT64_C(1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)

/* As on an H100 with one context (docs/facts.md, "Time slices"). */
#define ASIDE_CALL (470 * US)
#define ASIDE_EFFECT (275 * US)
#define BACK_CALL (260 * US)
#define USUAL_SLICE_US 2048
#define SLICES_DIFFER_US 900 /* or programs that are put aside again and again would keep step with them */

#define STEP (10 * US)
#define LOOK (1 * MS)
#define LATE (150 * US) /* at most, our thread */
#define FRESH (10 * MS)
#define PROGRAMS 10

static uint64_t now;

static struct program {
	struct priority priority;
	struct weight weight;
	uint32_t rank; /* its priority */
	bool (*wants)(uint64_t time);
	uint64_t piece;    /* after so much of the GPU's time, */
	uint64_t pause;    /* its host needs so long until there is more for the GPU; 0: there is always more */
	uint64_t of_piece; /* so much has it had since, */
	uint64_t ready;    /* and until then, there is no more */
	bool is_gone;    /* it has ended, or is not there yet */
	bool is_frozen;  /* its thread does not run */
	bool is_held;    /* another rule wants it aside */
	bool is_aside;   /* its thread has put it aside, or is about to */
	bool is_stopped; /* by the GPU */
	uint64_t call;   /* that its thread is in began then; 0: it is in none */
	uint64_t wake;
	uint64_t slice_us; /* 0: the usual one */
	struct {
		bool wants, is_aside;
		uint64_t since, said, served_ns;
	} claim;
	uint64_t got_ns; /* of the GPU's time */
	unsigned int asides;
} programs[PROGRAMS];
static unsigned int running;
static uint64_t slice_end;
static unsigned int loss;     /* of a thousand steps in which several could run, so many are lost */
static unsigned int loss_due; /* in thousandths of a step */

/* By chance: so of what is late, some is later, and nothing keeps step with anything else. */
static uint64_t up_to(uint64_t most)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (state >> 33) % most;
}

/* --- the GPU ---------------------------------------------------------------------------------------------------------- */

static bool has_work(const struct program *program)
{
	return program->wants(now) && now >= program->ready;
}

static bool can_run(const struct program *program)
{
	return program->wants && !program->is_gone && !program->is_stopped && has_work(program);
}

static void choose(void)
{
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		running = (running + 1) % PROGRAMS;
		if (can_run(&programs[running]))
			break;
	}
	uint64_t slice_us = programs[running].slice_us;
	uint64_t usual_us = USUAL_SLICE_US - SLICES_DIFFER_US / 2 + up_to(SLICES_DIFFER_US);

	slice_end = now + (slice_us > 0 ? slice_us : usual_us) * US;
}

static void work(struct program *program)
{
	program->got_ns += STEP;
	program->of_piece += STEP;
	if (program->pause > 0 && program->of_piece >= program->piece) {
		program->of_piece = 0;
		program->ready = now + STEP + program->pause;
	}
}

/* As if the changes from one to another were spread evenly over the time. */
static bool is_lost(void)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < PROGRAMS && loss > 0; i++)
		count += can_run(&programs[i]);
	loss_due += count > 1 ? loss : 0;
	bool is_due = loss_due >= 1000;

	loss_due -= is_due ? 1000 : 0;
	return is_due;
}

static void run_gpu(void)
{
	if (!can_run(&programs[running]) || now >= slice_end)
		choose();
	if (can_run(&programs[running]) && !is_lost())
		work(&programs[running]);
}

/* --- its programs' threads ---------------------------------------------------------------------------------------------- */

static struct neighbours see(const struct program *self)
{
	struct neighbours seen = {.least_served_ns = UINT64_MAX, .higher_since = UINT64_MAX};

	for (const struct program *other = programs; other < programs + PROGRAMS; other++) {
		bool is_there = other != self && other->wants && !other->is_gone && other->claim.said > 0;
		bool wants = is_there && other->claim.wants && now - other->claim.said < FRESH;
		bool is_present = wants && !other->claim.is_aside;

		seen.any = seen.any || is_there;
		seen.has_higher = seen.has_higher || (is_there && other->rank > self->rank);
		seen.higher_speaks = seen.higher_speaks || (is_there && other->rank > self->rank && now - other->claim.said < FRESH);
		seen.has_rivals = seen.has_rivals || (is_present && other->rank <= self->rank);
		if (is_present && other->rank > self->rank) {
			seen.higher_wants = true;
			seen.higher_wanting++;
			seen.higher_since = other->claim.since < seen.higher_since ? other->claim.since : seen.higher_since;
		}
		seen.equals_speaking += is_there && other->rank == self->rank && now - other->claim.said < FRESH;
		if (wants && other->rank == self->rank)
			seen.equals_wanting++;
		if (is_present && other->rank == self->rank) {
			seen.equals_present++;
			if (other->claim.served_ns < seen.least_served_ns)
				seen.least_served_ns = other->claim.served_ns;
		}
	}
	return seen;
}

static void say(struct program *program, bool wants)
{
	if (wants && !program->claim.wants)
		program->claim.since = now;
	program->claim.wants = wants;
	program->claim.is_aside = program->is_aside;
	program->claim.served_ns = program->weight.served_ns;
	program->claim.said = now;
}

static void look(struct program *program)
{
	bool wants = has_work(program);

	say(program, wants);
	struct neighbours seen = see(program);
	struct priority_wish wish = priority_step(&program->priority, now, wants, &seen);
	bool is_held = program->is_held || wish.is_aside;
	bool is_ahead = weight_step(&program->weight, now, wants, is_held, &seen);
	bool is_aside = is_held || is_ahead;

	program->slice_us = wish.slice_us;
	program->wake = (wish.until < now + LOOK ? wish.until : now + LOOK) + up_to(LATE);
	if (is_aside != program->is_aside) {
		program->is_aside = is_aside;
		program->asides += is_aside;
		program->call = now;
	}
}

static void go_on_with_call(struct program *program)
{
	uint64_t passed = now - program->call, length = program->is_aside ? ASIDE_CALL : BACK_CALL;

	if (program->is_aside && passed >= ASIDE_EFFECT)
		program->is_stopped = true;
	if (passed < length)
		return;
	if (program->is_aside) {
		priority_was_put_aside(&program->priority, program->call, now);
		weight_was_put_aside(&program->weight, program->call, now);
	} else {
		program->is_stopped = false;
		priority_was_taken_back(&program->priority, now);
		weight_was_taken_back(&program->weight, now);
	}
	program->call = 0;
	program->wake = now;
}

static void run_thread(struct program *program)
{
	if (program->call > 0)
		go_on_with_call(program);
	if (program->call == 0 && now >= program->wake)
		look(program);
}

static void go_on(uint64_t ns)
{
	for (uint64_t end = now + ns; now < end; now += STEP) {
		for (unsigned int i = 0; i < PROGRAMS; i++) {
			if (programs[i].wants && !programs[i].is_gone && !programs[i].is_frozen)
				run_thread(&programs[i]);
		}
		run_gpu();
	}
}

/* --- its programs --------------------------------------------------------------------------------------------------------- */

static bool always(uint64_t time)
{
	(void)time;
	return true;
}

static void begin(void)
{
	now = 5 * SECOND;
	slice_end = loss = loss_due = 0;
	memset(programs, 0, sizeof programs);
}

static struct program *start(unsigned int number, uint32_t priority, uint32_t weight, bool (*wants)(uint64_t))
{
	struct program *program = &programs[number];

	*program = (struct program){.rank = priority, .wants = wants, .wake = now + number * 370 * US};
	priority_begin(&program->priority);
	weight_begin(&program->weight, weight, now);
	return program;
}

static void forget_what_they_got(void)
{
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		programs[i].got_ns = 0;
		programs[i].asides = 0;
	}
}

/* In thousandths of `of`. */
static void assert_got(const struct program *program, uint64_t of, uint64_t least, uint64_t most)
{
	uint64_t share = program->got_ns * 1000 / of;

	if (share < least || share > most)
		fail_msg("program %d got %llu of 1000, not %llu to %llu", (int)(program - programs), (unsigned long long)share,
		         (unsigned long long)least, (unsigned long long)most);
}

#endif
