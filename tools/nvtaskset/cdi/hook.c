#include "hook.h"

#include "base/driver_names.h"
#include "base/path.h"
#include "base/proc.h"
#include "inside.h"
#include "show/containers.h"
#include "start/driver.h"
#include "start/loader_cache.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFIGURATION_DIRECTORY "/etc/ld.so.conf.d"
#define CONFIGURATION (CONFIGURATION_DIRECTORY "/00-000-nvtaskset.conf")
#define CONFIGURATION_TOP "/etc/ld.so.conf"
#define CACHE "/etc/ld.so.cache"
#define LIBRARY_MOST (64u << 20) /* bytes of a libc */
#define LDCONFIG_SECONDS 20 /* less than the runtime waits for us */
#define STAT_STARTED 22

/* --- the container -------------------------------------------------------------------------------------------------------- */

/* What the runtime tells of it, on standard input and in its bundle. */
struct told {
	struct container container;
	char root[PATH_MAX];
	const char *search_path; /* LD_LIBRARY_PATH of its first program, or "" */
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
		{"io.kubernetes.cri.sandbox-name", "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.container-name"},
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
	if (root[0] == '/' ? snprintf(told->root, PATH_MAX, "%s", root) >= PATH_MAX : !path_join(told->root, bundle, root))
		return error_set(error, "%.200s: the path is too long", root);
	told->search_path = search_path_of(json_object_get(json_object_get(told->configuration, "process"), "env"));
	take_names(&told->container, json_object_get(told->configuration, "annotations"));
	return 0;
}

/* The container's first process is the one that has started us, or waits for us: /proc is still the host's. */
static void find_process(struct container *container)
{
	char stat[PROC_STAT_TEXT];

	container->pid = (pid_t)proc_status(0, "PPid:", 0);
	proc_stat_read(container->pid, stat);
	container->started = proc_stat_field(stat, STAT_STARTED);
}

static int read_state(struct told *told, struct error *error)
{
	json_t *state = json_loadf(stdin, 0, NULL);
	const char *bundle = json_string_value(json_object_get(state, "bundle")), *id = json_string_value(json_object_get(state, "id"));
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

/* --- which glibc ------------------------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
#define LINKER "/lib64/ld-linux-x86-64.so.2" /* so the ABI says */
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define LINKER "/lib/ld-linux-aarch64.so.1"
#define MACHINE_NAME "aarch64"
#else
#error "where is the dynamic linker of this machine?"
#endif

/* The x of the last version GLIBC_2.x that a library defines or needs; -1: none, or no library of this size and class. Read, not
 * mapped: it may get shorter. */
static int glibc_of(const char *path, unsigned int *machine)
{
	static const char prefix[] = "GLIBC_2.";
	const size_t length = sizeof prefix - 1;
	struct stat status;
	int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), newest = -1;
	bool is_one = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < LIBRARY_MOST;
	char *bytes = is_one ? malloc((size_t)status.st_size + 1) : NULL;
	ssize_t size = bytes ? read(file, bytes, (size_t)status.st_size) : 0;
	const char *at = bytes;

	if (size > (ssize_t)sizeof(Elf64_Ehdr) && memcmp(bytes, ELFMAG, SELFMAG) == 0 && bytes[EI_CLASS] == ELFCLASS64) {
		bytes[size] = '\0';
		*machine = ((const Elf64_Ehdr *)(const void *)bytes)->e_machine;
		while ((at = memmem(at, (size_t)(bytes + size - at), prefix, length))) {
			int version = atoi(at += length);

			newest = version > newest ? version : newest;
		}
	}
	free(bytes);
	if (file >= 0)
		close(file);
	return newest;
}

/* The library that ours depends on stands beside the dynamic linker, wherever that leads. */
static int check_glibc(int needed, unsigned int machine, struct error *error)
{
	char linker[PATH_MAX], libc[PATH_MAX];
	unsigned int found_machine = 0;
	int found = realpath(LINKER, linker) && path_join(libc, dirname(linker), "libc.so.6") ? glibc_of(libc, &found_machine) : -1;

	if (found < 0 || found_machine != machine)
		return error_set(error, "the image has no glibc for " MACHINE_NAME ", which our library needs");
	if (found < needed)
		return error_set(error, "the image has glibc 2.%d, and our library needs 2.%d", found, needed);
	return 0;
}

/* --- inside ---------------------------------------------------------------------------------------------------------------- */

/* What was opened outside. */
struct tools {
	int ldconfig, nothing, notes;
	int glibc; /* what our library needs */
	unsigned int machine;
};

static int enter(const char *root, struct error *error)
{
	return chroot(root) == 0 && chdir("/") == 0 ? 0 : error_set_errno(error, "%.200s: the container's root cannot be entered", root);
}

static int write_file(const char *path, const char *text, struct error *error)
{
	unlink(path);
	int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	bool failed = file < 0 || fchmod(file, 0644) < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text);

	if (file >= 0)
		close(file);
	return failed ? error_set_errno(error, "%s cannot be written in the image", path) : 0;
}

