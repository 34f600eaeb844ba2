#include "tpcset.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Reasons repeat only the beginning of the user's text. */
#define QUOTE "%.40s%s"
#define QUOTED(text) (text), strlen(text) > 40 ? "…" : ""

void tpcset_add(struct tpcset *set, unsigned int tpc)
{
	if (tpc < TPCSET_MAX)
		set->words[tpc / 64] |= UINT64_C(1) << (tpc % 64);
}

void tpcset_add_range(struct tpcset *set, unsigned int first, unsigned int last)
{
	for (unsigned int tpc = first; tpc <= last && tpc < TPCSET_MAX; tpc++)
		tpcset_add(set, tpc);
}

void tpcset_remove(struct tpcset *set, unsigned int tpc)
{
	if (tpc < TPCSET_MAX)
		set->words[tpc / 64] &= ~(UINT64_C(1) << (tpc % 64));
}

bool tpcset_has(const struct tpcset *set, unsigned int tpc)
{
	return tpc < TPCSET_MAX && (set->words[tpc / 64] >> (tpc % 64) & 1);
}

bool tpcset_is_empty(const struct tpcset *set)
{
	return tpcset_count(set) == 0;
}

bool tpcset_equal(const struct tpcset *a, const struct tpcset *b)
{
	return memcmp(a->words, b->words, sizeof a->words) == 0;
}

bool tpcset_is_subset(const struct tpcset *inner, const struct tpcset *outer)
{
	struct tpcset outside = tpcset_without(inner, outer);

	return tpcset_is_empty(&outside);
}

bool tpcset_overlap(const struct tpcset *a, const struct tpcset *b)
{
	struct tpcset both = tpcset_and(a, b);

	return !tpcset_is_empty(&both);
}

unsigned int tpcset_count(const struct tpcset *set)
{
	unsigned int count = 0;

	for (unsigned int word = 0; word < TPCSET_WORDS; word++)
		count += (unsigned int)__builtin_popcountll(set->words[word]);
	return count;
}

struct tpcset tpcset_and(const struct tpcset *a, const struct tpcset *b)
{
	struct tpcset result;

	for (unsigned int word = 0; word < TPCSET_WORDS; word++)
		result.words[word] = a->words[word] & b->words[word];
	return result;
}

struct tpcset tpcset_or(const struct tpcset *a, const struct tpcset *b)
{
	struct tpcset result;

	for (unsigned int word = 0; word < TPCSET_WORDS; word++)
		result.words[word] = a->words[word] | b->words[word];
	return result;
}

struct tpcset tpcset_without(const struct tpcset *a, const struct tpcset *b)
{
	struct tpcset result;

	for (unsigned int word = 0; word < TPCSET_WORDS; word++)
		result.words[word] = a->words[word] & ~b->words[word];
	return result;
}

unsigned int tpcset_next(const struct tpcset *set, unsigned int from)
{
	unsigned int found = TPCSET_MAX;

	for (unsigned int word = from / 64; word < TPCSET_WORDS && found == TPCSET_MAX; word++) {
		uint64_t bits = set->words[word] & (word == from / 64 ? UINT64_MAX << from % 64 : UINT64_MAX);

		if (bits != 0)
			found = word * 64 + (unsigned int)__builtin_ctzll(bits);
	}
	return found;
}

/* --- the list notation ------------------------------------------------------------------------- */

/* Reads decimal digits at *text and moves *text behind the digits; false without digits. A number above `limit`, of any
 * length, becomes `limit`: all numbers from `limit` on are equally wrong. */
static bool read_number(const char **text, unsigned int limit, unsigned int *number)
{
	const char *at = *text;
	unsigned int value = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		value = value * 10 + (unsigned int)(*at - '0');
		if (value > limit)
			value = limit;
	}
	*number = value;
	bool any = at != *text;

	*text = at;
	return any;
}

static int out_of_range(const char *number, unsigned int limit, const char *noun, struct error *error)
{
	int digits = (int)strspn(number, "0123456789");

	return error_set(error, "%s %.*s%s: this GPU has %ss 0-%u", noun, digits > 20 ? 20 : digits, number,
	                 digits > 20 ? "…" : "", noun, limit - 1);
}

/* An item of a list: N, N-M or N-M:STRIDE. */
static int parse_item(struct tpcset *set, const char **text, unsigned int limit, const char *noun,
                      struct error *error)
{
	const char *first_text = *text, *last_text = *text;
	unsigned int first, last, stride = 1;

