#include "option_values.h"

#include "base/proc.h"
#include "quota.h"
#include "state/revision_text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_SECONDS 1.0
#define SECONDS_MIN 0.1
#define SECONDS_MAX 86400.0

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

static const struct words format_words = {
	"--format", "openmetrics or prometheus", {{"openmetrics", METRICS_OPENMETRICS}, {"prometheus", METRICS_PROMETHEUS}}};

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

/* MPS counts in these units; a number alone would be bytes to some and megabytes to others. */
int option_memory(uint64_t *mebibytes, const char *text, struct error *error)
{
	static const struct {
		char letter;
		uint64_t mebibytes;
	} units[] = {{'M', 1}, {'G', 1024}, {'T', 1024 * 1024}};
	const size_t digits = strspn(text, "0123456789");
	uint64_t number = digits > 0 && digits <= 9 ? strtoull(text, NULL, 10) : 0, unit = 0;

	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		if (text[digits] == units[i].letter && text[digits + 1] == '\0')
			unit = units[i].mebibytes;
	}
	if (unit == 0 || number == 0)
		return error_set(error, "--memory %.40s: must be a whole number and M, G or T (powers of 1024), such as 512M or 2G",
		                 text);
	*mebibytes = number * unit;
	return 0;
}

int option_group(const char **group, const char *text, struct error *error)
{
	if (*group && strcmp(*group, text) != 0)
		return error_set(error, "--group: a program is in one group at a time: choose one");
	if (text[0] == '\0')
		return error_set(error, "--group: an empty name");
	*group = text;
	return 0;
}

static int parse_number(unsigned int *number, const char *option, const char *text, unsigned int min, unsigned int max,
                        struct error *error)
{
	char *end;
	unsigned long parsed = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || parsed < min || parsed > max)
		return error_set(error, "%s %.40s: must be %u-%u", option, text, min, max);
	*number = (unsigned int)parsed;
	return 0;
}

int option_connections(unsigned int *connections, const char *text, struct error *error)
{
	return parse_number(connections, "--connections", text, 1, MPS_CONNECTIONS_MAX, error);
}

int option_priority(struct segment_rank *rank, const char *text, struct error *error)
{
	unsigned int priority = 0;
	int result = parse_number(&priority, "--priority", text, 0, SEGMENT_PRIORITY_MAX, error);

	if (result == 0)
		rank->priority = segment_rank_of_priority(priority);
	return result;
}

int option_weight(struct segment_rank *rank, const char *text, struct error *error)
{
	unsigned int weight = 0;
	int result = parse_number(&weight, "--weight", text, 1, SEGMENT_WEIGHT_MAX, error);

	if (result == 0)
		rank->weight = (uint16_t)weight;
	return result;
}

int option_policy(struct segment_rank *rank, const char *text, struct error *error)
{
	int result = policy_parse(rank, text, error);

	if (result < 0)
		error_reword(error, "--policy %.40s: %.200s", text, error->reason);
	return result;
}

int option_lend(struct segment_lending *lending, const char *text, struct error *error)
{
	double us = SEGMENT_LEND_USUAL_US;
	bool is_off = text && strcmp(text, "off") == 0;

	if (text && !is_off && (!quota_parse_time(&us, text) || us < SEGMENT_LEND_MIN_US || us > SEGMENT_LEND_MAX_US))
		return error_set(error, "--lend=%.40s: must be 100us-1s, such as 2ms, or 'off'", text);
	lending->lend_us = is_off ? SEGMENT_LEND_OFF : (uint32_t)(us + 0.5);
	return 0;
}

int option_borrow(struct segment_lending *lending, const char *text, struct error *error)
{
	bool is_off = text && strcmp(text, "off") == 0, is_all = !text || strcmp(text, "all") == 0;
	struct tpcset set = segment_borrow_all;
	int result = is_off || is_all ? 0 : tpcset_parse_list(&set, text, TPCSET_MAX, "TPC", error);

	lending->borrows = is_off ? SEGMENT_BORROW_OFF : SEGMENT_BORROW_SET;
	lending->borrow = set;
	if (result < 0)
		error_reword(error, "--borrow=%.40s: %.200s", text, error->reason);
	return result;
}

static int parse_seconds(double *seconds, const char *option, const char *text, struct error *error)
{
	char *end;

	*seconds = strtod(text, &end);
	if (end == text || *end != '\0' || !(*seconds >= SECONDS_MIN && *seconds <= SECONDS_MAX))
		return error_set(error, "%s%.40s: must be 0.1-86400 seconds", option, text);
	return 0;
}

int option_watch(double *seconds, const char *text, struct error *error)
{
	*seconds = WATCH_SECONDS;
	return text ? parse_seconds(seconds, "--watch=", text, error) : 0;
}

int option_delay(double *seconds, const char *text, struct error *error)
{
	return parse_seconds(seconds, "--delay ", text, error);
}

int option_format(enum metrics_format *format, const char *text, struct error *error)
{
	int value = *format, result = parse_word(&value, &format_words, text, error);

	*format = (enum metrics_format)value;
	return result;
}

int option_pid(pid_t *pid, const char *text, struct error *error)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < 1 || number > INT_MAX)
		return error_set(error, "pid '%.40s': not a process id", text);
	*pid = (pid_t)proc_status((pid_t)number, "Tgid:", (uint64_t)number);
	return 0;
}
