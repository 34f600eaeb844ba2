#include "program.h"

#include "base/path.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
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
#define INTERPRETERS 4               /* the kernel follows this many, if one is a script for another */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#define MACHINE_NAME "aarch64"
#else
#error "which ELF machine is this?"
#endif

/* --- finding it ------------------------------------------------------------------------------------ */

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

static bool find(const char *command, char path[PATH_MAX], bool suits(const char *))
{
	if (!strchr(command, '/'))
		return *command && find_in_path(command, path, suits);
	return snprintf(path, PATH_MAX, "%s", command) < PATH_MAX && suits(path);
}

/* --- #! ---------------------------------------------------------------------------------------------- */

/* Replaces the script's path by its interpreter's. False if the file is no script. */
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

/* --- privileges ---------------------------------------------------------------------------------------- */

static bool has_capabilities(const char *path)
{
	struct {
		uint32_t magic; /* this and all that follows is little-endian, as are our architectures */
		uint32_t permitted;
		uint32_t inheritable;
		uint32_t permitted_upper;
		uint32_t inheritable_upper;
		uint32_t root;
	} capabilities = {.magic = 0};

	return getxattr(path, "security.capability", &capabilities, sizeof capabilities) > 0 &&
	       (capabilities.permitted != 0 || capabilities.permitted_upper != 0);
}

/* Whether executing the file cannot give privileges here: the process or the mount forbids it. */
static bool grants_nothing(const char *path)
{
	struct statvfs mount;

	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
	       (statvfs(path, &mount) == 0 && (mount.f_flag & ST_NOSUID));
}

/* Whether the kernel would mark the exec as secure (AT_SECURE): real and effective ids differ afterwards, or the
 * program gets capabilities. */
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
	error_set(error, "%.100s: runs with other privileges than yours (%s), and so without our library: start nvtaskset "
	                 "with those privileges", command, why);
	return PROGRAM_PRIVILEGED;
}

/* --- the file ------------------------------------------------------------------------------------------ */

/* Finds the dynamic linker that the program names. False if it names none. */
static bool find_linker(int file, const Elf64_Ehdr *header, char linker[PATH_MAX])
{
	bool found = false;

	for (unsigned int i = 0; i < header->e_phnum && !found; i++) {
		Elf64_Phdr segment = {.p_type = PT_NULL};
		off_t offset = (off_t)(header->e_phoff + i * sizeof segment);

		if (pread(file, &segment, sizeof segment, offset) == sizeof segment && segment.p_type == PT_INTERP) {
			size_t size = segment.p_filesz < PATH_MAX ? segment.p_filesz : PATH_MAX - 1;
			ssize_t got = pread(file, linker, size, (off_t)segment.p_offset);

			linker[got > 0 ? got : 0] = '\0';
			found = true;
		}
	}
	return found;
}

static enum program_trouble examine_elf(const char *command, int file, const Elf64_Ehdr *header,
                                        struct error *error)
{
	char linker[PATH_MAX];
	enum program_trouble trouble = PROGRAM_UNREACHABLE;

	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != MACHINE)
		error_set(error, "%.100s: not a program for " MACHINE_NAME ", which our library is for", command);
	else if (!find_linker(file, header, linker))
		error_set(error, "%.100s: statically linked: it does not load our library", command);
	else if (!strstr(linker, "/ld-linux"))
		error_set(error, "%.100s: its dynamic linker is %.100s, and our library needs glibc's", command, linker);
	else
		trouble = PROGRAM_FINE;
	return trouble;
}

union head {
	char text[LINE_BYTES + 1];
	Elf64_Ehdr elf;
};

static enum program_trouble examine_file(const char *command, char path[PATH_MAX], unsigned int depth,
                                         struct error *error)
{
	enum program_trouble trouble = PROGRAM_FINE;
	union head head = {.text = ""};
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = file >= 0 ? read(file, head.text, sizeof head.text - 1) : 0;

	if (size >= (ssize_t)sizeof head.elf && memcmp(head.text, ELFMAG, SELFMAG) == 0)
		trouble = examine_elf(command, file, &head.elf, error);
	else if (size > 0 && depth < INTERPRETERS && follow_interpreter(path, head.text))
		trouble = examine_file(command, path, depth + 1, error);
	if (file >= 0)
		close(file);
	return trouble;
}

/* Why execvp would not run it. In PATH, a file that may not be executed tells more than one that is missing. */
static int why_absent(const char *command)
{
	char path[PATH_MAX];
	int why = EACCES;

	if (strchr(command, '/'))
		why = access(command, X_OK) < 0 ? errno : EACCES;
	else if (!find(command, path, is_there))
		why = ENOENT;
	return why;
}

enum program_trouble program_examine(const char *command, struct error *error)
{
	char path[PATH_MAX];
	enum program_trouble trouble = PROGRAM_FINE;

	if (!find(command, path, is_executable)) {
		errno = why_absent(command);
		return PROGRAM_ABSENT;
	}
	trouble = examine_file(command, path, 0, error);
	/* For a script, `path` is now its interpreter, whose privileges count. */
	if (examine_privileges(command, path, error) == PROGRAM_PRIVILEGED)
		trouble = PROGRAM_PRIVILEGED;
	return trouble;
}
