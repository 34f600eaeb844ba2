#include "programs.h"

#include "base/clock.h"
#include "terminal/progress.h"

#include <stdlib.h>
#include <sys/prctl.h>

#define PAUSE_US 20
#define BURSTS 100000 /* further bursts are not seen */

int sampler_open(struct sampled *program, struct pci_address pci, struct error *error)
{
	/* Shares the editor's mapping. */
	*program = (struct sampled){.editor = program->editor, .pci = pci,
	                            .bursts = malloc(BURSTS * sizeof *program->bursts),
	                            .view = {.pid = program->editor.pid, .segment = program->editor.segment.memory}};
	counts_view_follow(&program->view);
	struct counts_of_gpu counts = counts_view_read(&program->view, pci);

	if (!program->bursts)
		return error_set(error, "no memory");
	return counts_know_launched(counts.gaps) && counts_know_ended(counts.gaps)
	               ? 0
	               : error_set(error, "pid %d: its kernels cannot all be counted, so its jobs cannot be told apart",
	                           (int)program->editor.pid);
}

void sampler_close(struct sampled *program)
{
	program->view.segment = NULL;
	counts_view_close(&program->view);
	free(program->bursts);
	editor_close(&program->editor);
}

/* A burst between two looks began with the first look, or ended with the second. */
static void sample(struct sampled *program, uint64_t before_ns, uint64_t now_ns)
{
	counts_view_follow(&program->view);
	struct counts_of_gpu counts = counts_view_read(&program->view, program->pci);
	bool is_busy = counts.in_flight > 0, was_busy = program->is_busy || counts.launched != program->launched;
	uint64_t began = program->is_busy ? program->began_ns : is_busy ? now_ns : before_ns;

	if (before_ns == now_ns) { /* the first look */
		program->count = 0;
		program->busy_ns = 0;
		program->at_launched = counts.launched;
		program->at_ended = counts.ended;
		began = now_ns;
	} else if (was_busy && !is_busy) {
		program->busy_ns += now_ns - began;
		if (program->count < BURSTS)
			program->bursts[program->count++] = (struct burst){began, now_ns,
			                                                   counts.launched - program->at_launched};
		program->at_launched = counts.launched;
	}
	program->began_ns = began;
	program->is_busy = is_busy;
	program->launched = counts.launched;
	program->kernels = counts.ended - program->at_ended;
}

void sampler_watch(struct sampled *programs, size_t count, double ns)
{
	const uint64_t begin = process_clock_ns();
	uint64_t before = begin;

	prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
	for (uint64_t now = begin; count > 0 && (double)(before - begin) < ns && !programs_restorer_must_end();
	     now = process_clock_ns()) {
		for (size_t i = 0; i < count; i++)
			sample(&programs[i], before, now);
		before = now;
		progress_tick();
		clock_pause_us(PAUSE_US);
	}
	for (size_t i = 0; i < count; i++) {
		programs[i].span_ns = before - begin;
		programs[i].busy_ns += programs[i].is_busy ? before - programs[i].began_ns : 0;
	}
}
