/*
 * Usage: busy ROLE=THREADS…
 *
 * An ordinary multi-threaded program that knows nothing of nvtaskset. It notices if something is lost: a result, a
 * signal, a byte, a register, errno. Prints "ready" when all threads run. At the end of its standard input it prints
 * "intact" and ends. At the first loss it prints what was lost, and ends with status 3. Its threads sleep at times, so
 * that others can run.
 *
 *   launch    kernels, and on which TPCs they ran whenever that changes
 *   allocate  memory, freed in other sizes
 *   load      a library, and unload it
 *   sleep     for some milliseconds at a time
 *   poll      for bytes that another thread writes, one after the other; epoll and read: the same
 *   wait      for a condition that another thread makes true
 *   signal    another thread sends signals with numbers
 *   hold      patterns in all registers
 *
 * With filter=1 the kernel ends it when it makes a file in memory.
 */
#include "gpu.h"
#include "registers.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#define THREADS_MAX 256

struct role {
	const char *name;
	void (*work)(unsigned int number);
	void (*await)(int file); /* of those that receive bytes: waits for each; NULL: reads at once */
};

/* Pairs are numbered over all roles. */
static struct worker {
	const struct role *role;
	unsigned int number;
	pthread_t thread;
} workers[THREADS_MAX];
static unsigned int worker_count;

static atomic_bool ends;
static atomic_uint running;
static struct gpu_under_test gpu;
static bool has_gpu;

static void sleep_for(long microseconds)
{
	const struct timespec time = {.tv_nsec = microseconds * 1000};

	errno = EXFULL;
	check(nanosleep(&time, NULL) == 0, "a sleep was cut short");
	check(errno == EXFULL, "errno");
}

/* --- work without partners --------------------------------------------------------------------------------- */

/* Only the first of them prints. */
static void launch(unsigned int number)
{
	struct tpcset last = {{0}};
	char text[TPCSET_TEXT];
	CUdeviceptr output;

	check(cuCtxSetCurrent(gpu.context) == CUDA_SUCCESS, "the context");
	output = gpu_new_output(&gpu);
	while (!ends) {
		struct tpcset ran = gpu_where_into(&gpu, NULL, output);

		check(!tpcset_is_empty(&ran), "a launch");
		if (number == 0 && !tpcset_equal(&ran, &last)) {
			printf("kernels run on TPCs %s (%u)\n", tpcset_format_list(&ran, text), tpcset_count(&ran));
			fflush(stdout);
		}
		last = ran;
		sleep_for(500);
	}
}

