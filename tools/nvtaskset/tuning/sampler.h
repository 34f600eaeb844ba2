/*
 * Looks at running programs' counts (state/kernels/counts_read.h) some 20000 times a second, and notes when each is busy. The
 * programs do nothing for it.
 */
#ifndef NVTASKSET_TUNING_SAMPLER_H
#define NVTASKSET_TUNING_SAMPLER_H

#include "plan/jobs.h"
#include "state/kernels/counts_read.h"
#include "state/segment/edit.h"

#include <pthread.h>

#define SAMPLER_BURSTS 100000 /* more than that between two clearings are not seen */

/* One program, on one GPU. */
struct sampled {
	struct editor editor;
	struct pci_address pci;
	struct counts_view view;
	struct burst *bursts; /* those that have ended */
	size_t count;
	uint64_t kernels;     /* that have ended */
	uint64_t busy_ns;
	/* For the sampler. */
	bool is_busy, was_seen;
	uint64_t began_ns, launched, at_launched, at_ended;
};

struct sampler {
	size_t count;
	struct sampled *programs;
	pthread_t thread;
	_Atomic bool ends;
	_Atomic size_t bursts; /* of the first program, so far */
	uint64_t begin_ns, end_ns;
};

/* A program whose partition the editor has open, which sampled_close closes; its counts must be known. -1 with the reason. */
int sampled_open(struct sampled *program, struct pci_address pci, struct error *error);
void sampled_close(struct sampled *program);

/* Forgets what was seen, and looks until sampler_stop, in a thread. -1 with the reason. */
int sampler_start(struct sampler *sampler, struct error *error);
void sampler_stop(struct sampler *sampler);

#endif
