#include "program.h"

#include "configuration.h"

#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* --- words ---------------------------------------------------------------------------------------- */

static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	bool has = false;

	for (const char *at = list; *at && !has; at += strcspn(at, " "), at += strspn(at, " "))
		has = strcspn(at, " ") == length && strncmp(at, word, length) == 0;
	return has;
}

/* Whether any of the options stands before the first word that is no option. */
static bool has_option(char **words, const char *options)
{
	bool has = false;

	for (char **word = words + 1; *word && **word == '-' && !has; word++)
		has = has_word(options, *word);
	return has;
}

/* The value of an option of one letter, "" if the option has none; NULL if absent. `options` as for getopt. */
static const char *value_of(char **words, const char *options, int letter)
{
	const char *value = NULL;
	int count = 0, option = 0;

	while (words[count])
		count++;
	opterr = 0;
	for (optind = 0; option != -1 && !value;) {
		option = getopt(count, words, options);
		if (option == letter)
			value = optarg ? optarg : "";
	}
	return value;
}

/* --- conditions: the server is there, the environment is kept ----------------------------------------------------- */

static bool always(char **words)
{
	(void)words;
	return true;
}

static bool is_served(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool fits = strlen(path) < sizeof address.sun_path, is_there;

	if (fits)
		strcpy(address.sun_path, path);
	is_there = file >= 0 && fits && connect(file, (const struct sockaddr *)&address, sizeof address) == 0;
	if (file >= 0)
		close(file);
	return is_there;
}

/* -S names the socket; else -L names a file in the user's directory; else TMUX is "SOCKET,PID,SESSION" in a session. */
static bool tmux_serves(char **words)
{
	static const char options[] = "+2c:CDdf:hlL:NqS:T:uUvV";
	const char *path = value_of(words, options, 'S'), *name = value_of(words, options, 'L');
	const char *session = getenv("TMUX"), *top = getenv("TMUX_TMPDIR");
	char text[sizeof((struct sockaddr_un *)NULL)->sun_path + 1];

	if (path)
		snprintf(text, sizeof text, "%s", path);
	else if (!name && session && *session)
		snprintf(text, sizeof text, "%.*s", (int)strcspn(session, ","), session);
	else
		snprintf(text, sizeof text, "%s/tmux-%u/%s", top && *top ? top : "/tmp", (unsigned int)getuid(),
		         name ? name : "default");
	return is_served(text);
}

/* A new session gets a new server, but not within a session. */
static bool screen_serves(char **words)
{
	static const char options[] = "+aAc:CdDe:fh:ilLmnOp:qQrRs:S:t:T:UvwxX";
	const char *session = getenv("STY");

	return (session && *session && !value_of(words, options, 'm')) || value_of(words, options, 'X');
}

static bool is_no_scope(char **words)
{
	return !has_option(words, "--scope");
}

static bool is_login(char **words)
{
	bool is = false;

	for (char **word = words + 1; *word && strcmp(*word, "--") != 0 && !is; word++)
		is = has_word("- -l --login -i --simulate-initial", *word);
	return is;
}

static bool resets(char **words)
{
	return has_option(words, "--reset-env");
}

#define ENV_OPTIONS "+iu:C:S:v0"

static int first_operand(char **words, const char *options)
{
	value_of(words, options, 0);
	return optind;
}

/* `env -u NAME` and `env NAME=VALUE`. */
static bool changes_search_path(char **words)
{
	static const char name[] = "LD_LIBRARY_PATH";
	int first = first_operand(words, ENV_OPTIONS);
	bool is = false;

	for (char **word = words + 1; *word && (word < words + first || strchr(*word, '=')) && !is; word++)
		is = strncmp(*word, name, sizeof name - 1) == 0 || strcmp(*word, "-uLD_LIBRARY_PATH") == 0 ||
		     strcmp(*word, "--unset=LD_LIBRARY_PATH") == 0;
	return is;
}

