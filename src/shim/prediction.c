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

static uint64_t hash_of(const struct prediction_key *key)
{
	uint64_t hash = mix((uintptr_t)key->what);

	hash = mix(hash + ((uint64_t)key->grid[1] << 32 | key->grid[0]));
	return mix(hash + ((uint64_t)key->tpcs << 32 | key->grid[2]));
}

static size_t set_of(uint64_t hash)
{
	return hash % PREDICTION_SETS;
}

/* A record's word has the mark of its key in the upper half and the prediction in the lower one: so whoever asks reads
 * both at once. Of two keys, one in 2^40 has the same set and mark. */
#define MARK UINT64_C(0xffffffff00000000)

_Static_assert(PREDICTION_MOST_NS / PREDICTION_UNIT_NS < UINT32_MAX, "it fits into half a word");

static uint64_t mark_of(uint64_t hash)
{
	uint64_t mark = hash & MARK;

	return mark != 0 ? mark : MARK;
}

static uint64_t prediction_of(uint64_t word)
{
	return (word & ~MARK) * PREDICTION_UNIT_NS;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

struct prediction prediction_ask(const struct prediction_history *history, const struct prediction_key *key)
{
	uint64_t hash = hash_of(key), mark = mark_of(hash);
	struct prediction prediction = {.ns = atomic_load_explicit(&history->longest_ns, memory_order_relaxed)};

	for (unsigned int i = 0; i < PREDICTION_WAYS && !prediction.is_known; i++) {
		uint64_t word = atomic_load_explicit(&history->records[set_of(hash)][i].word, memory_order_relaxed);

		if ((word & MARK) == mark)
			prediction = (struct prediction){.ns = prediction_of(word), .is_known = true};
	}
	return prediction;
}

/* --- learning ----------------------------------------------------------------------------------------------------- */

static struct prediction_record *find(struct prediction_record *set, uint64_t mark)
{
	struct prediction_record *found = NULL;

	for (unsigned int i = 0; i < PREDICTION_WAYS && !found; i++) {
		if ((atomic_load(&set[i].word) & MARK) == mark)
			found = &set[i];
	}
	return found;
}

static void find_longest(struct prediction_history *history)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < PREDICTION_RECORDS; i++) {
		const struct prediction_record *record = &history->records[i / PREDICTION_WAYS][i % PREDICTION_WAYS];
		uint64_t ns = prediction_of(atomic_load(&record->word));

		longest = ns > longest ? ns : longest;
	}
	atomic_store(&history->longest_ns, longest);
}

/* Those that were forgotten count as older than any. */
static uint64_t learnt_of(const struct prediction_record *record)
{
	return atomic_load(&record->word) != 0 ? record->learnt : 0;
}

static struct prediction_record *oldest_of(struct prediction_record *set)
{
	struct prediction_record *oldest = &set[0];

	for (unsigned int i = 1; i < PREDICTION_WAYS; i++) {
		if (learnt_of(&set[i]) < learnt_of(oldest))
			oldest = &set[i];
	}
	return oldest;
}

/* Nobody finds it until its word says something. */
static void make(struct prediction_record *record, const struct prediction_key *key)
{
	atomic_store(&record->word, 0);
	atomic_store(&record->what, key->what);
	record->key = *key;
	record->called = 0;
	record->mean_ns = 0;
	record->launches = 0;
	record->quality = (struct prediction_quality){.known = 0};
}

static uint64_t mean_with(struct prediction_record *record, uint64_t came_ns)
{
	int64_t mean = (int64_t)record->mean_ns;

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
	uint64_t hash = hash_of(key), came = came_ns < PREDICTION_MOST_NS ? came_ns : PREDICTION_MOST_NS;
	struct prediction_record *set = history->records[set_of(hash)], *found = find(set, mark_of(hash));
	struct prediction_record *record = found ? found : oldest_of(set);
	uint64_t before = atomic_load(&record->word), after;

	if (!found)
		make(record, key);
	judge(&record->quality, predicted, came);
	judge(&history->quality, predicted, came);
	record->learnt = ++history->learnt;
	record->mean_ns = mean_with(record, came);
	after = mark_of(hash) | (record->mean_ns + PREDICTION_UNIT_NS / 2) / PREDICTION_UNIT_NS;
	atomic_store(&record->word, after);
	keep_longest(history, prediction_of(before), prediction_of(after));
}

void prediction_call(struct prediction_history *history, const struct prediction_key *key, uint64_t called)
{
	uint64_t hash = hash_of(key);
	struct prediction_record *found = find(history->records[set_of(hash)], mark_of(hash));

	if (found)
		found->called = called;
}

void prediction_forget(struct prediction_history *history, const void *what)
{
	for (size_t i = 0; i < PREDICTION_RECORDS; i++) {
		struct prediction_record *record = &history->records[i / PREDICTION_WAYS][i % PREDICTION_WAYS];

		if (!what || atomic_load(&record->what) == what)
			atomic_store(&record->word, 0);
	}
	atomic_store(&history->has_forgotten, true);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

bool prediction_read(const struct prediction_history *history, size_t number, struct prediction_known *known)
{
	const struct prediction_record *record = &history->records[number / PREDICTION_WAYS][number % PREDICTION_WAYS];
	uint64_t word = atomic_load(&record->word);

	if (word != 0)
		*known = (struct prediction_known){
			.key = record->key,
			.called = record->called != 0 ? record->called : (uintptr_t)record->key.what,
			.mean_ns = prediction_of(word),
			.quality = record->quality,
		};
	return word != 0;
}
