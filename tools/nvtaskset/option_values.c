#include "option_values.h"

#include <stdlib.h>
#include <string.h>

#define WATCH_SECONDS 1.0
#define WATCH_SECONDS_MIN 0.1
#define WATCH_SECONDS_MAX 86400.0

/* An option whose value is one of several words. */
struct word {
	const char *name;
	int value;
};

struct words {
	const char *option;
	const char *all; /* for error messages */
	struct word list[4]; /* the last one has no name */
};

static const struct words mps_words = {"--mps", "auto, on or off", {{"auto", MPS_AUTO}, {"on", MPS_ON}, {"off", MPS_OFF}}};
static const struct words strategy_words = {
	"--strategy", "packed or distributed", {{"packed", STRATEGY_PACKED}, {"distributed", STRATEGY_DISTRIBUTED}}};
static const struct words misfit_words = {
	"--on-misfit", "widen or fail", {{"widen", MISFIT_WIDEN}, {"fail", MISFIT_FAIL}}};

static int parse_word(int *value, const struct words *words, const char *text, struct error *error)
{
	const struct word *word = words->list;

	while (word->name && strcmp(text, word->name) != 0)
		word++;
	if (!word->name)
		return error_set(error, "%s %.40s: must be %s", words->option, text, words->all);
	*value = word->value;
	return 0;
}

int option_mps(enum mps_mode *mode, const char *text, struct error *error)
{
	int value = *mode, result = parse_word(&value, &mps_words, text, error);

	*mode = (enum mps_mode)value;
	return result;
}

int option_strategy(enum strategy *strategy, const char *text, struct error *error)
{
	int value = *strategy, result = parse_word(&value, &strategy_words, text, error);

	*strategy = (enum strategy)value;
	return result;
}

int option_misfit(enum misfit *misfit, const char *text, struct error *error)
{
	int value = *misfit, result = parse_word(&value, &misfit_words, text, error);

	*misfit = (enum misfit)value;
	return result;
}

int option_connections(unsigned int *connections, const char *text, struct error *error)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < 1 || number > MPS_CONNECTIONS_MAX)
		return error_set(error, "--connections %.40s: must be 1-%d", text, MPS_CONNECTIONS_MAX);
	*connections = (unsigned int)number;
	return 0;
}

int option_watch(double *seconds, const char *text, struct error *error)
{
	char *end;

	*seconds = WATCH_SECONDS;
	if (text) {
		*seconds = strtod(text, &end);
		if (end == text || *end != '\0' || !(*seconds >= WATCH_SECONDS_MIN && *seconds <= WATCH_SECONDS_MAX))
			return error_set(error, "--watch=%.40s: must be 0.1-86400 seconds", text);
	}
	return 0;
}
