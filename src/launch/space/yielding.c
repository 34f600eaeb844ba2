#include "yielding.h"

#include "driver/gpus.h"
#include "time/gate/gate.h"

/* What is borrowed is as a part of the partition to all who come after. */
static void add(const struct launch *launch, struct decision *decision, const struct tpcset *tpcs)
{
	decision_restrict(decision, launch->gpu->topology, tpcs);
	decision->partition = *tpcs;
}

void yielding_decide(const struct launch *launch, struct decision *decision)
{
	struct tpcset tpcs = decision->set;

	decision->is_of_launch = decision->is_of_launch || gate_is_outside();
	if (!launch->gpu->has_masks || decision->state == DECISION_UNRESTRICTED || !gate_tpcs(launch->gpu, &tpcs))
		return;
	struct tpcset all = topology_all(launch->gpu->topology);

	tpcs = tpcset_and(&tpcs, &all);
	if (tpcset_is_empty(&tpcs) || tpcset_equal(&tpcs, &decision->set))
		return;
	if (tpcset_is_subset(&tpcs, &decision->set))
		decision_yield(decision, launch->gpu->topology, &tpcs);
	else
		add(launch, decision, &tpcs);
}
