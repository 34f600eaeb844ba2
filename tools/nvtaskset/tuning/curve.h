/*
 * A measured curve, and how it is shown.
 */
#ifndef NVTASKSET_TUNING_CURVE_H
#define NVTASKSET_TUNING_CURVE_H

#include "base/error.h"
#include "cli/options.h"
#include "plan/curve.h"
#include "plan/jobs.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/types.h>

struct measured_curve {
	pid_t pid;
	const char *gpu;       /* its number, or bus id */
	double seconds;        /* it took so long */
	bool is_given;         /* --kernels said how many kernels a job has */
	struct jobs_rule rule; /* as found at the largest size */
	struct curve curve, beside; /* `beside` is empty if there was no neighbour */
	enum beside neighbour;
	unsigned int neighbour_tpcs;
	const char *why_ended;  /* why smaller sizes were not measured; NULL: all were */
};

void curve_print(const struct measured_curve *measured);
json_t *curve_json(const struct measured_curve *measured);
void curve_draw(const struct measured_curve *measured, FILE *file);

/* A time in ms, in a column of text and for JSON; 0: it is not known. */
void print_ms(double ns);
json_t *json_ms(double ns);

/* Takes the points of such a document, and of a shorter one that people write: an object with `points`, of which each has `tpcs`
 * and `job_ms`. -1 with the reason. */
int curve_read(struct curve *curve, struct curve *beside, json_t *document, struct error *error);

#endif
