/*
 * Usage: play STEP [ARGUMENT]...
 *
 * A CUDA program that runs the given steps, one after the other, to show what happens to its partition:
 *
 *   open NAME       opens a library
 *   global NAME     opens a library with global symbols, as Go does
 *   namespace NAME  opens it in a namespace of its own, and forgets it
 *   close           closes the library that was opened last
 *   where           opens the driver by name, and prints on which TPCs a kernel ran; in the same context every time
 *   context         makes the context, and nothing else
 *   errno           fails if a launch changes it
 *   signal          has SIGPIPE blocked and pending, and fails if a launch takes SIGPIPE away
 *   closefrom N     closes all descriptors from N on
 *   exec            executes itself again, for the following steps
 *   again FILE      executes itself again, for all its steps, if it can remove the file
 *   data FILE       closes standard error, and opens a file as descriptor 2, as a database; output FILE: only to write it
 *   fork            the child takes the following steps; the parent waits for it
 *   vfork PROGRAM   starts a program so, and waits for it; spawn PROGRAM: by posix_spawn
 *   allocate MIB    allocates so many mebibytes on each GPU in turn, and prints CUDA's results
 *   free            frees the last allocation
 *   room            prints how many mebibytes are free, and the total, on the first GPU
 *   launch          launches all the time, in a thread of its own
 *   busy            has kernels of 1 to 2 ms in flight all the time, in a thread of its own
 *   jobs P,A,B,N    does a job of N kernels every P µs, from now on, which takes A / TPCs + B µs in all
 *   iterations US   runs kernels of US µs, and prints the seconds of each end
 *   streams N       makes streams; stream-ends destroys the last, context-ends the context
 *   managed         allocates managed memory
 *   graph           launches the graph of the program, and prints the TPCs of the graph's kernel
 *   conditional     launches a graph whose one kernel is in the body of a conditional node
 *   watched         waits until somebody has looked at its times, and nobody does any more
 *   wait            prints "waiting", and waits for SIGUSR1
 *   proc            hides /proc, for a process that may
 */
#include "gpu.h"
#include "state/segment/events.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct gpu_under_test gpu;
static bool is_open;
static void *last_library;
static CUstream last_stream;
static char **all_arguments;

/* The word behind a step, and its name. */
#define STEP const char *argument, const char *step

static _Noreturn void stop(const char *what, const char *why)
{
	fprintf(stderr, "play: %s: %s\n", what, why);
	exit(EXIT_FAILURE);
}

static void open_library(const char *name, const char *how)
{
	if (strcmp(how, "namespace") == 0)
		last_library = dlmopen(LM_ID_NEWLM, name, RTLD_NOW);
	else
		last_library = dlopen(name, strcmp(how, "global") == 0 ? RTLD_NOW | RTLD_GLOBAL : RTLD_LAZY);
	if (!last_library)
		stop("open", dlerror());
}

static void close_library(STEP)
{
	dlclose(last_library);
}

static void be_in_context(STEP)
{
	if (!is_open) {
		gpu_initialise();
		gpu_open(&gpu, 0);
		is_open = true;
	}
}

static void say_where(STEP)
{
	char text[TPCSET_TEXT];

	be_in_context(NULL, NULL);
	struct tpcset ran = gpu_where(&gpu, NULL);

	puts(tpcset_format_list(&ran, text));
}

static void make_streams(const char *count, const char *step)
{
	be_in_context(NULL, NULL);
	for (long i = strtol(count, NULL, 10); i > 0; i--)
		gpu_check(cuStreamCreate(&last_stream, CU_STREAM_NON_BLOCKING));
}

static void end_stream(STEP)
{
	gpu_check(cuStreamDestroy_v2(last_stream));
}

static void end_context(STEP)
{
	gpu_close(&gpu);
	is_open = false;
}

/* From now on, a library that is linked with the driver launches the kernels. */
static void launch_through(const char *name, const char *how)
{
	open_library(name, how);
	int (*initialise)(void) = (int (*)(void))dlsym(last_library, "launcher_initialise");

	if (!initialise || initialise() != 0)
		stop("launcher", "it does not work");
	be_in_context(NULL, NULL);
	*(void **)&cuLaunchKernelEx = dlsym(last_library, "launcher_launch");
}

static void look_at_errno(STEP)
{
	be_in_context(NULL, NULL);
	errno = EDOM;
	gpu_launch_empty(&gpu);
	if (errno != EDOM)
		stop("errno", "it has changed");
}

