/*
 * A launch with waiting kernels behind goes, while our thread looks whether the launches with waiting kernels have
 * ended. In no order does our thread take the launch for ended: the launch is in the call, and not counted yet.
 *
 * sanitizers: no
 * link: -Wl,--wrap=gpus_at,--wrap=gates_of,--wrap=work_look,--wrap=wakeup_ring
 */
#include "orders.h"

#define wait hold_wait /* wait(2) */
#include "../../src/time/gate/hold.c"
#include "../../src/time/gate/keeper.c"

static struct gpu gpu;
static struct gate gate;
static struct length length;

WRAP(const struct gpu *, gpus_at, struct pci_address pci)
{
	return &gpu;
}

WRAP(struct gate *, gates_of, const struct gpu *of)
{
	return &gate;
}

/* No launch is counted. */
WRAP(void, work_look, struct work *work, uint64_t now)
{
}

WRAP(void, wakeup_ring, void)
{
}

static void begin(void)
{
	memset(&gate, 0, sizeof gate);
	memset(&gate_state, 0, sizeof gate_state);
	memset(&keeper, 0, sizeof keeper);
	gate_state.is_open = true;
	keeper.work.gpu_count = 1;
	orders_watch(&gate_state.together);
	orders_watch(&gate_state.together_ended);
	orders_watch(&gate_state.entering);
}

/* With a spent quota. */
static void launch(void)
{
	struct arrival arrival = {.gate = &gate, .length = &length, .is_together = true};

	assert_true(look(&arrival));
}

static void look_at_work(void)
{
	see_work(1);
}

static void end(void)
{
	assert_int_equal(gate_state.together, 1);
	assert_int_equal(gate_state.together_ended, 0);
}

TEST(a_launch_in_its_call_has_not_ended)
{
	orders_try(begin, launch, look_at_work, end);
}

RUN_TESTS(NULL, NULL)
