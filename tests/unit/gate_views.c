/* Threads that are stopped while they read a view of the others keep that one, and no later one. */
#include "../cases.h"
#include "time/gate/gates.h"

TEST(each_keeps_one)
{
	static struct gate gate;
	struct others_on_gpu *kept[GATE_VIEWS];

	for (unsigned int i = 0; i < GATE_VIEWS; i++) {
		kept[i] = gate_enter(&gate);
		struct others_on_gpu *next = gate_unread(&gate);

		for (unsigned int j = 0; j <= i; j++)
			assert_true(next != kept[j]);
		assert_int_equal(next != NULL, i + 1 < GATE_VIEWS);
		if (next)
			atomic_store(&gate.current, (unsigned int)(next - gate.views));
	}
	gate_leave(&gate, kept[1]);
	assert_true(gate_unread(&gate) == kept[1]);
}

RUN_TESTS(NULL, NULL)
