#include "config.h"

#include "common.h"

#include <stdio.h>
#include <string.h>

#ifndef LIBRARY_DIRECTORY
#define LIBRARY_DIRECTORY "/usr/local/lib/nvtaskset"
#endif

static const struct config defaults = {
	.directory = "/var/spool/nvtaskset",
	.library = LIBRARY_DIRECTORY,
	.mps = "no",
	.wait = 60,
	.requeues = 3,
	.strategy = NVTASKSET_DISTRIBUTED,
};

/* --- kinds of values ---------------------------------------------------------------------------------------------- */

static int take_path(void *to, const char *value)
{
	return value[0] == '/' && strlen(value) < PATH_MAX ? (strcpy(to, value), 0) : -1;
}

static int take_path_or_none(void *to, const char *value)
{
	return strcmp(value, "none") == 0 ? (*(char *)to = '\0', 0) : take_path(to, value);
}

static int take_path_or_no(void *to, const char *value)
{
	return strcmp(value, "yes") == 0 ? (*(char *)to = '\0', 0)
	       : strcmp(value, "no") == 0 ? (strcpy(to, value), 0) : take_path(to, value);
}

static int take_list(void *to, const char *value)
{
	return *value && strlen(value) < PATH_MAX ? (strcpy(to, value), 0) : -1;
}

static int take_seconds(void *to, const char *value)
{
	return number_parse(to, value, 0, 3600);
}

static int take_times(void *to, const char *value)
{
	return number_parse(to, value, 0, 1000);
}

static int take_strategy(void *to, const char *value)
{
	enum nvtaskset_strategy *strategy = to;

	*strategy = strcmp(value, "packed") == 0 ? NVTASKSET_PACKED : NVTASKSET_DISTRIBUTED;
	return *strategy == NVTASKSET_PACKED || strcmp(value, "distributed") == 0 ? 0 : -1;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

static const struct key {
	const char *name;
	size_t member;
	int (*take)(void *to, const char *value);
	const char *wanted;
} keys[] = {
	{"directory", offsetof(struct config, directory), take_path, "an absolute path"},
	{"library", offsetof(struct config, library), take_path_or_none, "an absolute path, or none"},
	{"mps", offsetof(struct config, mps), take_path_or_no, "yes, no, or an absolute path"},
	{"gpus", offsetof(struct config, gpus), take_list, "bus ids with commas between them"},
	{"wait", offsetof(struct config, wait), take_seconds, "0 to 3600 seconds"},
	{"requeues", offsetof(struct config, requeues), take_times, "0 to 1000"},
	{"strategy", offsetof(struct config, strategy), take_strategy, "packed or distributed"},
};

#define KEYS (sizeof keys / sizeof *keys)

static const struct key *find_key(const char *argument)
{
	size_t length = strcspn(argument, "=");

	for (size_t i = 0; i < KEYS; i++)
		if (argument[length] == '=' && strlen(keys[i].name) == length &&
		    memcmp(keys[i].name, argument, length) == 0)
			return &keys[i];
	return NULL;
}

int config_parse(struct config *config, int count, char **arguments, struct nvtaskset_error *error)
{
	bool given[KEYS] = {false};

	*config = defaults;
	for (int i = 0; i < count; i++) {
		const struct key *key = find_key(arguments[i]);

		if (!key)
			return reason_set(error, NVTASKSET_ERROR_INVALID, "plugstack.conf: '%.80s' is none of "
			                                                  "directory=, library=, mps=, gpus=, wait=, "
			                                                  "requeues=, strategy=", arguments[i]);
		if (given[key - keys])
			return reason_set(error, NVTASKSET_ERROR_INVALID, "plugstack.conf: %s= is there twice",
			                  key->name);
		given[key - keys] = true;
		if (key->take((char *)config + key->member, strchr(arguments[i], '=') + 1) < 0)
			return reason_set(error, NVTASKSET_ERROR_INVALID, "plugstack.conf: '%.80s': wants %s",
			                  arguments[i], key->wanted);
	}
	return 0;
}

int config_directory(const struct config *config, const char *node, char directory[PATH_MAX],
                     struct nvtaskset_error *error)
{
	const char *place = strstr(config->directory, "%n");

	if (place && (!node || !*node || strchr(node, '/')))
		return reason_set(error, NVTASKSET_ERROR_OTHER,
		                  "%.200s: Slurm does not say here what the node's name is", config->directory);
	int length = place ? snprintf(directory, PATH_MAX, "%.*s%s%s", (int)(place - config->directory),
	                              config->directory, node, place + 2)
	                   : snprintf(directory, PATH_MAX, "%s", config->directory);

	return length < PATH_MAX ? 0
	                         : reason_set(error, NVTASKSET_ERROR_INVALID, "%.200s: too long", config->directory);
}
