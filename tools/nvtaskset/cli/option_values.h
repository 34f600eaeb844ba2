/*
 * What options take: words, numbers, seconds. All return 0, or -1 with the reason.
 */
#ifndef NVTASKSET_CLI_OPTION_VALUES_H
#define NVTASKSET_CLI_OPTION_VALUES_H

#include "options.h"

#include <sys/types.h>

int option_mps(enum mps_mode *mode, const char *text, struct error *error);            /* --mps */
int option_strategy(enum strategy *strategy, const char *text, struct error *error);   /* --strategy */
int option_misfit(enum misfit *misfit, const char *text, struct error *error);         /* --on-misfit */
/* A size of memory, such as 2G: in mebibytes. */
int option_memory(uint64_t *mebibytes, const char *text, struct error *error);
int option_group(const char **group, const char *text, struct error *error);
int option_connections(unsigned int *connections, const char *text, struct error *error); /* --connections */
int option_priority(struct segment_rank *rank, const char *text, struct error *error); /* --priority */
int option_weight(struct segment_rank *rank, const char *text, struct error *error);   /* --weight */
int option_lend(struct segment_lending *lending, const char *text, struct error *error); /* --lend; NULL where it stands alone */
int option_borrow(struct segment_lending *lending, const char *text, struct error *error); /* --borrow */
int option_policy(struct segment_rank *rank, const char *text, struct error *error);   /* --policy */

/* --watch; `text` is NULL where it stands alone. --delay. */
int option_watch(double *seconds, const char *text, struct error *error);
int option_delay(double *seconds, const char *text, struct error *error);

/* --format: of metrics. */
int option_format(enum metrics_format *format, const char *text, struct error *error);

/* PID. A thread's id, too, as in taskset: it stands for its process. */
int option_pid(pid_t *pid, const char *text, struct error *error);

#endif
