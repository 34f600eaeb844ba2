/* A look as a JSON document, which json.md describes. */
#ifndef NVTASKSET_DOCUMENT_H
#define NVTASKSET_DOCUMENT_H

#include "show/activity.h"

#include <jansson.h>

/* Of all processes, or of the one whose kernels are looked at. NULL if there is no memory. */
json_t *document_of(const struct activities *activities);

#endif
