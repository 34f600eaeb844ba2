#include "sampler.h"

#include "base/clock.h"

#include <stdlib.h>
#include <sys/prctl.h>

#define PAUSE_US 20

int sampled_open(struct sampled *program, struct pci_address pci, struct error *error)
{
	*program = (struct sampled){.editor = program->editor, .pci = pci, .bursts = malloc(SAMPLER_BURSTS * sizeof *program->bursts)};
	if (!program->bursts)
		return error_set(error, "no memory");
	/* The editor's mapping is the view's. */
	program->view = (struct counts_view){.pid = program->editor.pid, .segment = program->editor.segment.memory};
	counts_view_follow(&program->view);
	struct counts_of_gpu counts = counts_view_read(&program->view, pci);

	return counts_know_launched(counts.gaps) && counts_know_ended(counts.gaps)
	               ? 0
	               : error_set(error, "pid %d: its kernels cannot all be counted, so its jobs cannot be told apart", (int)program->editor.pid);
}

void sampled_close(struct sampled *program)
{
	program->view.segment = NULL;
	counts_view_close(&program->view);
	free(program->bursts);
	editor_close(&program->editor);
}

/* --- looking ---------------------------------------------------------------------------------------------------------------- */

static void end_burst(struct sampled *program, uint64_t begin_ns, uint64_t end_ns, uint64_t launched)
{
	program->busy_ns += end_ns - begin_ns;
	if (program->count < SAMPLER_BURSTS)
		program->bursts[program->count++] = (struct burst){begin_ns, end_ns, launched - program->at_launched};
	program->at_launched = launched;
}

/* What is between two looks began with the earlier one, or ended with the later one. */
static void look(struct sampled *program, uint64_t before_ns, uint64_t now_ns)
{
	counts_view_follow(&program->view);
	struct counts_of_gpu counts = counts_view_read(&program->view, program->pci);
	bool is_busy = counts.in_flight > 0;

	if (!program->was_seen) {
		program->at_launched = counts.launched;
		program->at_ended = counts.ended;
		program->began_ns = now_ns;
	} else if (program->is_busy && !is_busy) {
		end_burst(program, program->began_ns, now_ns, counts.launched);
	} else if (!program->is_busy && is_busy) {
		program->began_ns = now_ns;
	} else if (!is_busy && counts.launched != program->launched) {
		end_burst(program, before_ns, now_ns, counts.launched);
	}
	program->is_busy = is_busy;
	program->was_seen = true;
	program->launched = counts.launched;
	program->kernels = counts.ended - program->at_ended;
}

static void *run(void *argument)
{
	struct sampler *sampler = argument;
	uint64_t before = process_clock_ns();

	prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
	for (sampler->begin_ns = before; !atomic_load(&sampler->ends);) {
		uint64_t now = process_clock_ns();

		for (size_t i = 0; i < sampler->count; i++)
			look(&sampler->programs[i], before, now);
		before = sampler->end_ns = now;
		atomic_store(&sampler->bursts, sampler->programs[0].count);
		clock_pause_us(PAUSE_US);
	}
	for (size_t i = 0; i < sampler->count; i++)
		sampler->programs[i].busy_ns += sampler->programs[i].is_busy ? before - sampler->programs[i].began_ns : 0;
	return NULL;
}

int sampler_start(struct sampler *sampler, struct error *error)
{
	for (size_t i = 0; i < sampler->count; i++) {
		struct sampled *program = &sampler->programs[i];

		*program = (struct sampled){.editor = program->editor, .pci = program->pci, .view = program->view, .bursts = program->bursts};
	}
	atomic_store(&sampler->ends, false);
	atomic_store(&sampler->bursts, 0);
	return pthread_create(&sampler->thread, NULL, run, sampler) == 0 ? 0 : error_set(error, "no thread can be made");
}

void sampler_stop(struct sampler *sampler)
{
	atomic_store(&sampler->ends, true);
	pthread_join(sampler->thread, NULL);
}
