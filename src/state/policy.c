#include "policy.h"

#include <stdio.h>
#include <string.h>

static const struct word {
	const char *name;
	struct segment_rank gives;
} words[] = {
	{"prt", {.scheduling = SEGMENT_PRT}},
	{"ht", {.scheduling = SEGMENT_HT}},
	{"pe", {.reservation = SEGMENT_PE}},
};

#define WORDS (sizeof words / sizeof words[0])

/* The word of this length; NULL if it is none. */
static const struct word *find(const char *text, size_t length)
{
	const struct word *found = NULL;

	for (size_t i = 0; i < WORDS && !found; i++) {
		if (strlen(words[i].name) == length && strncmp(text, words[i].name, length) == 0)
			found = &words[i];
	}
	return found;
}

static int add_word(struct segment_rank *rank, const struct word *word, struct error *error)
{
	int result = 0;

	if (!word)
		result = error_set_code(error, NVTASKSET_ERROR_INVALID, "must be prt, ht or pe, or one of prt and ht with pe, such as ht,pe");
	else if (rank->scheduling > 0 && word->gives.scheduling > 0)
		result = error_set_code(error, NVTASKSET_ERROR_INVALID, "prt and ht say who goes first: choose one");
	else if (rank->reservation > 0 && word->gives.reservation > 0)
		result = error_set_code(error, NVTASKSET_ERROR_INVALID, "pe is there twice");
	else
		segment_put_policy(rank, word->gives);
	return result;
}

int policy_parse(struct segment_rank *rank, const char *text, struct error *error)
{
	struct segment_rank given = {.scheduling = 0};
	const char *at = text;
	int result;

	do {
		size_t length = strcspn(at, ",");

		result = add_word(&given, find(at, length), error);
		at += length;
	} while (result == 0 && *at++ == ',');
	if (result == 0)
		segment_put_policy(rank, given);
	return result;
}

const char *policy_format(struct segment_rank rank, char text[POLICY_TEXT])
{
	const char *scheduling = rank.scheduling == 0 ? "" : segment_policy_is_ht(rank) ? "ht" : "prt";
	const char *reservation = rank.reservation == 0 ? "" : "pe";
	bool has_both = rank.scheduling > 0 && rank.reservation > 0;

	snprintf(text, POLICY_TEXT, "%s%s%s", scheduling, has_both ? "," : "", reservation);
	return text;
}
