#include "predictions.h"

#include "base/ring.h"
#include "layout.h"

/* --- as words ----------------------------------------------------------------------------------------------------- */

enum {
	WORD_KNOWN,
	WORD_UNKNOWN,
	WORD_PREDICTED,
	WORD_CAME,
	WORD_ERROR,
	QUALITY_WORDS
};

/* Behind the number of entries and the quality of all; each entry begins with what it is, and whether that is a graph. */
#define HEAD_WORDS (1 + QUALITY_WORDS)
#define ENTRY_WORDS (2 + QUALITY_WORDS)

_Static_assert(HEAD_WORDS + PREDICTIONS_MAX * ENTRY_WORDS == PREDICTIONS_WORDS, "there is room for all");

static void pack_quality(uint64_t *words, const struct prediction_quality *quality)
{
	words[WORD_KNOWN] = quality->known;
	words[WORD_UNKNOWN] = quality->unknown;
	words[WORD_PREDICTED] = quality->predicted_ns;
	words[WORD_CAME] = quality->came_ns;
	words[WORD_ERROR] = quality->error_ns;
}

static struct prediction_quality unpack_quality(const uint64_t *words)
{
	return (struct prediction_quality){
		.known = words[WORD_KNOWN],
		.unknown = words[WORD_UNKNOWN],
		.predicted_ns = words[WORD_PREDICTED],
		.came_ns = words[WORD_CAME],
		.error_ns = words[WORD_ERROR],
	};
}

static void pack(uint64_t *words, const struct predictions *predictions)
{
	uint64_t *entry = words + HEAD_WORDS;

	words[0] = predictions->count;
	pack_quality(words + 1, &predictions->all);
	for (unsigned int i = 0; i < predictions->count; i++, entry += ENTRY_WORDS) {
		entry[0] = predictions->list[i].what;
		entry[1] = predictions->list[i].is_graph;
		pack_quality(entry + 2, &predictions->list[i].quality);
	}
}

static bool unpack(struct predictions *predictions, const uint64_t *words)
{
	const uint64_t *entry = words + HEAD_WORDS;

	if (words[0] > PREDICTIONS_MAX)
		return false;
	predictions->count = (unsigned int)words[0];
	predictions->all = unpack_quality(words + 1);
	for (unsigned int i = 0; i < predictions->count; i++, entry += ENTRY_WORDS)
		predictions->list[i] = (struct prediction_of){entry[0], entry[1] != 0, unpack_quality(entry + 2)};
	return true;
}

void prediction_quality_add(struct prediction_quality *to, const struct prediction_quality *quality)
{
	to->known = segment_sum(to->known, quality->known);
	to->unknown = segment_sum(to->unknown, quality->unknown);
	to->predicted_ns = segment_sum(to->predicted_ns, quality->predicted_ns);
	to->came_ns = segment_sum(to->came_ns, quality->came_ns);
	to->error_ns = segment_sum(to->error_ns, quality->error_ns);
}

/* --- in the segment ------------------------------------------------------------------------------------------------- */

/* How often it is read anew that is written meanwhile. */
#define ATTEMPTS 4

void predictions_publish(const struct segment *segment, const struct predictions *predictions)
{
	struct segment_predictions *place = &segment->memory->predictions;
	uint64_t number = atomic_load_explicit(&place->number, memory_order_relaxed) + 1, words[PREDICTIONS_WORDS] = {0};

	number += number == 0;
	pack(words, predictions);
	ring_fill(place->versions[number % PREDICTIONS_VERSIONS], words, PREDICTIONS_WORDS);
	atomic_store_explicit(&place->number, number, memory_order_release);
}

void predictions_forget(struct segment_memory *memory)
{
	atomic_store(&memory->predictions.number, 0);
}

bool predictions_read(const struct segment *segment, struct predictions *predictions)
{
	const struct segment_predictions *place = &segment->memory->predictions;
	uint64_t words[PREDICTIONS_WORDS], seen = 0;
	bool is_whole = false;

	for (int attempt = 0; attempt < ATTEMPTS && !is_whole; attempt++) {
		seen = atomic_load_explicit(&place->number, memory_order_acquire);
		ring_copy(words, place->versions[seen % PREDICTIONS_VERSIONS], PREDICTIONS_WORDS);
		is_whole = ring_is_whole(&place->number, seen, PREDICTIONS_VERSIONS);
	}
	return is_whole && seen != 0 && unpack(predictions, words);
}
