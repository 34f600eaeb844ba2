#include "demangle.h"

#include "terminal/text.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define NAME_MAX_SHOWN 4096

typedef char *demangler(const char *mangled, char *room, size_t *size, int *status);

/* A function of the C++ ABI. Only the child loads the library: no C++ is needed to build. */
static demangler *find_demangler(void)
{
	static demangler *found;
	static bool was_looked_for;

	if (!was_looked_for) {
		void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);

		found = library ? (demangler *)dlsym(library, "__cxa_demangle") : NULL;
		was_looked_for = true;
	}
	return found;
}

/* --- the child ---------------------------------------------------------------------------------------------------- */

/* A hostile program can have a name of 300 characters that becomes larger than any memory. A child demangles, with a
 * limit of processor time for each name. */
#define NAME_MS 200

/* A message is a name. The answer is one character, and the text. */
enum answer {
	DEMANGLED = '+',
	AS_IT_WAS = '-'
};

static void limit_time(void)
{
	const struct itimerval limit = {.it_value = {.tv_usec = NAME_MS * 1000}};

	setitimer(ITIMER_PROF, &limit, NULL); /* SIGPROF ends us */
}

static void answer(int parent, const char *name)
{
	demangler *library = find_demangler();
	int status = 0;
	char *demangled = library ? library(name, NULL, NULL, &status) : NULL, text[1 + NAME_MAX_SHOWN] = {AS_IT_WAS};
	size_t length = demangled ? strnlen(demangled, NAME_MAX_SHOWN) : 0;

	if (demangled) {
		text[0] = DEMANGLED;
		memcpy(text + 1, demangled, length);
	}
	send(parent, text, 1 + length, MSG_NOSIGNAL);
	free(demangled);
}

static _Noreturn void be_child(int parent)
{
	char name[NAME_MAX_SHOWN + 1];
	ssize_t length;

	signal(SIGPROF, SIG_DFL);
	while (limit_time(), length = recv(parent, name, sizeof name - 1, 0), length > 0) {
		name[length] = '\0';
		answer(parent, name);
	}
	_exit(EXIT_SUCCESS);
}

/* Returns this process's end of a socket, or -1. The child ends with this process. */
static int start_child(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	pid_t child = fork();

	if (child == 0) {
		close(ends[0]);
		be_child(ends[1]);
	}
	close(ends[1]);
	if (child < 0)
		close(ends[0]);
	return child < 0 ? -1 : ends[0];
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* False if the name stays. A child that has ended has met a hostile name: from then on, all names stay. */
static bool ask(const char *name, char text[NAME_MAX_SHOWN + 1])
{
	static int child = -1;
	static bool is_over;
	char said[1 + NAME_MAX_SHOWN] = {AS_IT_WAS};
	ssize_t length = -1;

	if (!is_over && child < 0)
		child = start_child();
	if (!is_over && send(child, name, strlen(name), MSG_NOSIGNAL) >= 0)
		length = recv(child, said, sizeof said, 0);
	is_over = length <= 0;
	if (length <= 0 || said[0] != DEMANGLED)
		return false;
	memcpy(text, said + 1, (size_t)length - 1);
	text[length - 1] = '\0';
	return true;
}

char *demangle(const char *name)
{
	char demangled[NAME_MAX_SHOWN + 1];
	bool is_mangled = strncmp(name, "_Z", 2) == 0 && strlen(name) <= NAME_MAX_SHOWN;
	const char *text = is_mangled && ask(name, demangled) ? demangled : name;
	size_t length = strnlen(text, NAME_MAX_SHOWN);
	char *clean = malloc(TEXT_ROOM(length));

	if (clean)
		text_clean(clean, text, length);
	return clean;
}
