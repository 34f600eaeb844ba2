#include "priority.h"

#include <stdlib.h>

int mps_set_priority(bool is_lower, struct error *error)
{
	return setenv(MPS_PRIORITY_ENVIRONMENT, is_lower ? "1" : "0", 1) == 0 ? 0 : error_set(error, "MPS: no memory");
}
