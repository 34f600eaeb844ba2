/* The samples: what programs have done on the GPUs. */
#ifndef NVTASKSET_PROGRAMS_H
#define NVTASKSET_PROGRAMS_H

#include "exposition.h"
#include "show/activity.h"

void programs_expose(struct exposition *exposition, const struct activities *activities,
                     const struct topology_list *gpus);

#endif
