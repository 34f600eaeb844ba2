#include "prediction_tell.h"

#include <stdlib.h>

static int compare_what(const void *a, const void *b)
{
	const struct prediction_of *one = a, *other = b;

	return (one->what > other->what) - (one->what < other->what);
}

static uint64_t launches_of(const struct prediction_of *sum)
{
	return sum->quality.known + sum->quality.unknown;
}

/* Most launches first; those that are equal stay in an order. */
static int compare_launches(const void *a, const void *b)
{
	uint64_t one = launches_of(a), other = launches_of(b);

	return one != other ? (one < other) - (one > other) : compare_what(a, b);
}

static size_t read_all(const struct prediction_history *history, struct prediction_of *list)
{
	struct prediction_known known;
	size_t count = 0;

	for (size_t number = 0; number < PREDICTION_RECORDS; number++) {
		if (prediction_read(history, number, &known))
			list[count++] = (struct prediction_of){
				.what = known.called,
				.is_graph = known.key.grid[0] == 0,
				.quality = known.quality,
			};
	}
	return count;
}

/* Those of the same function stand together. */
static size_t sum_up(struct prediction_of *list, size_t count)
{
	size_t sums = 0;

	for (size_t i = 0; i < count; i++) {
		if (sums > 0 && list[sums - 1].what == list[i].what)
			prediction_quality_add(&list[sums - 1].quality, &list[i].quality);
		else
			list[sums++] = list[i];
	}
	return sums;
}

void prediction_tell(const struct segment *segment, const struct prediction_history *history)
{
	static struct prediction_of list[PREDICTION_RECORDS]; /* large */
	struct predictions told = {.all = history->quality};
	size_t count = read_all(history, list);

	qsort(list, count, sizeof list[0], compare_what);
	count = sum_up(list, count);
	qsort(list, count, sizeof list[0], compare_launches);
	for (; told.count < PREDICTIONS_MAX && told.count < count; told.count++)
		told.list[told.count] = list[told.count];
	predictions_publish(segment, &told);
}
