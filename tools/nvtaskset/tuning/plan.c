#include "cli/actions.h"
int action_plan(const struct options *options, struct error *error) { (void)options; return error_set(error, "not yet"); }
