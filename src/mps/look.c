#include "look.h"

#include "base/proc.h"
#include "control.h"
#include "gpu/pci_address.h"
#include "processes.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/un.h>

/* The daemon's socket, in the directory of its pipes. */
#define SOCKET "/control"

/* --- the place of the daemon -------------------------------------------------------------------------------------- */

/* For the control program and COMMAND: the usual directory depends on the daemon's version, and perhaps on the
 * reader's. */
static const char *pipe_directory(void)
{
	const char *directory = getenv(MPS_DIRECTORY_ENVIRONMENT);

	if (directory && *directory)
		return directory;
	directory = mps_usual_directory();
	if (strcmp(directory, MPS_ROOTS_DIRECTORY) == 0)
		setenv(MPS_DIRECTORY_ENVIRONMENT, directory, 1);
	return directory;
}

/* The daemon itself does not report most of these errors, and a client then runs without MPS. */
static int check_directory(const char *directory, struct error *error)
{
	struct stat status;
	int result = 0;

	if (strlen(directory) + strlen(SOCKET) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
		result = error_set(error, "MPS: %.100s…: too long for the path of a socket; "
		                          "set " MPS_DIRECTORY_ENVIRONMENT " to a shorter one", directory);
	else if (stat(directory, &status) < 0)
		result = errno == ENOENT ? 0 : error_set_errno(error, "MPS: %.100s", directory);
	else if (!S_ISDIR(status.st_mode))
		result = error_set(error, "MPS: " MPS_DIRECTORY_ENVIRONMENT " is %.100s, which keeps programs away "
		                          "from MPS; unset it", directory);
	else if (access(directory, X_OK) < 0)
		result = error_set(error, "MPS: %.100s, where the control daemon is found, belongs to user %u and is "
		                          "closed to you; set " MPS_DIRECTORY_ENVIRONMENT " to a directory of yours",
		                   directory, (unsigned int)status.st_uid);
	return result;
}

/* --- asking ----------------------------------------------------------------------------------------------------- */

/* The commands for the daemon: list its servers, and their clients. */
#define QUESTION "get_server_list\nps\n"

static struct {
	bool pending;
	struct mps_question question;
	pid_t server; /* a client surely fits there; or 0 */
} early;

/* Takes the answer to the early question, or asks now. */
static int ask_who_is_there(const char *control, char answer[MPS_CONTROL_ANSWER])
{
	bool was_asked = early.pending;

	early.pending = false;
	return was_asked ? mps_ask_end(&early.question, control, QUESTION, answer) : mps_ask(control, QUESTION, answer);
}

void mps_forget(void)
{
	static char answer[MPS_CONTROL_ANSWER];

	if (early.pending)
		mps_ask_end(&early.question, NULL, NULL, answer);
	early.pending = false;
	early.server = 0;
}

static int cannot_run(const char *control, struct error *error)
{
	return errno == EFBIG
	               ? error_set(error, "MPS: the limit for files (ulimit -f) leaves no room for the control "
	                                  "daemon's answer")
	               : error_set_errno(error, "MPS: %.200s cannot be run", control);
}

int mps_explain(int result, const char *control, const struct mps_status *status, struct error *error)
{
	if (result == MPS_CONTROL_IMPOSSIBLE)
		return cannot_run(control, error);
	if (result == MPS_CONTROL_OVERDUE)
		return error_set(error, "MPS: the control daemon in %.100s does not answer: "
		                        "end it with 'echo quit | " MPS_CONTROL "' or kill it", status->pipe_directory);
	if (result == MPS_CONTROL_DIED)
		return error_set(error, "MPS: the control daemon in %.100s does not answer: " MPS_CONTROL " died when "
		                        "it was asked", status->pipe_directory);
	return 0;
}

/* --- counting clients -------------------------------------------------------------------------------------------- */

#define DEVICES_MAX 64 /* more than a machine has */

/* The clients of a server, by GPU: each GPU has its own channels. */
struct census {
	unsigned int devices;
	struct {
		char uuid[UUID_TEXT];
		unsigned int clients;
	} on[DEVICES_MAX];
};

static bool is_mine(long server)
{
	uid_t owner;

	/* A server that cannot be inspected (another PID namespace) is taken for ours, since there is no other. */
	return !proc_owner((pid_t)server, &owner) || owner == getuid();
}

/* The daemon shortens UUIDs: only a prefix is compared. */
static bool will_use(const struct mps_request *request, const char *uuid)
{
	bool use = request->gpu_count == 0;

	for (unsigned int i = 0; i < request->gpu_count; i++)
		use = use || strncasecmp(request->gpus[i], uuid, strlen(uuid)) == 0;
	return use;
}

/* Counts one more client on a GPU. Returns the new number. */
static unsigned int count_client(struct census *census, const char *uuid)
{
	unsigned int device = 0;

	while (device < census->devices && strcmp(census->on[device].uuid, uuid) != 0)
		device++;
	if (device == DEVICES_MAX)
		return 0;
	if (device == census->devices)
		strcpy(census->on[census->devices++].uuid, uuid);
	return ++census->on[device].clients;
}

/* A line of "get_server_list" (a number) or of "ps" (a table: PID, ID, SERVER, DEVICE, …). */
static void read_line(struct mps_status *status, struct census *census, const struct mps_request *request,
                      const char *line)
{
	long first, server;
	char id[32], uuid[UUID_TEXT];
	int words = sscanf(line, "%7ld %31s %7ld %40s", &first, id, &server, uuid);

	status->all_clients += words == 4;
	if (words == 1 && is_mine(first)) {
		status->server = (pid_t)first;
	} else if (words == 4 && status->server && server == status->server && will_use(request, uuid)) {
		unsigned int clients = count_client(census, uuid);

		status->clients = clients > status->clients ? clients : status->clients;
	}
}

/* The numbers must be 0. The answer is destroyed. */
static void read_census(struct mps_status *status, const struct mps_request *request, char *answer)
{
	struct census census = {.devices = 0};
	char *rest = NULL;

	for (char *line = strtok_r(answer, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		read_line(status, &census, request, line);
}

#define CHANNELS 127
#define CLIENTS_MAX 48

unsigned int mps_capacity(unsigned int connections)
{
	unsigned int capacity = CHANNELS / connections;

	return capacity < CLIENTS_MAX ? capacity : CLIENTS_MAX;
}

/* The number of channels of a program. The user's setting for all programs stays, if CUDA would accept the number. */
static unsigned int connections_of(const struct mps_request *request)
{
	const char *text = getenv(MPS_CONNECTIONS_ENVIRONMENT);
	unsigned int connections = request->connections;

	if (!connections && text) {
		char *end;
		unsigned long number = strtoul(text, &end, 10);

		if (*text >= '0' && *text <= '9' && *end == '\0' && number <= MPS_CONNECTIONS_MAX)
			connections = (unsigned int)number;
	}
	return connections ? connections : MPS_CONNECTIONS_DEFAULT;
}

/* --- interface 3 -------------------------------------------------------------------------------------------------- */

/* A daemon with interface 3 has a directory for each server, and there a directory for each namespace: a client chooses
 * by CUDA_MPS_PIPE_DIRECTORY. */
static bool has_socket(const char *directory, const char *name)
{
	char path[sizeof((struct mps_status *)NULL)->pipe_directory + NAME_MAX + sizeof SOCKET + 2];

	snprintf(path, sizeof path, "%s/%s" SOCKET, directory, name);
	return access(path, F_OK) == 0;
}

static bool has_servers(const char *directory)
{
	DIR *entries = opendir(directory);
	bool found = false;

	if (!entries)
		return false;
	for (const struct dirent *entry = readdir(entries); entry && !found; entry = readdir(entries))
		found = entry->d_name[0] != '.' && has_socket(directory, entry->d_name);
	closedir(entries);
	return found;
}

/* "name,uid,pid,…", below a line with these words: the first server of this user. */
static void read_servers(struct mps_status *status, char name[64], const char *answer)
{
	for (const char *line = answer; *line && !status->server; line += strcspn(line, "\n"), line += *line == '\n') {
		unsigned long user;
		long pid;

		if (sscanf(line, "%63[^,\n],%lu,%ld,", name, &user, &pid) == 3 && user == getuid())
			status->server = (pid_t)pid;
	}
}

/* "pid,server,…" */
static void read_clients(struct mps_status *status, const char *server, const char *answer)
{
	for (const char *line = answer; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		char name[64];
		bool is_client = sscanf(line, "%*d,%63[^,\n],", name) == 1;

		status->all_clients += is_client;
		status->clients += is_client && status->server && strcmp(name, server) == 0;
	}
}

/* Whether the daemon has interface 3: then the servers and clients. The control program follows the daemon's version;
 * an older control program does not know the words, prints its options and succeeds (seen with driver 580). */
static bool look_by_words(const char *control, struct mps_status *status)
{
	static char *const servers[] = {MPS_CONTROL, "server", "list", "--format=csv", NULL};
	static char *const clients[] = {MPS_CONTROL, "client", "list", "--all", "--format=csv,noheader", NULL};
	static char answer[MPS_CONTROL_ANSWER];
	char server[64] = "";

	if (mps_ask_words(control, servers, answer) != 0 || strcspn(answer, ",") >= strcspn(answer, "\n"))
		return false;
	read_servers(status, server, answer);
	if (mps_ask_words(control, clients, answer) == 0)
		read_clients(status, server, answer);
	return true;
}

/* A table is an answer of the older interface. */
static bool speaks_3(const char *control, struct mps_status *status, const char *answer)
{
	const char *directory = status->pipe_directory;
	bool may_be = has_socket(directory, ".") && (!strstr(answer, "SERVER") || has_servers(directory));
	bool is_namespace = has_socket(directory, ".") && has_socket(directory, "..");

	/* The directory of a server or of a namespace: only the daemon above can be asked. */
	return is_namespace || (may_be && look_by_words(control, status));
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

/* This user's server, if a client surely fits there; else 0. A daemon with interface 3 must be asked. */
static pid_t find_roomy_server(const char *directory, const struct mps_request *request)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s" SOCKET, directory);
	pid_t daemon = access(path, F_OK) < 0 || has_servers(directory) ? 0 : mps_find_daemon(directory);
	pid_t server = daemon > 0 ? mps_find_server(daemon) : 0;

	return server > 0 && mps_clients_at_most(server) < mps_capacity(connections_of(request)) ? server : 0;
}

void mps_ask_early(const struct mps_request *request, bool wants_numbers)
{
	char control[PATH_MAX];
	const char *directory = pipe_directory();

	if (request->mode == MPS_OFF || check_directory(directory, NULL) < 0)
		return;
	early.server = wants_numbers ? 0 : find_roomy_server(directory, request);
	early.pending = early.server == 0 && mps_control_find(control, NULL) == 0;
	if (early.pending)
		mps_ask_begin(&early.question, control, QUESTION);
}

int mps_look_again(const char *control, const struct mps_request *request, struct mps_status *status,
                   struct error *error)
{
	static char answer[MPS_CONTROL_ANSWER];
	int result = ask_who_is_there(control, answer);

	status->server = 0;
	status->clients = 0;
	status->all_clients = 0;
	status->running = result == 0;
	if (mps_explain(result, control, status, error) < 0)
		return -1;
	status->has_namespaces = speaks_3(control, status, answer);
	if (status->has_namespaces) {
		status->running = true;
		return 0;
	}
	if (!status->running && !strstr(answer, "Cannot find MPS control daemon"))
		return error_set(error, "MPS: the control daemon in %.100s cannot be asked: %.120s",
		                 status->pipe_directory, mps_first_line(answer));
	if (status->running)
		read_census(status, request, answer);
	return 0;
}

int mps_look(const struct mps_request *request, struct mps_status *status, char control[PATH_MAX], struct error *error)
{
	memset(status, 0, sizeof *status);
	snprintf(status->pipe_directory, sizeof status->pipe_directory, "%s", pipe_directory());
	status->connections = connections_of(request);
	status->capacity = mps_capacity(status->connections);
	status->server = early.server;
	status->running = early.server > 0;
	early.server = 0;
	if (request->mode == MPS_OFF || status->running)
		return 0;
	return check_directory(status->pipe_directory, error) < 0 || mps_control_find(control, error) < 0
	               ? -1
	               : mps_look_again(control, request, status, error);
}
