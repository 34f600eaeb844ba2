#include "samples.h"

#include "base/extremes.h"

/* Both clocks drift, by less than a microsecond in so long. */
#define PERIOD_NS UINT64_C(1000000000)

/* A cell (state/kernels/timestamps.h) has the number and the time. A later launch has a higher number. */
static bool read_time(struct launch_end end, uint64_t *time)
{
	bool is_there = __atomic_load_n(&end.at[0], __ATOMIC_ACQUIRE) == end.number;

	*time = __atomic_load_n(&end.at[1], __ATOMIC_ACQUIRE);
	return is_there && __atomic_load_n(&end.at[0], __ATOMIC_RELAXED) == end.number;
}

void samples_add(struct samples *samples, const struct sample *sample)
{
	struct sample *free = NULL;

	for (int i = 0; samples->count < SAMPLES_MAX && !free; i++)
		free = samples->list[i].length ? NULL : &samples->list[i];
	if (free) {
		*free = *sample;
		samples->count++;
	}
}

static void drop(struct samples *samples, struct sample *sample)
{
	sample->length = NULL;
	samples->count--;
}

/* An end at this time of the GPU was before now. */
static void set_clock(struct samples_clock *clock, uint64_t time, uint64_t now)
{
	int64_t ahead = (int64_t)(time - now);

	if (clock->began == 0)
		clock->ahead[0] = clock->ahead[1] = ahead;
	if (clock->began == 0 || now - clock->began > PERIOD_NS) {
		clock->ahead[1] = clock->ahead[0];
		clock->ahead[0] = ahead;
		clock->began = now;
	}
	clock->ahead[0] = max_i64(clock->ahead[0], ahead);
}

static bool read_begin(const struct samples *samples, const struct sample *sample, uint64_t *begin)
{
	const struct samples_clock *clock = &samples->clock;
	bool is_known = true;

	if (sample->ahead.number != 0)
		is_known = read_time(sample->ahead, begin);
	else
		*begin = sample->launched_ns + (uint64_t)max_i64(clock->ahead[0], clock->ahead[1]);
	return is_known;
}

/* 0 if the length is not known. */
static uint64_t length_of(struct samples *samples, const struct sample *sample, uint64_t now)
{
	uint64_t begin, end, ns = 0;

	if (sample->end.number == IN_FLIGHT_UNTIL_IDLE) {
		ns = now - sample->launched_ns;
	} else if (read_time(sample->end, &end)) {
		set_clock(&samples->clock, end, now);
		ns = read_begin(samples, sample, &begin) && end > begin ? end - begin : 0;
	}
	return ns;
}

uint64_t samples_look(struct samples *samples, bool is_idle, uint64_t now)
{
	uint64_t longest = 0, ns;

	for (int i = 0; i < SAMPLES_MAX && samples->count > 0; i++) {
		struct sample *sample = &samples->list[i];

		if (!sample->length || !in_flight_has_ended(sample->end, is_idle))
			continue;
		ns = length_of(samples, sample, now);
		if (ns > 0)
			lengths_note(sample->length, sample->key, sample->place, ns);
		longest = sample->place == LENGTH_MORE ? max_u64(longest, ns) : longest;
		drop(samples, sample);
	}
	return longest;
}

void samples_drop_more(struct samples *samples)
{
	for (int i = 0; i < SAMPLES_MAX; i++) {
		if (samples->list[i].length && samples->list[i].place == LENGTH_MORE)
			drop(samples, &samples->list[i]);
	}
}