static void allocate(unsigned int number)
{
	enum { BLOCKS = 64 };
	unsigned char *blocks[BLOCKS] = {NULL};
	size_t sizes[BLOCKS] = {0};
	unsigned int random = number + 1;

	for (unsigned int turn = 0; !ends; turn++) {
		unsigned int i = (random = random * 1103515245 + 12345) >> 16 & (BLOCKS - 1);

		for (size_t at = 0; at < sizes[i]; at += 97)
			check(blocks[i][at] == (unsigned char)(i + number), "memory");
		free(blocks[i]);
		sizes[i] = (random >> 8) % (i == 0 ? 300000 : 3000) + 1;
		blocks[i] = malloc(sizes[i]);
		check(blocks[i], "memory");
		memset(blocks[i], (int)(i + number), sizes[i]);
		if (turn % 256 == 0)
			sleep_for(100);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
}

static void load(unsigned int number)
{
	while (!ends) {
		void *library = dlopen("libresolv.so.2", RTLD_NOW);

		check(library && dlsym(library, "ns_get16"), "a library");
		check(dlclose(library) == 0, "a library");
		sleep_for(100);
	}
}

static void sleep_often(unsigned int number)
{
	while (!ends)
		sleep_for(1000 + 100 * number);
}

static void hold(unsigned int number)
{
	while (!ends) {
		check(registers_hold(1000000), "registers");
		sleep_for(200);
	}
}

/* --- work in pairs: the partner works, too ------------------------------------------------------------------- */

struct pair {
	int pipe[2];
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	unsigned long number; /* that was sent last */
	pthread_t receiver;
};

static struct pair pairs[THREADS_MAX];

static void *send_bytes(void *argument)
{
	struct pair *pair = argument;

	for (unsigned long number = 0; !ends; number++) {
		check(write(pair->pipe[1], &number, sizeof number) == sizeof number, "a write");
		sleep_for(1500);
	}
	close(pair->pipe[1]);
	return NULL;
}

static void start_partner(struct pair *pair, void *(*partner)(void *), pthread_t *thread)
{
	pair->receiver = pthread_self();
	check(pipe(pair->pipe) == 0, "a pipe");
	check(pthread_create(thread, NULL, partner, pair) == 0, "a thread");
}

static void receive(unsigned int number)
{
	void (*await)(int file) = workers[number].role->await;
	struct pair *pair = &pairs[number];
	unsigned long expected = 0, got;
	pthread_t partner;
	ssize_t size = sizeof got;

	start_partner(pair, send_bytes, &partner);
	while (size == sizeof got) {
		if (await)
			await(pair->pipe[0]);
		size = read(pair->pipe[0], &got, sizeof got);
		check(size == 0 || (size == sizeof got && got == expected++), "bytes");
	}
	pthread_join(partner, NULL);
	close(pair->pipe[0]);
}

static void await_poll(int file)
{
	struct pollfd wanted = {.fd = file, .events = POLLIN};

	check(poll(&wanted, 1, 10000) == 1, "poll");
}

/* Without a library function, to see what the kernel returns to a thread that was stopped. */
static void await_epoll(int file)
{
	static __thread int events = -1;
	struct epoll_event event = {.events = EPOLLIN};

	if (events < 0)
		events = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(events, EPOLL_CTL_ADD, file, &event);
	check(epoll_wait(events, &event, 1, -1) == 1, "epoll_wait");
}

static void *make_true(void *argument)
{
	struct pair *pair = argument;
	bool last;

	do {
		last = ends;
		pthread_mutex_lock(&pair->mutex);
		pair->number++;
		pthread_cond_signal(&pair->changed);
		pthread_mutex_unlock(&pair->mutex);
		sleep_for(1500);
	} while (!last);
	return NULL;
}

static void wait_for_condition(unsigned int number)
{
	struct pair *pair = &pairs[number];
	unsigned long seen = 0;
	pthread_t partner;

	pthread_mutex_init(&pair->mutex, NULL);
	pthread_cond_init(&pair->changed, NULL);
	start_partner(pair, make_true, &partner);
	while (!ends) {
		struct timespec end;

		clock_gettime(CLOCK_REALTIME, &end);
		end.tv_sec += 60;
		pthread_mutex_lock(&pair->mutex);
		while (pair->number == seen)
			check(pthread_cond_timedwait(&pair->changed, &pair->mutex, &end) == 0, "a condition");
		seen = pair->number;
		pthread_mutex_unlock(&pair->mutex);
	}
	pthread_join(partner, NULL);
}

/* The last number that this thread has received. */
static __thread volatile int received;

static void take_signal(int signal, siginfo_t *info, void *context)
{
	check(info->si_value.sival_int == received + 1, "a signal");
	received++;
}

static void *send_signals(void *argument)
{
	struct pair *pair = argument;
	int sent = 0;

	while (!ends) {
		check(pthread_sigqueue(pair->receiver, SIGRTMIN + 1, (union sigval){.sival_int = ++sent}) == 0, "a signal");
		sleep_for(1500);
	}
	pair->number = (unsigned long)sent;
	return NULL;
}

static void take_signals(unsigned int number)
{
	struct pair *pair = &pairs[number];
	pthread_t partner;

	start_partner(pair, send_signals, &partner);
	while (!ends)
		check(registers_hold(200000), "registers, with signals");
	pthread_join(partner, NULL);
	check((unsigned long)received == pair->number, "signals");
}

/* --- all together ---------------------------------------------------------------------------------------------- */

static const struct role roles[] = {
	{"launch", launch, NULL}, {"allocate", allocate, NULL}, {"load", load, NULL}, {"sleep", sleep_often, NULL},
	{"hold", hold, NULL}, {"poll", receive, await_poll}, {"epoll", receive, await_epoll}, {"read", receive, NULL},
	{"wait", wait_for_condition, NULL}, {"signal", take_signals, NULL},
};

static void *run(void *argument)
{
	const struct worker *worker = argument;

	running++;
	worker->role->work(worker->number);
	return NULL;
}

static void add_workers(const char *argument)
{
	const char *equals = strchr(argument, '=');
	size_t length = equals ? (size_t)(equals - argument) : 0;
	const struct role *role = NULL;

	for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
		if (strlen(roles[i].name) == length && strncmp(argument, roles[i].name, length) == 0)
			role = &roles[i];
	}
	if (!role) {
		fprintf(stderr, "busy: %s: not ROLE=THREADS\n", argument);
		exit(EXIT_FAILURE);
	}
	has_gpu = has_gpu || role->work == launch;
	for (int i = atoi(equals + 1); i > 0 && worker_count < THREADS_MAX; i--) {
		workers[worker_count] = (struct worker){.role = role, .number = worker_count};
		worker_count++;
	}
}

static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};

	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "a filter");
	check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "a filter");
}

int main(int count, char **arguments)
{
	struct sigaction action = {.sa_sigaction = take_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	const char *path = getenv("SIM_TOPOLOGY"); /* is known to the simulated GPU and to us, not to the library that comes */
	char nothing;

	for (int i = 1; i < count; i++) {
		if (strcmp(arguments[i], "filter=1") == 0)
			filter();
		else
			add_workers(arguments[i]);
	}
	sigaction(SIGRTMIN + 1, &action, NULL);
	if (has_gpu) {
		gpu_initialise();
		if (path)
			setenv("NVTASKSET_TOPOLOGY", path, 1);
		gpu_open(&gpu, 0);
		if (path)
			unsetenv("NVTASKSET_TOPOLOGY");
	}
	for (unsigned int i = 0; i < worker_count; i++)
		check(pthread_create(&workers[i].thread, NULL, run, &workers[i]) == 0, "a thread");
	while (running < worker_count)
		sleep_for(1000);
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &nothing, 1) > 0)
		;
	ends = true;
	for (unsigned int i = 0; i < worker_count; i++)
		pthread_join(workers[i].thread, NULL);
	puts("intact");
	return EXIT_SUCCESS;
}
