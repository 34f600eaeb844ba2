/* Room for a client of MPS, by the processes of daemon and server: here, children with the names of both. */
#include "../cases.h"
#include "../fake-mps/fake.h"

#include "mps/processes.h"

#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define NAME "nvidia-cuda-mps-server" /* Linux cuts the name */

static pid_t players[4];
static unsigned int player_count;

static int end_players(void **state)
{
	for (unsigned int i = 0; i < player_count; i++)
		kill(players[i], SIGKILL);
	while (player_count > 0)
		player_count -= waitpid(players[player_count - 1], NULL, 0) > 0;
	return fake_teardown(state);
}

/* Starts a server, as a child of the daemon, and waits until the server has its sockets. */
static pid_t play_server(const char *name, unsigned int sockets, uid_t user)
{
	siginfo_t stopped;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NAME, name);
		for (unsigned int i = 0; i < sockets; i++)
			socket(AF_UNIX, SOCK_STREAM, 0);
		if (user != getuid() && setuid(user) < 0)
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	players[player_count++] = pid;
	assert_int_equal(waitid(P_PID, (id_t)pid, &stopped, WSTOPPED | WEXITED | WNOWAIT), 0);
	assert_int_equal(stopped.si_code, CLD_STOPPED);
	return pid;
}

/* Gives the daemon's name to the test's process, and writes the pid's file and the pipe. */
static void play_daemon(pid_t pid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s", fake_path("mps/nvidia-cuda-mps-control.pid"));
	mkdir(fake_path("mps"), 0755);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fprintf(file, "%d\n", (int)pid);
	fclose(file);
	assert_int_equal(close(open(fake_path("mps/control"), O_CREAT | O_WRONLY, 0644)), 0);
	prctl(PR_SET_NAME, "nvidia-cuda-mps-control");
}

static const char *directory(void)
{
	return fake_path("mps");
}

static void needs_children(void)
{
	if (access(text_of("/proc/self/task/%d/children", (int)getpid()), R_OK) < 0)
		skip_because("needs a kernel that lists the children of processes");
}

TEST(daemon_by_its_file)
{
	assert_int_equal(mps_find_daemon(directory()), 0);
	play_daemon(getpid());
	assert_int_equal(mps_find_daemon(directory()), getpid());
	prctl(PR_SET_NAME, "other"); /* has the pid by now */
	assert_int_equal(mps_find_daemon(directory()), 0);
	play_daemon(0);
	assert_int_equal(mps_find_daemon(directory()), 0);
}

TEST(server_of_this_user)
{
	needs_children();
	assert_int_equal(mps_find_server(getpid()), 0);
	play_server("other", 0, getuid());
	assert_int_equal(mps_find_server(getpid()), 0);
	pid_t server = play_server(NAME, 5, getuid());

	assert_int_equal(mps_find_server(getpid()), server);
	assert_int_equal(mps_clients_at_most(server), 5);
	play_server(NAME, 0, getuid()); /* which one? */
	assert_int_equal(mps_find_server(getpid()), 0);
}

TEST(server_of_another_user)
{
	if (getuid() != 0)
		skip_because("needs root");
	play_server(NAME, 0, 65534);
	assert_int_equal(mps_find_server(getpid()), 0);
}

/* Becomes another user, with or without a capability. Only a reader with the capability may read the links then. */
static void become_user(bool has_capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2] = {{.permitted = has_capability ? 1U << CAP_NET_RAW : 0}};

	prctl(PR_SET_KEEPCAPS, 1);
	if (setuid(65534) < 0 || syscall(SYS_capset, &header, sets) < 0)
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
}

TEST(descriptors_that_cannot_be_seen)
{
	assert_int_equal(mps_clients_at_most(INT_MAX), MPS_CLIENTS_UNKNOWN);
	if (getuid() != 0)
		skip_because("needs root");
	pid_t pid = fork();

	if (pid == 0) {
		become_user(true);
		raise(SIGSTOP);
		_exit(0);
	}
	players[player_count++] = pid;
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){.si_pid = 0}, WSTOPPED | WEXITED | WNOWAIT), 0);
	pid_t reader = fork();
	int status;

	if (reader == 0) {
		become_user(false);
		_exit(mps_clients_at_most(pid) == MPS_CLIENTS_UNKNOWN ? 0 : 2);
	}
	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_int_equal(status, 0);
}

/* The control program dies when asked. */
static void assert_looks(bool asks, bool wants_numbers, unsigned int connections)
{
	const struct mps_request request = {.mode = MPS_ON, .connections = connections};
	struct mps_status status;
	struct error error;

	setenv("FAKE_MPS", "crash", 1);
	mps_ask_early(&request, wants_numbers);
	int result = mps_prepare(&request, &status, &error);

	mps_forget();
	assert_int_equal(result, asks ? -1 : 0);
	assert_int_equal(status.running, !asks);
	assert_int_equal(status.server, asks ? 0 : players[0]);
}

TEST(nobody_asks_where_a_client_fits)
{
	needs_children();
	play_daemon(getpid());
	assert_looks(true, false, 8); /* there is no server yet */
	play_server(NAME, 14, getuid());
	assert_looks(false, false, 8);
	assert_looks(true, true, 8);
	assert_looks(true, false, 9); /* room for 14 */
	assert_looks(false, false, 2);
	assert_int_equal(unlink(fake_path("mps/control")), 0); /* clients could not come in */
	assert_looks(true, false, 2);
	const struct mps_request request = {.mode = MPS_ON};

	mps_ask_early(&request, false);
	mps_forget();
	fake_refuses(MPS_ON, " died when it was asked");
}

/* Such a daemon has sockets in the directories of its servers. */
TEST(interface_3_is_asked)
{
	needs_children();
	play_daemon(getpid());
	play_server(NAME, 0, getuid());
	assert_looks(false, false, 8);
	assert_int_equal(mkdir(fake_path("mps/training"), 0755), 0);
	assert_int_equal(close(open(fake_path("mps/training/control"), O_CREAT | O_WRONLY, 0644)), 0);
	assert_looks(true, false, 8);
	unlink(fake_path("mps/training/control"));
	rmdir(fake_path("mps/training"));
}

RUN_TESTS(fake_setup, end_players)
