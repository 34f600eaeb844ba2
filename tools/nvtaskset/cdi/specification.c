#include "specification.h"

#include "base/path.h"
#include "cli/replace.h"
#include "inside.h"
#include "mps/client.h"
#include "state/group/group.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOOK_SECONDS 60 /* the runtime waits no longer */

int specification_check_name(const char *name, struct error *error)
{
	size_t length = strlen(name);

	if (group_name_is_valid(name) && isalnum((unsigned char)name[0]) && isalnum((unsigned char)name[length - 1]) &&
	    !strpbrk(name, "@+"))
		return 0;
	return error_set(error, "%.80s: a device's name begins and ends with a letter or a digit, has letters, digits "
	                        "and ._:-, at most %d, and is no number alone", name, GROUP_NAME_MAX - 1);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static json_t *devices_of(const struct specification *specification)
{
	return json_object_get(specification->root, "devices");
}

static bool is_ours(const json_t *root)
{
	const char *kind = json_string_value(json_object_get(root, "kind"));

	return kind && strcmp(kind, CDI_KIND) == 0 && json_is_array(json_object_get(root, "devices"));
}

static int find_path(struct specification *specification, const char *path, struct error *error)
{
	size_t length = strlen(path);

	if (length < sizeof "/.json" || length >= PATH_MAX - 64 || path[0] != '/' ||
	    strcmp(path + length - 5, ".json") != 0)
		return error_set(error, "%.200s: must be an absolute path that ends in .json: runtimes read no other "
		                        "files", path);
	strcpy(specification->path, path);
	snprintf(specification->directory, sizeof specification->directory, "%.*s", (int)length - 5, path);
	return 0;
}

int specification_open(struct specification *specification, const char *path, struct error *error)
{
	*specification = (struct specification){.root = NULL};
	if (find_path(specification, path ? path : CDI_FILE, error) < 0)
		return -1;
	FILE *file = fopen(specification->path, "re");

	if (!file)
		return errno == ENOENT ? 0 : error_set_errno(error, "%.200s", specification->path);
	specification->root = json_loadf(file, 0, NULL);
	fclose(file);
	return is_ours(specification->root)
	               ? 0
	               : error_set(error, "%.200s: not a specification of nvtaskset's: remove it", specification->path);
}

void specification_close(struct specification *specification)
{
	json_decref(specification->root);
	specification->root = NULL;
}

static size_t place_of(const struct specification *specification, const char *name)
{
	const json_t *devices = devices_of(specification);
	size_t place = 0;

	for (; place < json_array_size(devices); place++) {
		const char *other = json_string_value(json_object_get(json_array_get(devices, place), "name"));

		if (other && strcmp(other, name) == 0)
			break;
	}
	return place;
}

json_t *specification_find(const struct specification *specification, const char *name)
{
	return json_array_get(devices_of(specification), place_of(specification, name));
}

/* --- edits of containers ------------------------------------------------------------------------------------------ */

/* A mount gives a container no way out and no rights. */
static json_t *mount(const char *from, const char *to, bool is_writable)
{
	return json_pack("{s:s, s:s, s:[s, s, s, s]}", "hostPath", from, "containerPath", to, "options", "bind",
	                 is_writable ? "rw" : "ro", "nosuid", "nodev");
}

static void __attribute__((format(printf, 2, 3))) add_variable(json_t *environment, const char *format, ...)
{
	char *text = NULL;
	va_list values;

	va_start(values, format);
	if (vasprintf(&text, format, values) >= 0)
		json_array_append_new(environment, json_string(text));
	va_end(values);
	free(text);
}

/* A container without MPS finds no daemon, even in a mount of its own. LD_LIBRARY_PATH is the image's. */
static json_t *environment_of(const struct device *device)
{
	json_t *list = json_array();

	add_variable(list, GROUP_FILE_ENVIRONMENT "=" INSIDE_GROUPS "/%s", device->name);
	add_variable(list, MPS_DIRECTORY_ENVIRONMENT "=%s", device->pipes ? INSIDE_MPS : "/dev/null");
	if (device->pipes)
		add_variable(list, MPS_CONNECTIONS_ENVIRONMENT "=%u", device->connections);
	if (device->pipes && device->priority >= 0)
		add_variable(list, MPS_PRIORITY_ENVIRONMENT "=%d", device->priority);
	if (device->gpus[0])
		add_variable(list, TOPOLOGY_ENVIRONMENT "=%s", device->gpus);
	if (device->hide)
		add_variable(list, "NVTASKSET_HIDE=1");
	if (device->fail_misfits)
		add_variable(list, "NVTASKSET_ON_MISFIT=fail");
	if (device->strict) {
		add_variable(list, "LD_AUDIT=" INSIDE_LIBRARY "/libnvtaskset-audit.so");
		add_variable(list, "NVTASKSET_SHIM=" INSIDE_FRONT "/libcuda.so.1");
		add_variable(list, "NVTASKSET_DRIVER=" INSIDE_DRIVER);
		add_variable(list, "NVTASKSET_STRICT=1");
	}
	return list;
}

/* Runs in the container's mounts, before the container's root is the root. The default environment is the image's. */
static json_t *hook_of(const struct device *device, const char *hook)
{
	return json_pack("{s:s, s:s, s:[s, s, s, s], s:[s], s:i}", "hookName", "createContainer", "path", hook, "args",
	                 HOOK_NAME, device->group, device->driver, device->strict ? "strict" : "", "env",
	                 "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "timeout", HOOK_SECONDS);
}

/* All edits are the device's: a runtime refuses a device without edits. */
static json_t *edits_of(const struct device *device, const char *hook, const char *library, const char *front)
{
	char group[PATH_MAX], pool[PATH_MAX], page[PATH_MAX];
	json_t *mounts = json_array();

	path_join(group, INSIDE_GROUPS, device->name);
	json_array_append_new(mounts, mount(library, INSIDE_LIBRARY, false));
	json_array_append_new(mounts, mount(front, INSIDE_FRONT, false));
	json_array_append_new(mounts, mount(device->group, group, false));
	path_join(pool, INSIDE_POOLS, device->name);
	path_join(page, INSIDE_PAGES, device->name);
	if (device->pool) {
		json_array_append_new(mounts, mount(device->pool->directory, pool, false));
		json_array_append_new(mounts, mount(device->pool->page, page, true));
	}
	if (device->pipes)
		json_array_append_new(mounts, mount(device->pipes, INSIDE_MPS, true));
	return json_pack("{s:o, s:o, s:[o]}", "env", environment_of(device), "mounts", mounts, "hooks",
	                 hook_of(device, hook));
}

/* --- changing ----------------------------------------------------------------------------------------------------- */

int specification_put(struct specification *specification, const struct device *device, const char *hook,
                      const char *library, const char *front, struct error *error)
{
	json_t *new = json_pack("{s:s, s:o}", "name", device->name, "containerEdits",
	                        edits_of(device, hook, library, front));

	if (!specification->root)
		specification->root = json_pack("{s:s, s:s, s:[]}", "cdiVersion", "", "kind", CDI_KIND, "devices");
	json_t *devices = devices_of(specification);
	size_t place = place_of(specification, device->name);
	int result = place < json_array_size(devices) ? json_array_set_new(devices, place, new)
	                                              : json_array_append_new(devices, new);

	return result == 0 ? 0 : error_set(error, "CDI: no memory");
}

void specification_remove(struct specification *specification, const char *name)
{
	json_array_remove(devices_of(specification), place_of(specification, name));
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Before 0.5.0, names begin with a letter. */
static const char *version_of(const struct specification *specification)
{
	const char *version = "0.3.0";
	json_t *device;
	size_t i;

	json_array_foreach(devices_of(specification), i, device) {
		const char *name = json_string_value(json_object_get(device, "name"));

		if (name && isdigit((unsigned char)name[0]))
			version = "0.5.0";
	}
	return version;
}

int specification_write(const struct specification *specification, struct error *error)
{
	if (json_array_size(devices_of(specification)) == 0)
		return unlink(specification->path) == 0 || errno == ENOENT
		               ? 0 : error_set_errno(error, "%.200s", specification->path);
	json_object_set_new(specification->root, "cdiVersion", json_string(version_of(specification)));
	char *text = json_dumps(specification->root, JSON_INDENT(2)), *line = NULL;
	int length = text ? asprintf(&line, "%s\n", text) : -1;
	int result = length >= 0 ? replace_file(specification->path, line, (size_t)length, error)
	                         : error_set(error, "CDI: no memory");

	free(text);
	free(length >= 0 ? line : NULL);
	return result;
}
