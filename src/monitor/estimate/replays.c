#include "replays.h"

bool replays_launch(struct replays *replays, uint64_t launched_ns)
{
	bool has_room = replays->next - replays->first < REPLAYS_WAITING;

	if (has_room)
		replays->launched[replays->next++ % REPLAYS_WAITING] = launched_ns;
	return has_room;
}

/* When launch `number` begins, if the one before ended at `end`. */
static uint64_t begin_of(const struct replays *replays, const struct times_ways *ways, uint64_t number, uint64_t end)
{
	uint64_t launched = replays->launched[number % REPLAYS_WAITING] + ways->latency_ns;
	uint64_t behind = end + ways->release_ns + ways->next_ns;

	return launched > behind ? launched : behind;
}

uint64_t replays_after(const struct replays *replays, uint64_t time)
{
	uint64_t number = replays->first;

	while (number < replays->next && replays->launched[number % REPLAYS_WAITING] < time)
		number++;
	return number;
}

/* Until one was measured: those before the end share the time. */
static uint64_t guess_length(const struct replays *replays, const struct times_ways *ways, uint64_t open, uint64_t end)
{
	uint64_t begin = begin_of(replays, ways, replays->first, replays->end);

	return open > 0 && end > begin ? (end - begin) / open : 0;
}

/* How many of those that are open have ended by then, if each is so long: one at least. */
static uint64_t ended_by(const struct replays *replays, const struct times_ways *ways, uint64_t open, uint64_t length,
                         uint64_t end)
{
	uint64_t stop = replays->end, count = 0;

	for (uint64_t i = 0; i < open && stop <= end + length / 2; i++) {
		stop = begin_of(replays, ways, replays->first + i, stop) + length;
		count += stop <= end + length / 2;
	}
	return count == 0 && open > 0 ? 1 : count;
}

/* The last one is the one whose end was seen, and whose length may have been measured. */
static void add_ended(struct replays *replays, struct times *times, const struct times_ways *ways, uint64_t length,
                      uint64_t end, bool is_last, bool is_measured, unsigned int tpcs)
{
	uint64_t begin = begin_of(replays, ways, replays->first, replays->end);
	uint64_t stop = is_last || begin + length > end ? end : begin + length;

	if (is_last && length < end && (is_measured || begin > end - length))
		begin = end - length;
	times_add_interval(times, begin < stop ? begin : stop, stop, tpcs);
	replays->end = stop;
	replays->first++;
}

uint64_t replays_see_end(struct replays *replays, struct times *times, const struct times_ways *ways, uint64_t end,
                         uint64_t length_ns, bool none_is_left, unsigned int tpcs)
{
	uint64_t open = replays_after(replays, end) - replays->first;

	if (length_ns != 0)
		replays->length_ns = length_ns;
	uint64_t length = replays->length_ns != 0 ? replays->length_ns
	                                          : guess_length(replays, ways, open, end);
	uint64_t ended = none_is_left ? open : ended_by(replays, ways, open, length, end);

	for (uint64_t i = 1; i <= ended; i++)
		add_ended(replays, times, ways, length, end, i == ended, length_ns != 0, tpcs);
	return ended;
}

void replays_see_running(const struct replays *replays, struct times *times, const struct times_ways *ways, uint64_t now,
                         unsigned int tpcs)
{
	if (replays->first < replays->next)
		times_add_interval(times, begin_of(replays, ways, replays->first, replays->end), now, tpcs);
}

uint64_t replays_drop(struct replays *replays, uint64_t number)
{
	uint64_t count = 0;

	for (; replays->first < number && replays->first < replays->next; replays->first++)
		count++;
	return count;
}