/* An image without a configuration gets the usual one. */
static int configure(const char *driver, struct error *error)
{
	mkdir("/etc", 0755);
	mkdir(CONFIGURATION_DIRECTORY, 0755);
	if (access(CONFIGURATION_TOP, F_OK) < 0 && write_file(CONFIGURATION_TOP, "include " CONFIGURATION_DIRECTORY "/*.conf\n", error) < 0)
		return -1;
	unlink(INSIDE_DRIVER);
	if (symlink(driver, INSIDE_DRIVER) < 0)
		return error_set_errno(error, INSIDE_DRIVER " cannot be made in the image");
	return write_file(CONFIGURATION, "# nvtaskset's library stands in front of the CUDA driver's.\n" INSIDE_FRONT "\n", error);
}

/* The host's: the image's own is the image's word, and it may have none. What the image has there may make it wait for ever, so it
 * has an alarm. */
static int make_cache(const struct tools *tools, struct error *error)
{
	char *const arguments[] = {"ldconfig", "-X", "-f", CONFIGURATION_TOP, "-C", CACHE, NULL};
	char *const environment[] = {NULL};
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGALRM, SIG_DFL);
		alarm(LDCONFIG_SECONDS);
		dup2(tools->nothing, STDOUT_FILENO);
		dup2(tools->nothing, STDERR_FILENO);
		fexecve(tools->ldconfig, arguments, environment);
		_exit(EXIT_FAILURE);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return status == 0 ? 0 : error_set(error, "the host's ldconfig failed in the image");
}

static bool accept_any(const char *path)
{
	(void)path;
	return true;
}

static int check_cache(struct error *error)
{
	char found[PATH_MAX];

	return loader_cache_find(CACHE, DRIVER_NAME, accept_any, found) && strcmp(found, INSIDE_FRONT "/" DRIVER_NAME) == 0
	               ? 0
	               : error_set(error, "its " CONFIGURATION_TOP " does not include " CONFIGURATION_DIRECTORY " first");
}

static int put_in_front(const struct tools *tools, const char *driver_directory, struct error *error)
{
	char driver[PATH_MAX];
	int result = check_glibc(tools->glibc, tools->machine, error);

	if (result == 0 && !driver_find_installed(driver_directory, driver))
		result = error_set(error, "no NVIDIA driver is in it: give it a GPU, too (nvidia.com/gpu)");
	if (result < 0)
		return -1;
	result = configure(driver, error) < 0 || make_cache(tools, error) < 0 ? -1 : check_cache(error);
	if (result < 0)
		unlink(CONFIGURATION);
	return result;
}

/* --strict goes before it. */
static int check_search_path(const char *directories, struct error *error)
{
	char path[PATH_MAX];
	int result = 0;

	for (size_t length; *directories && result == 0; directories += length + (directories[length] != '\0')) {
		length = strcspn(directories, ":;");
		if (length > 0 && path_join_part(path, directories, length, DRIVER_NAME) && access(path, F_OK) == 0 && !own_library_is(path))
			result = error_set(error, "LD_LIBRARY_PATH leads to %.150s, and not to our library: clear it, or use --strict", path);
	}
	return result;
}

/* --- the hook --------------------------------------------------------------------------------------------------------------- */

static int prepare(struct tools *tools, const char *group, struct error *error)
{
	char library[PATH_MAX], notes[PATH_MAX];

	if (own_library_directory(library, error) < 0)
		return -1;
	path_join(notes, library, DRIVER_NAME);
	tools->glibc = glibc_of(notes, &tools->machine);
	snprintf(notes, sizeof notes, "%.*s/" CONTAINERS_NAME, (int)(strrchr(group, '/') - group), group);
	tools->notes = open(notes, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tools->nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	tools->ldconfig = open("/sbin/ldconfig.real", O_RDONLY | O_CLOEXEC); /* Ubuntu's is a script */
	if (tools->ldconfig < 0)
		tools->ldconfig = open("/sbin/ldconfig", O_RDONLY | O_CLOEXEC);
	return tools->ldconfig >= 0 ? 0 : error_set_errno(error, "/sbin/ldconfig");
}

bool hook_is_me(const char *name)
{
	return name && strcmp(name, HOOK_NAME) == 0;
}

int hook_main(int count, char **arguments)
{
	static struct told told; /* large */
	struct tools tools = {.notes = -1};
	struct error error = {.reason = ""};
	bool is_strict = count == 4 && strcmp(arguments[3], "strict") == 0;
	int result = -1;

	if (count != 4 || arguments[1][0] != '/')
		error_set(&error, "an argument is missing: a runtime calls this as a hook");
	else if (read_state(&told, &error) == 0 && prepare(&tools, arguments[1], &error) == 0 && enter(told.root, &error) == 0)
		result = put_in_front(&tools, arguments[2], &error);
	if (result == 0 && !is_strict)
		result = check_search_path(told.search_path, &error);
	if (result < 0)
		fprintf(stderr, "nvtaskset: %s: %s\n", error.reason,
		        is_strict ? "--strict does not start it" : "its programs run unrestricted");
	if (tools.notes >= 0 && told.container.id[0]) {
		take_text(told.container.device, strrchr(arguments[1], '/') + 1);
		snprintf(told.container.trouble, sizeof told.container.trouble, "%s", error.reason);
		container_write(tools.notes, &told.container, NULL);
	}
	json_decref(told.configuration);
	return result < 0 && is_strict ? EXIT_FAILURE : EXIT_SUCCESS;
}