	if (!read_number(text, limit, &first))
		return error_set(error, "'" QUOTE "': a number was expected", QUOTED(first_text));
	last = first;
	if (**text == '-') {
		last_text = ++*text;
		if (!read_number(text, limit, &last))
			return error_set(error, "'" QUOTE "': the range has no end", QUOTED(first_text));
		if (**text == ':') {
			++*text;
			if (!read_number(text, TPCSET_MAX, &stride) || stride == 0)
				return error_set(error, "'" QUOTE "': the stride must be 1 or more",
				                 QUOTED(first_text));
		}
	}
	if (first >= limit)
		return out_of_range(first_text, limit, noun, error);
	if (last >= limit)
		return out_of_range(last_text, limit, noun, error);
	if (last < first)
		return error_set(error, "%u-%u: the range runs backwards", first, last);
	for (unsigned int tpc = first; tpc <= last; tpc += stride)
		tpcset_add(set, tpc);
	return 0;
}

int tpcset_parse_list(struct tpcset *set, const char *text, unsigned int limit, const char *noun,
                      struct error *error)
{
	struct tpcset parsed = {{0}};
	const char *at = text;

	if (*at == '\0')
		return error_set(error, "an empty list: name at least one %s", noun);
	while (parse_item(&parsed, &at, limit, noun, error) == 0) {
		if (*at == '\0') {
			*set = parsed;
			return 0;
		}
		if (*at != ',')
			return error_set(error, "'" QUOTE "': not understood", QUOTED(at));
		at++;
	}
	return -1;
}

/* --- the mask notation ------------------------------------------------------------------------- */

/* Adds the members of a digit; false for a member from `limit` on. */
static bool add_digit(struct tpcset *set, char character, size_t position, unsigned int limit)
{
	static const char digits[] = "0123456789abcdef";
	unsigned int digit = (unsigned int)(strchr(digits, tolower((unsigned char)character)) - digits);
	bool fit = true;

	for (unsigned int bit = 0; bit < 4; bit++) {
		if (digit >> bit & 1) {
			fit = fit && position * 4 + bit < limit;
			tpcset_add(set, fit ? (unsigned int)position * 4 + bit : TPCSET_MAX);
		}
	}
	return fit;
}

static const char *skip_prefix(const char *text)
{
	return text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? text + 2 : text;
}

static size_t count_digits(const char *digits)
{
	return strspn(digits, "0123456789abcdefABCDEF,");
}

bool tpcset_looks_like_mask(const char *text)
{
	const char *digits = skip_prefix(text);

	return digits[count_digits(digits)] == '\0';
}

int tpcset_parse_mask(struct tpcset *set, const char *text, unsigned int limit, const char *noun,
                      struct error *error)
{
	const char *digits = skip_prefix(text);
	size_t length = count_digits(digits);
	struct tpcset parsed = {{0}};
	size_t position = 0; /* of the digit, from the right */
	bool is_grouped = memchr(digits, ',', length) != NULL, commas_fit = digits[0] != ',', fit = true;

	if (digits[length] != '\0')
		return error_set(error, "'" QUOTE "': not a hexadecimal mask", QUOTED(text));
	if (length == 0)
		return error_set(error, "'" QUOTE "': a mask without digits", QUOTED(text));
	/* Commas group the digits by eight from the right, as in /proc; every group but the first must be full. */
	for (size_t at = length; at-- > 0;) {
		commas_fit = commas_fit && (!is_grouped || (digits[at] == ',') == ((length - 1 - at) % 9 == 8));
		if (digits[at] != ',')
			fit = add_digit(&parsed, digits[at], position++, limit) && fit;
	}
	if (!commas_fit)
		return error_set(error, "'" QUOTE "': commas must separate groups of eight digits", QUOTED(text));
	if (!fit)
		return error_set(error, "mask " QUOTE ": wider than the GPU, which has %ss 0-%u", QUOTED(text), noun,
		                 limit - 1);
	*set = parsed;
	return 0;
}

/* --- writing ------------------------------------------------------------------------------------- */

/* The longest list of 256 members, every second one, takes 128 numbers: well under TPCSET_TEXT. */
const char *tpcset_format_list(const struct tpcset *set, char text[TPCSET_TEXT])
{
	size_t length = 0;
	unsigned int first = tpcset_next(set, 0);

	text[0] = '\0';
	while (first < TPCSET_MAX) {
		unsigned int last = first;

		while (tpcset_has(set, last + 1))
			last++;
		length += (size_t)snprintf(text + length, TPCSET_TEXT - length, last == first ? "%s%u" : "%s%u-%u",
		                           length ? "," : "", first, last);
		first = tpcset_next(set, last + 1);
	}
	return text;
}

const char *tpcset_format_mask(const struct tpcset *set, char text[TPCSET_TEXT])
{
	unsigned int word = TPCSET_WORDS - 1;
	size_t length;

	while (word > 0 && set->words[word] == 0)
		word--;
	length = (size_t)snprintf(text, TPCSET_TEXT, "%llx", (unsigned long long)set->words[word]);
	while (word-- > 0)
		length += (size_t)snprintf(text + length, TPCSET_TEXT - length, "%016llx",
		                           (unsigned long long)set->words[word]);
	return text;
}
