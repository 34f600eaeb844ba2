#include "stepping_fit.h"

#include "allowed.h"
#include "residency.h"
#include "stepping.h"

static bool must_run_at_once(const struct call *call, struct launch_request *request)
{
	return calls_may_launch_at_once(call->id) && calls_read_request(call, request) &&
	       (request->shape.cluster > 1 || request->shape.cooperative > 0);
}

bool stepping_fits(const struct call *call, const struct gpu *gpu)
{
	struct tpcset left = stepping_left(gpu);
	struct launch_request request;

	if (tpcset_is_empty(&left) || !must_run_at_once(call, &request))
		return true;
	struct tpcset allowed = allowed_on(gpu), rest = tpcset_without(&allowed, &left);

	return residency_holds(gpu, &request, &rest);
}
