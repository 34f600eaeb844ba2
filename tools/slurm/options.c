#include "plugin.h"

#include "common.h"

#include <stdio.h>
#include <string.h>

static struct options given;

const struct options *options_given(void)
{
	return &given;
}

int options_parse_tpcs(struct options *options, const char *text)
{
	char digits[16];
	size_t length = strlen(text);
	bool is_percent = length > 0 && text[length - 1] == '%';

	if (length >= sizeof digits)
		return -1;
	snprintf(digits, sizeof digits, "%.*s", (int)(length - is_percent), text);
	options->unit = is_percent ? OPTIONS_PERCENT : OPTIONS_TPCS;
	return number_parse(&options->number, digits, 1, is_percent ? 100 : NVTASKSET_TPCS_MAX);
}

int options_parse_gpcs(struct options *options, const char *text)
{
	options->unit = OPTIONS_GPCS;
	return number_parse(&options->number, text, 1, 16);
}

int options_parse_memory(struct options *options, const char *text)
{
	static const char units[] = "MGT";
	const char *unit = text[0] ? strchr(units, text[strlen(text) - 1]) : NULL;
	char digits[16];
	unsigned int number;

	if (!unit || strlen(text) >= sizeof digits)
		return -1;
	snprintf(digits, sizeof digits, "%.*s", (int)strlen(text) - 1, text);
	if (number_parse(&number, digits, 1, 1 << 20) < 0)
		return -1;
	options->memory = (uint64_t)number << (20 + 10 * (unit - units));
	return 0;
}

static const struct {
	const char *name, *value, *text, *wanted;
	int (*parse)(struct options *options, const char *text);
} rows[] = {
	{"tpcs", "N|P%", "run in N TPCs of a GPU on each node, or in P percent of its TPCs, that no other job has",
         "a number of TPCs from 1 on, or a part of a GPU such as 25%", options_parse_tpcs},
	{"gpcs", "N", "the same with N whole GPCs; may fail at the start, and the job is requeued",
         "a number of GPCs from 1 on", options_parse_gpcs},
	{"gpu-memory", "SIZE", "at most so much memory of each GPU, such as 2G, for jobs with shards",
         "a whole number and M, G or T, such as 512M or 2G", options_parse_memory},
};

/* In the job's node, the text is a user's: a reason is one line. */
static int take(int row, const char *text, int is_remote)
{
	struct options parsed = given;
	struct nvtaskset_error error;
	int result = 0;

	(void)is_remote;
	if (!text || rows[row].parse(&parsed, text) < 0)
		result = reason_set(&error, NVTASKSET_ERROR_INVALID, "--%s=%.40s: wants %s", rows[row].name,
		                    text ? text : "", rows[row].wanted);
	else if (given.unit != OPTIONS_NONE && (given.unit == OPTIONS_GPCS) != (parsed.unit == OPTIONS_GPCS))
		result = reason_set(&error, NVTASKSET_ERROR_INVALID, "--tpcs and --gpcs: give one of them");
	else
		given = parsed;
	if (result < 0)
		slurm_error("nvtaskset: %s", error.reason);
	return result;
}

int options_register(spank_t spank)
{
	for (int row = 0; row < (int)(sizeof rows / sizeof *rows); row++) {
		struct spank_option option = {(char *)rows[row].name, (char *)rows[row].value, (char *)rows[row].text,
		                              1, row, take};

		if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
			slurm_error("nvtaskset: --%s: Slurm does not take the option", rows[row].name);
			return -1;
		}
	}
	return 0;
}

int options_check(const struct options *options, unsigned int has, unsigned int all, struct nvtaskset_error *error)
{
	unsigned int wanted = options->number;

	if (options->memory > 0 && has == 0)
		return reason_set(error, NVTASKSET_ERROR_INVALID,
		                  "--gpu-memory was given, and the job has no shards: a whole GPU is not divided");
	if (options->unit == OPTIONS_NONE || (options->unit == OPTIONS_GPCS && has > 0))
		return 0;
	if (options->unit == OPTIONS_PERCENT)
		wanted = (all * options->number + 99) / 100;
	if (has == wanted)
		return 0;
	return has == 0 ? reason_set(error, NVTASKSET_ERROR_INVALID, "--%s was given, and the job has no shards: this "
	                                                             "cluster lacks nvtaskset's job_submit.lua, which "
	                                                             "asks for them; use --gres=shard:N",
	                             options->unit == OPTIONS_GPCS ? "gpcs" : "tpcs")
	                : reason_set(error, NVTASKSET_ERROR_INVALID, "--tpcs asks for %u TPCs, and the job has %u: "
	                                                             "steps have what their job has, and the count is "
	                                                             "given once", wanted, has);
}
