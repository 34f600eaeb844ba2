/* For unit tests: sets of TPCs as people write them. */
#ifndef NVTASKSET_TESTS_SETS_H
#define NVTASKSET_TESTS_SETS_H

#include "../cases.h"
#include "gpu/tpcset.h"

/* A list; "" is the empty set. */
static inline struct tpcset parse(const char *text)
{
	struct tpcset set = {{0}};

	if (*text)
		assert_int_equal(tpcset_parse_list(&set, text, TPCSET_MAX, "TPC", NULL), 0);
	return set;
}

static inline struct tpcset range(unsigned int from, unsigned int to)
{
	struct tpcset set = {{0}};

	tpcset_add_range(&set, from, to);
	return set;
}

#endif
