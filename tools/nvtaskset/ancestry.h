/* A process and what it started. */
#ifndef NVTASKSET_ANCESTRY_H
#define NVTASKSET_ANCESTRY_H

#include "base/error.h"
#include "base/pids.h"

#include <sys/types.h>

/* `pid` itself and all that live of those that it started, that these started, and so on. The caller frees the list.
 * -1 with the reason, and nothing to free. */
int ancestry_family(struct pids *family, pid_t pid, struct error *error);

/* Only `pid`. The same promises. */
int ancestry_alone(struct pids *family, pid_t pid, struct error *error);

#endif