static bool empties(char **words)
{
	return has_option(words, "- --ignore-environment") || value_of(words, ENV_OPTIONS, 'i') ||
	       (changes_search_path(words) && access(CONFIGURATION, F_OK) != 0);
}

static bool leaves_root(char **words)
{
	char path[PATH_MAX];
	char **word = words + 1;

	while (*word && **word == '-')
		word++;
	return *word && !(realpath(*word, path) && strcmp(path, "/") == 0);
}

/* --- the programs --------------------------------------------------------------------------------- */

#define CONTAINERS                                                                                                     \
	"docker nvidia-docker docker-compose podman podman-compose nerdctl ctr crictl kubectl lxc incus distrobox " \
	"toolbox"

static const struct row {
	const char *names;
	bool (*applies)(char **words);
	const char *what, *instead;
} rows[] = {
	{"tmux", tmux_serves, "hands its work to a server that runs already", "tmux new nvtaskset ..."},
	{"screen", screen_serves, "hands its work to a session that runs already", "screen nvtaskset ..."},
	{"gnome-terminal kgx ptyxis", always, "hands its work to a server", "run nvtaskset in the terminal"},
	{CONTAINERS, always, "starts containers", "nvtaskset cdi add SET NAME, and --device nvtaskset/group=NAME"},
	{"flatpak snap", always, "starts programs in a sandbox without our library", "nvtaskset --attach -p SET PID"},
	{"systemd-run", is_no_scope, "has systemd start the program", "systemd-run nvtaskset ..., or --scope"},
	{"machinectl systemd-nspawn", always, "starts programs on another system", "nvtaskset there"},
	{"ssh mosh rsh", always, "starts programs on another machine, or in another session", "ssh HOST nvtaskset ..."},
	{"sudo doas pkexec run0", always, "empties the environment", "sudo nvtaskset ..."},
	{"su runuser", is_login, "empties the environment", "su - USER -c 'nvtaskset ...'"},
	{"setpriv", resets, "empties the environment", "setpriv ... nvtaskset ..."},
	{"env", empties, "empties the environment", "env -i ... nvtaskset ..."},
	{"chroot", leaves_root, "leads to a directory without our library", "chroot DIRECTORY nvtaskset ..."},
};

/* Programs that run COMMAND in the same environment. COMMAND stands behind options and operands. */
static const struct wrapper {
	const char *name, *options;
	int operands;
} wrappers[] = {
	{"env", ENV_OPTIONS, 0},      {"nice", "+n:", 0},     {"nohup", "+", 0},      {"timeout", "+k:s:v", 1},
	{"setsid", "+cfw", 0},        {"stdbuf", "+i:o:e:", 0}, {"taskset", "+apc", 1}, {"chrt", "+abfiormT:P:D:R", 1},
	{"ionice", "+c:n:t", 0},
};

/* NULL: the words are another command. */
static char **behind_wrapper(char **words)
{
	char **word = NULL;

	for (size_t i = 0; i < COUNT(wrappers) && !word; i++) {
		if (strcmp(basename(words[0]), wrappers[i].name) == 0)
			word = words + first_operand(words, wrappers[i].options);
		for (int operand = 0; word && *word && operand < wrappers[i].operands; operand++)
			word++;
	}
	while (word && *word && strchr(*word, '='))
		word++;
	return word && *word ? word : NULL;
}

bool handover_examine(char **words, struct error *error)
{
	const struct row *found = NULL;
	char **behind = behind_wrapper(words);

	for (size_t i = 0; i < COUNT(rows) && !found; i++) {
		if (has_word(rows[i].names, basename(words[0])) && rows[i].applies(words))
			found = &rows[i];
	}
	if (found)
		error_set(error, "%.100s: %s, outside of SET: %s", words[0], found->what, found->instead);
	return found || (behind && handover_examine(behind, error));
}
