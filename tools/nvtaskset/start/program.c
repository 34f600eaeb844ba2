#include "program.h"

#include "base/path.h"
#include "elf_file.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DEFAULT_PATH "/bin:/usr/bin" /* as in execvp */
#define LINE_BYTES 256               /* the kernel reads this much of a #! line */
#define INTERPRETERS 4               /* the kernel follows this many scripts for scripts */

/* --- finding the file --------------------------------------------------------------------------------------------- */

static bool is_executable(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool is_there(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

static bool find_in_path(const char *name, char path[PATH_MAX], bool suits(const char *))
{
	const char *directories = getenv("PATH");
	bool found = false, more = true;

	if (!directories)
		directories = DEFAULT_PATH;
	/* An empty entry is the current directory. An empty PATH is one empty entry. */
	while (more && !found) {
		size_t length = strcspn(directories, ":");

		found = path_join_part(path, length ? directories : ".", length ? length : 1, name) && suits(path);
		more = directories[length] != '\0';
		directories += length + more;
	}
	return found;
}

static bool find_program(const char *command, char path[PATH_MAX], bool suits(const char *))
{
	if (!strchr(command, '/'))
		return *command && find_in_path(command, path, suits);
	return snprintf(path, PATH_MAX, "%s", command) < PATH_MAX && suits(path);
}

/* --- #! ------------------------------------------------------------------------------------------- */

/* The path of a script becomes the path of the interpreter. False if the file is no script. */
static bool follow_interpreter(char path[PATH_MAX], const char *head)
{
	size_t start = 2 + strspn(head + 2, " \t");
	size_t length = strcspn(head + start, " \t\n");

	if (head[0] != '#' || head[1] != '!' || length == 0)
		return false;
	memcpy(path, head + start, length);
	path[length] = '\0';
	return true;
}

/* --- privileges ----------------------------------------------------------------------------------- */

static bool has_capabilities(const char *path)
{
	struct {
		uint32_t magic; /* all members are little-endian, like our architectures */
		uint32_t permitted;
		uint32_t inheritable;
		uint32_t permitted_upper;
		uint32_t inheritable_upper;
		uint32_t root;
	} capabilities = {.magic = 0};

	return getxattr(path, "security.capability", &capabilities, sizeof capabilities) > 0 &&
	       (capabilities.permitted != 0 || capabilities.permitted_upper != 0);
}

/* Whether the process or the mount forbids the file to give privileges. */
static bool grants_nothing(const char *path)
{
	struct statvfs mount;

	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	       (statvfs(path, &mount) == 0 && (mount.f_flag & ST_NOSUID));
}

/* Whether the kernel would mark the exec as secure (AT_SECURE): real and effective ids differ, or with capabilities. */
static enum program_trouble examine_privileges(const char *command, const char *path, struct error *error)
{
	struct stat status;
	const char *why = NULL;

	if (stat(path, &status) < 0 || grants_nothing(path))
		return PROGRAM_FINE;
	if ((status.st_mode & S_ISUID) && status.st_uid != getuid())
		why = "set-user-ID";
	else if ((status.st_mode & S_ISGID) && (status.st_mode & S_IXGRP) && status.st_gid != getgid())
		why = "set-group-ID";
	else if (getuid() != 0 && has_capabilities(path))
		why = "file capabilities";
	if (!why)
		return PROGRAM_FINE;
	error_set(error, "%.100s: runs with other privileges than yours (%s), and so without our library: start "
	                 "nvtaskset with those privileges", command, why);
	return PROGRAM_PRIVILEGED;
}

/* --- the file ------------------------------------------------------------------------------------- */

static enum program_trouble examine_elf(const char *command, int file, const Elf64_Ehdr *header, bool *is_linker,
                                        struct error *error)
{
	char linker[PATH_MAX];
	enum program_trouble trouble = PROGRAM_UNREACHABLE;

	*is_linker = elf_file_is_native(header) && elf_file_is_linker(file, header);
	if (!elf_file_is_native(header))
		error_set(error, "%.100s: not a program for " ELF_FILE_MACHINE_NAME ", which our library is for",
		          command);
	else if (!*is_linker && !elf_file_linker(file, header, linker))
		error_set(error, "%.100s: statically linked: it does not load our library", command);
	else if (!*is_linker && !strstr(linker, "/ld-linux"))
		error_set(error, "%.100s: its dynamic linker is %.100s, and our library needs glibc's", command,
		          linker);
	else
		trouble = PROGRAM_FINE;
	return trouble;
}

union head {
	char text[LINE_BYTES + 1];
	Elf64_Ehdr elf;
};

static enum program_trouble examine_file(const char *command, char path[PATH_MAX], bool *is_linker, unsigned int depth,
                                         struct error *error)
{
	enum program_trouble trouble = PROGRAM_FINE;
	union head head = {.text = ""};
	int file = elf_file_open(path);
	ssize_t size = file >= 0 ? read(file, head.text, sizeof head.text - 1) : 0;

	if (size >= (ssize_t)sizeof head.elf && memcmp(head.text, ELFMAG, SELFMAG) == 0)
		trouble = examine_elf(command, file, &head.elf, is_linker, error);
	else if (size > 0 && depth < INTERPRETERS && follow_interpreter(path, head.text))
		trouble = examine_file(command, path, is_linker, depth + 1, error);
	/* The words of a script are not the interpreter's. */
	*is_linker = *is_linker && depth == 0;
	if (file >= 0)
		close(file);
	return trouble;
}

/* --- ld.so as COMMAND ----------------------------------------------------------------------------- */

static bool takes_word(const char *option)
{
	static const char *const options[] = {
		"--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0", "--glibc-hwcaps-prepend",
		"--glibc-hwcaps-mask",
	};
	bool takes = false;

	for (size_t i = 0; i < sizeof options / sizeof options[0] && !takes; i++)
		takes = strcmp(option, options[i]) == 0;
	return takes;
}

/* Goes from ld.so to PROGRAM. False without PROGRAM. */
static bool skip_linker(struct program *program)
{
	char **word = program->words + 1;

	for (; *word && strncmp(*word, "--", 2) == 0 && (!takes_word(*word) || word[1]);
	     word += 1 + takes_word(*word)) {
		if (strcmp(*word, "--library-path") == 0)
			program->linker_path = word + 1;
	}
	if (*word)
		program->words = word;
	return *word != NULL;
}

struct library_path program_search_path(const struct program *program)
{
	return (struct library_path){
		.directories = program->linker_path ? *program->linker_path : getenv("LD_LIBRARY_PATH"),
		.origin = program->origin[0] ? program->origin : NULL,
	};
}

int program_put_first(const struct program *program, const char *directory, struct error *error)
{
	char *both = NULL;

	char **path = program->linker_path;

	if (path && asprintf(&both, "%s%s%s", directory, **path ? ":" : "", *path) < 0)
		return error_set(error, "--library-path: no memory");
	if (both)
		*path = both;
	return 0;
}

/* --- COMMAND ------------------------------------------------------------------------------------------------------ */

/* Why execvp would fail. In PATH, a file that may not be executed tells more than a missing file. */
static int why_absent(const char *command)
{
	char path[PATH_MAX];
	int why = EACCES;

	if (strchr(command, '/'))
		why = access(command, X_OK) < 0 ? errno : EACCES;
	else if (!find_program(command, path, is_there))
		why = ENOENT;
	return why;
}

enum program_trouble program_examine(char **command, struct program *program, struct error *error)
{
	char path[PATH_MAX];
	enum program_trouble trouble = PROGRAM_FINE;
	bool is_linker = false;

	*program = (struct program){.words = command};
	if (!find_program(command[0], path, is_executable)) {
		errno = why_absent(command[0]);
		return PROGRAM_ABSENT;
	}
	trouble = examine_file(command[0], path, &is_linker, 0, error);
	/* For a script, `path` is now the interpreter: the interpreter's privileges count. */
	if (examine_privileges(command[0], path, error) == PROGRAM_PRIVILEGED)
		trouble = PROGRAM_PRIVILEGED;
	if (!realpath(is_linker && skip_linker(program) ? program->words[0] : path, program->origin))
		program->origin[0] = '\0';
	dirname(program->origin);
	if (handover_examine(program->words, error))
		trouble = PROGRAM_ELSEWHERE;
	return trouble;
}