static void look_at_signal(STEP)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGPIPE);
	be_in_context(NULL, NULL);
	gpu_launch_empty(&gpu);
	sigpending(&set);
	if (!sigismember(&set, SIGPIPE))
		stop("signal", "it has been taken away");
}

static void wait_for(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child)
		stop("child", "none");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		exit(EXIT_FAILURE);
}

static void go_on_in_child(STEP)
{
	pid_t child = fork();

	if (child != 0) {
		wait_for(child);
		exit(EXIT_SUCCESS);
	}
}

static void run_by_vfork(const char *program, const char *step)
{
	pid_t child = vfork();

	if (child == 0) {
		execlp(program, program, (char *)NULL);
		_exit(EXIT_FAILURE);
	}
	wait_for(child);
}

static void run_by_spawn(const char *program, const char *step)
{
	char *const arguments[] = {(char *)program, NULL};
	pid_t child;

	if (posix_spawnp(&child, program, NULL, NULL, arguments, environ) != 0)
		stop("spawn", program);
	wait_for(child);
}

static void become(char **steps)
{
	/* In place of the step. */
	steps[-1] = "play";
	execv("/proc/self/exe", steps - 1);
	stop("exec", "it cannot be executed");
}

static void start_again(const char *file, const char *step)
{
	if (unlink(file) == 0)
		execv("/proc/self/exe", all_arguments);
}

static void open_as_descriptor_2(const char *name, const char *how)
{
	close(STDERR_FILENO);
	if (open(name, (*how == 'd' ? O_RDWR : O_WRONLY) | O_CREAT, 0600) != STDERR_FILENO)
		exit(EXIT_FAILURE);
}

static CUdeviceptr allocated;

static void allocate(const char *mebibytes, const char *step)
{
	int count = 0;

	gpu_initialise();
	cuDeviceGetCount(&count);
	for (int device = 0; device < count; device++) {
		CUcontext context;
		CUresult result = cuDevicePrimaryCtxRetain(&context, device);

		if (result == CUDA_SUCCESS)
			result = cuCtxSetCurrent(context);
		if (result == CUDA_SUCCESS)
			result = cuMemAlloc_v2(&allocated, (size_t)atol(mebibytes) << 20);
		printf("%s%d", device > 0 ? " " : "", (int)result);
	}
	putchar('\n');
}

static void give_back(STEP)
{
	if (cuMemFree_v2(allocated) != CUDA_SUCCESS)
		stop("free", "it fails");
}

static void say_room(STEP)
{
	size_t free_bytes, total;
	CUcontext context;

	gpu_initialise();
	if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS ||
	    cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS)
		stop("room", "the driver does not say");
	printf("%zu/%zu\n", free_bytes >> 20, total >> 20);
}

static void *keep_launching(void *unused)
{
	cuCtxSetCurrent(gpu.context);
	while (is_open)
		gpu_launch_empty(&gpu);
	return NULL;
}

static void *keep_busy(void *unused)
{
	uint64_t cycles = 3000000;
	void *parameters[] = {&gpu.output, &cycles};

	cuCtxSetCurrent(gpu.context);
	while (is_open) {
		for (unsigned int i = 0; i < 4; i++)
			cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
		cuCtxSynchronize();
	}
	return NULL;
}

