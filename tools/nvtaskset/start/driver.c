#include "driver.h"

#include "base/driver_names.h"
#include "base/path.h"
#include "elf_file.h"
#include "loader_cache.h"

#include <glob.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- our own library ---------------------------------------------------------------------------------------------- */

bool start_is_our_library(const char *path)
{
	const struct elf_note note = ELF_NOTE;
	char beginning[ELF_NOTE_WITHIN];
	int file = elf_file_open(path);
	ssize_t size = file >= 0 ? read(file, beginning, sizeof beginning) : 0;

	if (file >= 0)
		close(file);
	return size > 0 && memmem(beginning, (size_t)size, &note, sizeof note) != NULL;
}

static bool own_directory_is(char directory[PATH_MAX], const char *parent, const char *name)
{
	char library[PATH_MAX];

	return path_join(directory, parent, name) && path_join(library, directory, DRIVER_NAME) &&
	       start_is_our_library(library);
}

int start_library_directory(char directory[PATH_MAX], struct error *error)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

	if (length < 0)
		return error_set_errno(error, "/proc must be mounted");
	self[length] = '\0';
	if (!own_directory_is(directory, dirname(self), "lib") &&
	    !own_directory_is(directory, dirname(self), "lib/nvtaskset"))
		return error_set(error, "our library " DRIVER_NAME " is neither beside the command nor in "
		                        "../lib/nvtaskset: install nvtaskset again");
	return 0;
}

/* --- the driver's library ----------------------------------------------------------------------------------------- */

/* Directories where packages and containers put the driver: NVIDIA's container images, Debian, Red Hat, WSL, NixOS,
 * Jetson, and last the toolkit's compatibility package. */
static const char *const usual_directories[] = {
	"/usr/local/nvidia/lib64",
	"/usr/local/nvidia/lib",
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/usr/lib64",
	"/usr/lib",
	"/usr/lib/wsl/lib",
	"/run/opengl-driver/lib",
	"/usr/lib/aarch64-linux-gnu/nvidia",
	"/usr/lib/aarch64-linux-gnu/tegra",
	"/usr/local/cuda/compat",
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* A CUDA toolkit has stub libraries: they have the driver's name, and their functions do nothing. */
static bool is_driver(const char *path)
{
	return elf_file_is_library(path) && !strstr(path, "/stubs/") && !start_is_our_library(path);
}

bool driver_find_in_list(const struct library_path *list, char path[PATH_MAX])
{
	return library_path_find(list, DRIVER_NAME, is_driver, path);
}

static bool find_in_usual_directories(char path[PATH_MAX])
{
	bool found = false;

	for (size_t i = 0; i < COUNT(usual_directories) && !found; i++)
		found = library_path_find_in(usual_directories[i], DRIVER_NAME, is_driver, path);
	return found;
}

/* The name for programs, or else the name in NVIDIA's package. */
static bool find_file(const char *directory, char path[PATH_MAX])
{
	char pattern[PATH_MAX];
	bool found = path_join(path, directory, DRIVER_NAME) && is_driver(path);
	glob_t files = {.gl_pathc = 0};

	if (!found && path_join(pattern, directory, DRIVER_OTHER_NAME ".[0-9]*") &&
	    glob(pattern, 0, NULL, &files) == 0) {
		for (size_t i = 0; i < files.gl_pathc && !found; i++)
			found = is_driver(files.gl_pathv[i]) &&
			        snprintf(path, PATH_MAX, "%s", files.gl_pathv[i]) < PATH_MAX;
	}
	globfree(&files);
	return found;
}

bool driver_find_installed(const char *directory, char path[PATH_MAX])
{
	bool found = find_file(directory, path);

	for (size_t i = 0; i < COUNT(usual_directories) && !found; i++)
		found = find_file(usual_directories[i], path);
	return found;
}

static int use_named(const char *named, char path[PATH_MAX], struct error *error)
{
	if (access(named, R_OK) < 0)
		return error_set_errno(error, "NVTASKSET_DRIVER=%.200s", named);
	if (!is_driver(named))
		return error_set(error, "NVTASKSET_DRIVER=%.200s: not a driver library", named);
	if (!realpath(named, path))
		return error_set_errno(error, "NVTASKSET_DRIVER=%.200s", named);
	return 0;
}

/* COMMAND may change its working directory. */
static int make_absolute(char path[PATH_MAX], struct error *error)
{
	char relative[PATH_MAX];

	if (path[0] == '/')
		return 0;
	strcpy(relative, path);
	if (!realpath(relative, path))
		return error_set_errno(error, "%.200s", relative);
	return 0;
}

static bool is_driver_for_cpu(const char *path)
{
	return library_path_suits_cpu(path) && is_driver(path);
}

bool driver_find_in_cache(const char *name, char path[PATH_MAX])
{
	return loader_cache_find(LOADER_CACHE, name, is_driver_for_cpu, path);
}

int driver_find(const struct library_path *first, char path[PATH_MAX], struct error *error)
{
	const struct library_path environment = {.directories = getenv("LD_LIBRARY_PATH")};
	const char *named = getenv("NVTASKSET_DRIVER");

	if (named && *named)
		return use_named(named, path, error);
	if (!driver_find_in_list(first ? first : &environment, path) &&
	    !driver_find_in_cache(DRIVER_NAME, path) && !find_in_usual_directories(path))
		return error_set(error, "no NVIDIA driver library (" DRIVER_NAME ") on this machine: install the "
		                        "driver, or name the file with NVTASKSET_DRIVER");
	return make_absolute(path, error);
}

/* --- the driver in LD_LIBRARY_PATH -------------------------------------------------------------------------------- */

#define VARIABLE "LD_LIBRARY_PATH="

/* Returns the value if the line sets the variable, else NULL. The value may be in quotes, behind "export ". */
static const char *value_in(char *line)
{
	char *name = strncmp(line, "export ", 7) == 0 ? line + 7 : line;
	char *value = NULL;

	if (strncmp(name, VARIABLE, sizeof VARIABLE - 1) == 0) {
		value = name + sizeof VARIABLE - 1;
		value += strspn(value, "\"'");
		value[strcspn(value, "\"'\n")] = '\0';
	}
	return value;
}

/* Searches a file with a variable to a line; `end` ends each line. */
static bool find_in_file(struct driver_bypass *bypass, const char *path, int end)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (file && !found && getdelim(&line, &size, end, file) > 0) {
		const struct library_path list = {.directories = value_in(line)};

		found = driver_find_in_list(&list, bypass->driver);
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

bool driver_find_bypass(struct driver_bypass *bypass)
{
	const struct library_path own = {.directories = getenv("LD_LIBRARY_PATH")};
	bool found = true;

	if (driver_find_in_list(&own, bypass->driver))
		bypass->where = "in this environment";
	else if (find_in_file(bypass, "/etc/environment", '\n'))
		bypass->where = "in /etc/environment";
	else if (find_in_file(bypass, "/proc/1/environ", '\0'))
		bypass->where = "of process 1";
	else
		found = false;
	return found;
}
