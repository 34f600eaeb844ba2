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
	const struct options *options;
	pid_t pid;
	const char *gpu;       /* its number, or bus id */
	double seconds;        /* it took so long */
	struct jobs_rule rule; /* as found at the largest size, or as --kernels has it */
	struct curve curve, beside; /* `beside` is empty if there was no neighbour */
	unsigned int neighbour_tpcs;
	const char *why_ended; /* why smaller sizes were not measured; NULL: all were */
};

void curve_print(const struct measured_curve *measured);
json_t *curve_json(const struct measured_curve *measured);
void curve_draw(const struct measured_curve *measured, FILE *file);

/* A time in ms; null: it is not known, since it is 0. */
json_t *json_ms(double ns);

/* The members of an object in columns: a row of a table. Names end with NULL. */
void print_members(const json_t *object, const char *const names[]);

/* Takes the points of such a document, and of a shorter one that people write: an object with `points`, of which each has `tpcs`
 * and `job_ms`. -1 with the reason. */
int curve_read(struct curve *curve, struct curve *beside, json_t *document, struct error *error);

#endif