static void launch(STEP)
{
	pthread_t thread;

	be_in_context(NULL, NULL);
	if (pthread_create(&thread, NULL, *step == 'b' ? keep_busy : keep_launching, NULL) != 0)
		stop("launch", "no thread");
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Kernels of one block take half a nanosecond for each cycle on a simulated GPU, wherever they run. */
static _Noreturn void do_jobs(const char *numbers, const char *step)
{
	unsigned int period, a, b, kernels;

	if (sscanf(numbers, "%u,%u,%u,%u", &period, &a, &b, &kernels) != 4)
		stop("jobs", "needs four numbers");
	be_in_context(NULL, NULL);
	for (uint64_t next = now_us();; next += period) {
		struct tpcset tpcs = gpu_where(&gpu, NULL);
		uint64_t cycles = (a / tpcset_count(&tpcs) + b) * 2000 / kernels;
		void *parameters[] = {&gpu.output, &cycles};

		for (unsigned int i = 0; i < kernels; i++)
			cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
		cuCtxSynchronize();
		for (; next > now_us(); usleep(next - now_us() > 200 ? 200 : 1))
			;
	}
}

static _Noreturn void iterate(const char *us, const char *step)
{
	uint64_t cycles = strtoul(us, NULL, 10) * 2000;
	void *parameters[] = {&gpu.output, &cycles};

	for (be_in_context(NULL, NULL);; printf("%.6f\n", (double)now_us() / 1e6)) {
		cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
		cuCtxSynchronize();
	}
}

static void use_managed_memory(STEP)
{
	CUdeviceptr memory;

	be_in_context(NULL, NULL);
	if (cuMemAllocManaged(&memory, 4096, 1) != CUDA_SUCCESS)
		stop("managed", "no memory");
}

static void launch_graph(STEP)
{
	static CUgraphExec exec;
	char text[TPCSET_TEXT];
	uint64_t cycles = GPU_CYCLES;
	CUgraphNode node;
	CUgraph graph;

	be_in_context(NULL, NULL);
	if (!exec) {
		void *arguments[] = {&gpu.output, &cycles};
		const CUDA_KERNEL_NODE_PARAMS kernel = gpu_where_node(&gpu, arguments);

		gpu_check(cuGraphCreate(&graph, 0));
		gpu_check(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel));
		gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	}
	gpu_check(cuGraphLaunch(exec, NULL));
	struct tpcset ran = gpu_read_tpcs(&gpu, gpu.output, GPU_BLOCKS(&gpu));

	puts(tpcset_format_list(&ran, text));
}

static void launch_conditional(STEP)
{
	CUgraphExec exec;

	be_in_context(NULL, NULL);
	const CUDA_KERNEL_NODE_PARAMS nothing = {gpu.nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, gpu.context};

	gpu_check(cuGraphInstantiateWithFlags(&exec, gpu_conditional_graph(&gpu, &nothing), 0));
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
}

static void wait_for_signal(STEP)
{
	sigset_t signals;
	int signal;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	puts("waiting");
	sigwait(&signals, &signal);
}

static void wait_until_unwatched(STEP)
{
	struct segment segment = gpu_own_segment();

	while (!segment_is_watched(&segment))
		usleep(1000);
	while (segment_is_watched(&segment))
		usleep(1000);
	segment_close(&segment);
}

static void hide_proc(STEP)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/proc", "tmpfs", 0, NULL) < 0)
		stop("proc", "it cannot be hidden");
}

static void close_descriptors(STEP)
{
	closefrom(atoi(argument));
}

static const struct {
	const char *name;
	void (*play)(const char *argument, const char *step);
	int words;
} steps[] = {
	{"open", open_library, 2}, {"global", open_library, 2}, {"namespace", open_library, 2}, {"close", close_library, 1},
	{"launcher", launch_through, 2},
	{"where", say_where, 1}, {"context", be_in_context, 1}, {"errno", look_at_errno, 1}, {"signal", look_at_signal, 1},
	{"closefrom", close_descriptors, 2},
	{"again", start_again, 2}, {"data", open_as_descriptor_2, 2}, {"output", open_as_descriptor_2, 2}, {"fork", go_on_in_child, 1},
	{"vfork", run_by_vfork, 2}, {"spawn", run_by_spawn, 2}, {"allocate", allocate, 2},
	{"free", give_back, 1}, {"room", say_room, 1}, {"launch", launch, 1}, {"busy", launch, 1},
	{"streams", make_streams, 2}, {"stream-ends", end_stream, 1}, {"context-ends", end_context, 1},
	{"jobs", do_jobs, 2}, {"iterations", iterate, 2}, {"managed", use_managed_memory, 1},
	{"graph", launch_graph, 1}, {"conditional", launch_conditional, 1},
	{"watched", wait_until_unwatched, 1}, {"wait", wait_for_signal, 1}, {"proc", hide_proc, 1},
};

/* Runs a step, and returns how many words it takes. */
static int play(const char *step, const char *argument)
{
	size_t row = 0;

	while (row < sizeof steps / sizeof *steps && strcmp(step, steps[row].name) != 0)
		row++;
	if (row == sizeof steps / sizeof *steps)
		stop(step, "no such step");
	steps[row].play(argument, step);
	return steps[row].words;
}

int main(int count, char **arguments)
{
	setlinebuf(stdout);
	all_arguments = arguments;
	for (int i = 1; i < count;) {
		if (strcmp(arguments[i], "exec") == 0)
			become(&arguments[i + 1]);
		i += play(arguments[i], arguments[i + 1] ? arguments[i + 1] : "");
	}
	return EXIT_SUCCESS;
}
