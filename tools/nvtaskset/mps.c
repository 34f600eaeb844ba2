#include "actions.h"

int action_mps_status(const struct options *options, struct error *error)
{
	(void)options;
	return error_set(error, "not yet");
}

int action_mps_stop(const struct options *options, struct error *error)
{
	(void)options;
	return error_set(error, "not yet");
}
