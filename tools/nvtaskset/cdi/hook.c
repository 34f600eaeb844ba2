#include "inside.h"

#include "base/path.h"
#include "base/proc.h"
#include "show/containers.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the container ------------------------------------------------------------------------------------------- */

/* Told by the runtime, on standard input and in the bundle. */
struct told {
	struct container container;
	char root[PATH_MAX];
	const char *search_path; /* LD_LIBRARY_PATH of the first program, or "" */
	json_t *configuration;
};

static void take_text(char to[CONTAINER_TEXT], const char *text)
{
	if (text)
		snprintf(to, CONTAINER_TEXT, "%s", text);
}

/* containerd and CRI-O name a pod's parts in annotations. */
static void take_names(struct container *container, const json_t *annotations)
{
	static const char *const names[][3] = {
		{"io.kubernetes.cri.sandbox-name", "io.kubernetes.cri.sandbox-namespace",
		 "io.kubernetes.cri.container-name"},
		{"io.kubernetes.pod.name", "io.kubernetes.pod.namespace", "io.kubernetes.container.name"},
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		take_text(container->pod, json_string_value(json_object_get(annotations, names[i][0])));
		take_text(container->namespace, json_string_value(json_object_get(annotations, names[i][1])));
		take_text(container->name, json_string_value(json_object_get(annotations, names[i][2])));
	}
}

static const char *search_path_of(const json_t *variables)
{
	static const char name[] = "LD_LIBRARY_PATH=";
	const char *found = "";
	const json_t *variable;
	size_t i;

	json_array_foreach(variables, i, variable) {
		const char *text = json_string_value(variable);

		if (text && strncmp(text, name, sizeof name - 1) == 0)
			found = text + sizeof name - 1;
	}
	return found;
}

static int read_bundle(struct told *told, const char *bundle, struct error *error)
{
	char path[PATH_MAX];
	const char *root;

	told->configuration = path_join(path, bundle, "config.json") ? json_load_file(path, 0, NULL) : NULL;
	root = json_string_value(json_object_get(json_object_get(told->configuration, "root"), "path"));
	if (!root)
		return error_set(error, "%.200s: names no root", path);
	if (root[0] == '/' ? snprintf(told->root, PATH_MAX, "%s", root) >= PATH_MAX
	                   : !path_join(told->root, bundle, root))
		return error_set(error, "%.200s: the path is too long", root);
	told->search_path = search_path_of(json_object_get(json_object_get(told->configuration, "process"), "env"));
	take_names(&told->container, json_object_get(told->configuration, "annotations"));
	return 0;
}

/* Our parent is the container's first process. /proc is the host's. */
static void find_process(struct container *container)
{
	container->pid = (pid_t)proc_status(0, "PPid:", 0);
	container->started = proc_started(container->pid);
}

static int read_state(struct told *told, struct error *error)
{
	json_t *state = json_loadf(stdin, 0, NULL);
	const char *bundle = json_string_value(json_object_get(state, "bundle"));
	const char *id = json_string_value(json_object_get(state, "id"));
	int result = -1;

	if (!bundle || !id || !container_id_is_valid(id)) {
		error_set(error, "standard input is not the state of a container: a runtime calls this as a hook");
	} else {
		take_text(told->container.id, id);
		find_process(&told->container);
		result = read_bundle(told, bundle, error);
	}
	json_decref(state);
	return result;
}

/* --- the hook ------------------------------------------------------------------------------------------------ */

/* Beside the group's file. */
static void note(struct container *container, const char *group, const char *trouble)
{
	char notes[PATH_MAX];
	const char *name = strrchr(group, '/');
	int directory;

	snprintf(notes, sizeof notes, "%.*s/" CONTAINERS_NAME, (int)(name - group), group);
	directory = open(notes, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	take_text(container->device, name + 1);
	snprintf(container->trouble, sizeof container->trouble, "%s", trouble);
	if (directory >= 0) {
		container_write(directory, container);
		close(directory);
	}
}

bool hook_is_me(const char *name)
{
	return name && strcmp(name, HOOK_NAME) == 0;
}

/* Sets the signals that the runtime may have changed: the end of a child and the bound in time come by signals. */
static void take_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int hook_main(int count, char **arguments)
{
	static struct told told; /* large */
	struct error error = {.reason = ""};
	bool is_strict = count == 4 && strcmp(arguments[3], "strict") == 0;
	int result = -1;

	closefrom(STDERR_FILENO + 1);
	take_signals();
	if (count != 4 || arguments[1][0] != '/')
		error_set(&error, "an argument is missing: a runtime calls this as a hook");
	else if (read_state(&told, &error) == 0)
		result = image_put_in_front(told.root, arguments[2], is_strict ? "" : told.search_path, &error);
	if (result < 0)
		fprintf(stderr, "nvtaskset: %s: %s\n", error.reason,
		        is_strict ? "--strict does not start it" : "its programs run unrestricted");
	if (told.container.id[0])
		note(&told.container, arguments[1], error.reason);
	json_decref(told.configuration);
	return result < 0 && is_strict ? EXIT_FAILURE : EXIT_SUCCESS;
}
