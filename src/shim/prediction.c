#include "prediction.h"

/* Of so many launches, the mean is that of all; from then on, each counts for one in so many. */
#define SMOOTHING 8

/* --- finding ------------------------------------------------------------------------------------------------------ */

/* The finalizer of MurmurHash3: each bit of the result depends on each of the value. */
static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 33) * UINT64_C(0xff51afd7ed558ccd);
	value = (value ^ value >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return value ^ value >> 33;
}

/* Two keys with the same mark are not to be expected: it has 64 bits. */
static uint64_t mark_of(const struct prediction_key *key)
{
	uint64_t mark = mix((uintptr_t)key->what);

	mark = mix(mark + ((uint64_t)key->grid[1] << 32 | key->grid[0]));
	mark = mix(mark + ((uint64_t)key->tpcs << 32 | key->grid[2]));
	return mark != 0 ? mark : 1;
}

static struct prediction_record *find(struct prediction_record *set, uint64_t mark)
{
	struct prediction_record *found = NULL;

	for (unsigned int i = 0; i < PREDICTION_WAYS && !found; i++) {
		if (atomic_load_explicit(&set[i].mark, memory_order_acquire) == mark)
			found = &set[i];
	}
	return found;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

/* A record has the mark last when it is made, and loses it first: with the mark before and after, the mean is its own. */
struct prediction prediction_ask(const struct prediction_history *history, const struct prediction_key *key)
{
	uint64_t mark = mark_of(key);
	struct prediction_record *record = find((struct prediction_record *)history->records[mark % PREDICTION_SETS], mark);
	struct prediction prediction = {.ns = atomic_load_explicit(&history->longest_ns, memory_order_relaxed)};

	if (record) {
		uint64_t mean = atomic_load_explicit(&record->mean_ns, memory_order_acquire);

		if (atomic_load_explicit(&record->mark, memory_order_relaxed) == mark)
			prediction = (struct prediction){.ns = mean, .is_known = true};
	}
	return prediction;
}

/* --- learning ----------------------------------------------------------------------------------------------------- */

static void find_longest(struct prediction_history *history)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < PREDICTION_RECORDS; i++) {
		const struct prediction_record *record = &history->records[i / PREDICTION_WAYS][i % PREDICTION_WAYS];
		uint64_t mean = atomic_load(&record->mark) != 0 ? atomic_load(&record->mean_ns) : 0;

		longest = mean > longest ? mean : longest;
	}
	atomic_store(&history->longest_ns, longest);
}

/* Those that were forgotten count as older than any. */
static struct prediction_record *oldest_of(struct prediction_record *set)
{
	struct prediction_record *oldest = NULL;
	uint64_t least = UINT64_MAX;

	for (unsigned int i = 0; i < PREDICTION_WAYS; i++) {
		uint64_t learnt = atomic_load(&set[i].mark) != 0 ? set[i].learnt : 0;

		if (!oldest || learnt < least) {
			oldest = &set[i];
			least = learnt;
		}
	}
	return oldest;
}

/* Whoever asks does not find it until it has its mark. */
static void make(struct prediction_record *record, const struct prediction_key *key)
{
	atomic_store(&record->mark, 0);
	atomic_store(&record->mean_ns, 0);
	atomic_store(&record->what, key->what);
	record->key = *key;
	record->launches = 0;
	record->quality = (struct prediction_quality){.known = 0};
}

static uint64_t mean_with(struct prediction_record *record, uint64_t came_ns)
{
	int64_t mean = (int64_t)atomic_load(&record->mean_ns);

	record->launches += record->launches < SMOOTHING;
	return (uint64_t)(mean + ((int64_t)came_ns - mean) / (int64_t)record->launches);
}

static void judge(struct prediction_quality *quality, struct prediction predicted, uint64_t came_ns)
{
	if (predicted.is_known) {
		quality->known++;
		quality->predicted_ns += predicted.ns;
		quality->came_ns += came_ns;
		quality->error_ns += predicted.ns > came_ns ? predicted.ns - came_ns : came_ns - predicted.ns;
	} else {
		quality->unknown++;
	}
}

/* The longest one is looked for where it may have become shorter, or is no more. */
static void keep_longest(struct prediction_history *history, uint64_t before, uint64_t after)
{
	uint64_t longest = atomic_load(&history->longest_ns);

	if (atomic_exchange(&history->has_forgotten, false) || (before >= longest && after < longest))
		find_longest(history);
	else if (after > longest)
		atomic_store(&history->longest_ns, after);
}

void prediction_learn(struct prediction_history *history, const struct prediction_key *key, struct prediction predicted,
                      uint64_t came_ns)
{
	uint64_t mark = mark_of(key), came = came_ns < PREDICTION_MOST_NS ? came_ns : PREDICTION_MOST_NS;
	struct prediction_record *set = history->records[mark % PREDICTION_SETS], *found = find(set, mark);
	struct prediction_record *record = found ? found : oldest_of(set);
	uint64_t before = atomic_load(&record->mean_ns);

	if (!found)
		make(record, key);
	judge(&record->quality, predicted, came);
	judge(&history->quality, predicted, came);
	record->learnt = ++history->learnt;
	atomic_store(&record->mean_ns, mean_with(record, came));
	atomic_store(&record->mark, mark);
	keep_longest(history, before, atomic_load(&record->mean_ns));
}

void prediction_forget(struct prediction_history *history, const void *what)
{
	for (size_t i = 0; i < PREDICTION_RECORDS; i++) {
		struct prediction_record *record = &history->records[i / PREDICTION_WAYS][i % PREDICTION_WAYS];

		if (!what || atomic_load(&record->what) == what)
			atomic_store(&record->mark, 0);
	}
	atomic_store(&history->has_forgotten, true);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

bool prediction_read(const struct prediction_history *history, size_t number, struct prediction_known *known)
{
	const struct prediction_record *record = &history->records[number / PREDICTION_WAYS][number % PREDICTION_WAYS];
	bool is_there = atomic_load(&record->mark) != 0;

	if (is_there)
		*known = (struct prediction_known){record->key, atomic_load(&record->mean_ns), record->quality};
	return is_there;
}
