#include "library_path.h"

#include "base/path.h"
#include "elf_file.h"
#include "loader_cache.h"

#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#if defined(__x86_64__)
#include <sys/platform/x86.h>
#endif

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* --- subdirectories for this CPU ------------------------------------------------------------------ */

#define HWCAPS "glibc-hwcaps/"

/* glibc's names, the best first. aarch64 has no such names. */
static const struct {
	const char *name;
	int level;
} levels[] = {{"x86-64-v4", 4}, {"x86-64-v3", 3}, {"x86-64-v2", 2}};

#if defined(__x86_64__)
/* As CPU_FEATURE_ACTIVE, which shifts into the sign. */
static bool is_active(unsigned int feature)
{
	unsigned int bit = feature % 128;

	return __x86_get_cpuid_feature_leaf(feature / 128)->active_array[bit / 32] >> bit % 32 & 1;
}

/* As the dynamic linker knows the CPU already: each question to a virtual CPU takes microseconds. */
static int cpu_level(void)
{
	int level = 1;

	if (is_active(x86_cpu_SSSE3) && is_active(x86_cpu_SSE4_2) && is_active(x86_cpu_POPCNT))
		level = 2;
	if (level == 2 && is_active(x86_cpu_AVX2) && is_active(x86_cpu_BMI2) && is_active(x86_cpu_FMA))
		level = 3;
	if (level == 3 && is_active(x86_cpu_AVX512BW) && is_active(x86_cpu_AVX512DQ) && is_active(x86_cpu_AVX512VL))
		level = 4;
	return level;
}
#else
static int cpu_level(void)
{
	return 0;
}
#endif

bool library_path_suits_cpu(const char *path)
{
	const char *directory = strstr(path, "/" HWCAPS);
	bool suits = !directory;

	for (size_t i = 0; i < COUNT(levels) && !suits; i++) {
		const char *name = directory + sizeof "/" HWCAPS - 1;

		suits = strncmp(name, levels[i].name, strlen(levels[i].name)) == 0 && cpu_level() >= levels[i].level;
	}
	return suits;
}

bool library_path_find_in(const char *directory, const char *name, bool (*wanted)(const char *path),
                          char path[PATH_MAX])
{
	bool found = false;

	for (size_t i = 0; i < COUNT(levels) && !found; i++) {
		int length = snprintf(path, PATH_MAX, "%s/" HWCAPS "%s/%s", directory, levels[i].name, name);

		found = cpu_level() >= levels[i].level && length < PATH_MAX && wanted(path);
	}
	return found || (path_join(path, directory, name) && wanted(path));
}

/* --- $ORIGIN, $LIB, $PLATFORM --------------------------------------------------------------------- */

#define TOKENS_MOST 8 /* in an element */

/* Puts the value in place of $NAME and ${NAME}. False if there is no value, or no room. */
static bool put_token(char directory[PATH_MAX], const char *name, const char *value)
{
	char braced[16], plain[16], text[PATH_MAX];
	const char *at = directory;
	bool fits = true;

	snprintf(braced, sizeof braced, "${%s}", name);
	snprintf(plain, sizeof plain, "$%s", name);
	for (int tokens = 0; at && fits && tokens < TOKENS_MOST; tokens++) {
		const char *token = strstr(directory, braced) ? braced : plain;

		at = strstr(directory, token);
		if (at && value)
			fits = snprintf(text, PATH_MAX, "%.*s%s%s", (int)(at - directory), directory, value,
			                at + strlen(token)) < PATH_MAX;
		else
			fits = !at;
		if (at && fits)
			strcpy(directory, text);
	}
	return fits;
}

/* The name of the directory where this process found libc, on Debian with the parent's name. */
static const char *lib_value(char text[PATH_MAX])
{
	static const char debians[] = "/lib/" ELF_FILE_TRIPLET;
	Dl_info libc = {.dli_fname = NULL};
	const char *value = NULL;

	if (dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc) &&
	    snprintf(text, PATH_MAX, "%s", libc.dli_fname) < PATH_MAX) {
		size_t length = strlen(dirname(text));
		bool is_debians = length >= sizeof debians - 1 &&
		                  strcmp(text + length - (sizeof debians - 1), debians) == 0;

		value = is_debians ? debians + 1 : basename(text);
	}
	return value;
}

#define PLATFORMS 2

static bool put_tokens(char directory[PATH_MAX], const char *origin, unsigned int platform)
{
	char lib[PATH_MAX];

	return !strchr(directory, '$') ||
	       (put_token(directory, "ORIGIN", origin) && put_token(directory, "LIB", lib_value(lib)) &&
	        /* With an older glibc, $PLATFORM is "haswell" on some CPUs. */
	        put_token(directory, "PLATFORM", platform == 0 ? (const char *)getauxval(AT_PLATFORM) : "haswell"));
}

/* --- a list --------------------------------------------------------------------------------------- */

bool library_path_find(const struct library_path *list, const char *name, bool (*wanted)(const char *path),
                       char path[PATH_MAX])
{
	const char *text = list->directories;
	bool found = false, more = text && *text;
	char directory[PATH_MAX];

	while (more && !found) {
		size_t length = strcspn(text, ":;");

		for (unsigned int platform = 0; platform < PLATFORMS && length < PATH_MAX && !found; platform++) {
			snprintf(directory, PATH_MAX, "%.*s", length ? (int)length : 1, length ? text : ".");
			found = put_tokens(directory, list->origin, platform) &&
			        library_path_find_in(directory, name, wanted, path);
		}
		more = text[length] != '\0';
		text += length + more;
	}
	return found;
}

/* --- glibc ---------------------------------------------------------------------------------------- */

bool library_path_find_glibc(char path[PATH_MAX])
{
	static const char *const directories[] = {
		"/lib/" ELF_FILE_TRIPLET, "/usr/lib/" ELF_FILE_TRIPLET, "/lib64", "/usr/lib64", "/lib", "/usr/lib",
	};
	bool found = loader_cache_find(LOADER_CACHE, "libc.so.6", elf_file_is_library, path);

	for (size_t i = 0; i < COUNT(directories) && !found; i++)
		found = library_path_find_in(directories[i], "libc.so.6", elf_file_is_library, path);
	return found;
}
