/*
 * What options take: words, numbers, seconds. All return 0, or -1 with the reason.
 */
#ifndef NVTASKSET_OPTION_VALUES_H
#define NVTASKSET_OPTION_VALUES_H

#include "options.h"

int option_mps(enum mps_mode *mode, const char *text, struct error *error);            /* --mps */
int option_strategy(enum strategy *strategy, const char *text, struct error *error);   /* --strategy */
int option_misfit(enum misfit *misfit, const char *text, struct error *error);         /* --on-misfit */
int option_connections(unsigned int *connections, const char *text, struct error *error); /* --connections */

/* --watch; `text` is NULL where it stands alone. */
int option_watch(double *seconds, const char *text, struct error *error);

#endif
