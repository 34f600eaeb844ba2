#include "bound.h"

static bool is_over(const struct bound *bound, uint64_t now)
{
	return now >= bound->changed + (bound->is_aside ? BOUND_ASIDE_NS : BOUND_BACK_NS);
}

bool bound_step(struct bound *bound, uint64_t now, bool is_wanted, unsigned int gpus_with_work, uint64_t *wake)
{
	bool strikes = is_wanted && !bound->is_striking && bound->is_aside && gpus_with_work > 1 && is_over(bound, now);
	bool ends = !bound->is_aside && is_over(bound, now);

	bound->struck += strikes;
	bound->is_striking = strikes || (bound->is_striking && !ends);
	*wake = UINT64_MAX;
	if (bound->is_striking != bound->is_aside && (bound->is_striking || gpus_with_work > 1))
		*wake = bound->changed + (bound->is_aside ? BOUND_ASIDE_NS : BOUND_BACK_NS);
	return is_wanted && !bound->is_striking;
}

void bound_was_put_aside(struct bound *bound, uint64_t end)
{
	bound->is_aside = true;
	bound->changed = end;
}

void bound_was_taken_back(struct bound *bound, uint64_t end)
{
	bound->is_aside = false;
	bound->changed = end;
}
