#include "actions.h"

int action_topology(const struct options *options, struct error *error)
{
	(void)options;
	return error_set(error, "not yet");
}
