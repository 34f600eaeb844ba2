/*
 * Looks at running programs' counts (state/kernels/counts_read.h) some 20000 times a second, and notes when each is busy. The
 * programs do nothing for it.
 */
#ifndef NVTASKSET_TUNING_SAMPLER_H
#define NVTASKSET_TUNING_SAMPLER_H

#include "plan/jobs.h"
#include "state/kernels/counts_read.h"
#include "state/segment/edit.h"

/* One program, on one GPU. */
struct sampled {
	struct editor editor; /* has its partition open; sampled_close closes it */
	struct pci_address pci;
	/* As it was seen: */
	struct burst *bursts; /* those that have ended */
	size_t count;
	uint64_t kernels;     /* that have ended */
	uint64_t busy_ns, span_ns;
	/* For the sampler. */
	struct counts_view view;
	bool is_busy;
	uint64_t looked_ns, began_ns, launched, at_launched, at_ended;
};

/* -1 with the reason. The caller closes it also then. */
int sampled_open(struct sampled *program, struct pci_address pci, struct error *error);
void sampled_close(struct sampled *program);

/* Looks for so long. */
void sampler_watch(struct sampled *programs, size_t count, double ns);

#endif
