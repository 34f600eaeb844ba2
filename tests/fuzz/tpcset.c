/* Any text in either notation: refused with a reason and nothing written, or a set that survives a round trip. */
#include "fuzz.h"

#include "gpu/tpcset.h"

#include <string.h>

typedef int parse_function(struct tpcset *, const char *, unsigned int, const char *, struct error *);
typedef const char *format_function(const struct tpcset *, char *);

static const struct tpcset untouched = {{0x5555, 0, 0x5555, 0}};

static void check_members(const struct tpcset *set, unsigned int limit)
{
	unsigned int last = 0;

	for (unsigned int tpc = tpcset_next(set, 0); tpc < TPCSET_MAX; tpc = tpcset_next(set, tpc + 1))
		last = tpc;
	must(last < limit);
}

static void check_round_trip(const struct tpcset *set, unsigned int limit, parse_function *parse, format_function *format)
{
	struct tpcset again = untouched;
	char text[TPCSET_TEXT];

	must(strlen(format(set, text)) < TPCSET_TEXT);
	/* The empty set is "" as a list, which is not accepted as input. */
	if (*text) {
		must(parse(&again, text, limit, "TPC", NULL) == 0);
		must(tpcset_equal(set, &again));
	}
}

static void check_text(const char *text, unsigned int limit, parse_function *parse)
{
	struct tpcset set = untouched;
	struct error error = {.reason = ""};

	if (parse(&set, text, limit, "TPC", &error) == 0) {
		check_members(&set, limit);
		check_round_trip(&set, limit, tpcset_parse_list, tpcset_format_list);
		check_round_trip(&set, limit, tpcset_parse_mask, tpcset_format_mask);
	} else {
		must(tpcset_equal(&set, &untouched));
		must(error.reason[0] && memchr(error.reason, '\0', sizeof error.reason));
	}
}

/* The first byte is the number of TPCs. The text is in a block of exactly its size, so that a sanitizer sees reads
 * beyond it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0) {
		unsigned int limit = data[0] + 1U;
		char *text = malloc(size);

		must(text);
		memcpy(text, data + 1, size - 1);
		text[size - 1] = '\0';
		check_text(text, limit, tpcset_parse_list);
		check_text(text, limit, tpcset_parse_mask);
		free(text);
	}
	return 0;
}
