/* For a walk over waiting launches: each gets the mask of the launch or a second mask, by chance. */
#ifndef NVTASKSET_TESTS_TOSS_H
#define NVTASKSET_TESTS_TOSS_H

#include "driver/pushbuffer/queue.h"

struct toss {
	uint64_t state;
	struct qmd_mask second;
};

static enum queue_answer toss(void *data, const struct queued *launch, struct qmd_mask *disable)
{
	struct toss *by = data;

	by->state = by->state * UINT64_C(6364136223846793005) + 1;
	*disable = by->state >> 63 ? launch->noted : by->second;
	return QUEUE_CHANGE;
}

#endif
