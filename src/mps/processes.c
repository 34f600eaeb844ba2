#include "processes.h"

#include "base/proc.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PID_FILE "/nvidia-cuda-mps-control.pid"
#define NAME "nvidia-cuda-mps" /* of daemon and server, cut to the length of a process's name */

static bool is_of_mps(long pid)
{
	char name[64];

	proc_read_text(name, sizeof name, "/proc/%ld/comm", pid);
	return strncmp(name, NAME, strlen(NAME)) == 0;
}

pid_t mps_find_daemon(const char *pipe_directory)
{
	char text[64];

	proc_read_text(text, sizeof text, "%s" PID_FILE, pipe_directory);
	long pid = strtol(text, NULL, 10);

	return pid > 0 && is_of_mps(pid) ? (pid_t)pid : 0;
}

static bool is_own_server(long pid)
{
	uid_t owner;

	return is_of_mps(pid) && proc_owner((pid_t)pid, &owner) && owner == getuid();
}

pid_t mps_find_server(pid_t daemon)
{
	char children[512], *at = children, *end;
	unsigned int count = 0;
	pid_t server = 0;

	proc_read_text(children, sizeof children, "/proc/%d/task/%d/children", (int)daemon, (int)daemon);
	for (long pid = strtol(at, &end, 10); end != at; at = end, pid = strtol(at, &end, 10)) {
		if (is_own_server(pid)) {
			server = (pid_t)pid;
			count++;
		}
	}
	return count == 1 ? server : 0;
}

/* 1 for a socket, 0 for a descriptor of another kind, MPS_CLIENTS_UNKNOWN for an unreadable link. */
static unsigned int count_socket(pid_t pid, const char *descriptor)
{
	static const char kind[] = "socket:";
	char target[64];

	if (!proc_read_link(target, sizeof target, "/proc/%d/fd/%s", (int)pid, descriptor))
		return MPS_CLIENTS_UNKNOWN;
	return strncmp(target, kind, sizeof kind - 1) == 0;
}

unsigned int mps_clients_at_most(pid_t server)
{
	char path[32];
	unsigned int sockets = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)server);
	DIR *descriptors = opendir(path);

	if (!descriptors)
		return MPS_CLIENTS_UNKNOWN;
	for (const struct dirent *entry = readdir(descriptors); entry && sockets != MPS_CLIENTS_UNKNOWN;
	     entry = readdir(descriptors)) {
		unsigned int one = entry->d_name[0] != '.' ? count_socket(server, entry->d_name) : 0;

		sockets = one != MPS_CLIENTS_UNKNOWN ? sockets + one : one;
	}
	closedir(descriptors);
	return sockets;
}
