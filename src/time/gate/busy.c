#include "busy.h"

#include "base/extremes.h"

#include <stdbool.h>

static bool touch(const struct busy_stretch *a, const struct busy_stretch *b)
{
	return a->begin <= b->end && b->begin <= a->end;
}

/* Takes out those that it touches, and becomes one with them. Returns for how long they were busy at the same time. */
static uint64_t merge(struct busy *busy, struct busy_stretch *stretch)
{
	const struct busy_stretch alone = *stretch;
	uint64_t both = 0;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < busy->count; i++) {
		struct busy_stretch there = busy->stretches[i];

		if (touch(&there, &alone)) {
			both += min_u64(there.end, alone.end) - max_u64(there.begin, alone.begin);
			stretch->begin = min_u64(there.begin, stretch->begin);
			stretch->end = max_u64(there.end, stretch->end);
		} else {
			busy->stretches[kept++] = there;
		}
	}
	busy->count = kept;
	return both;
}

static void forget_oldest(struct busy *busy)
{
	for (unsigned int i = 1; i < busy->count; i++)
		busy->stretches[i - 1] = busy->stretches[i];
	busy->count--;
}

static void insert(struct busy *busy, const struct busy_stretch *stretch)
{
	unsigned int place = busy->count++;

	for (; place > 0 && busy->stretches[place - 1].begin > stretch->begin; place--)
		busy->stretches[place] = busy->stretches[place - 1];
	busy->stretches[place] = *stretch;
}

uint64_t busy_add(struct busy *busy, uint64_t begin, uint64_t end)
{
	struct busy_stretch stretch = {begin, end};
	uint64_t more = 0;

	if (begin < end) {
		more = end - begin - merge(busy, &stretch);
		if (busy->count == BUSY_STRETCHES)
			forget_oldest(busy);
		insert(busy, &stretch);
	}
	return more;
}
