/*
 * Usage: small context|handler SIZE
 *
 * A thread sleeps on a stack of SIZE bytes: a context's, or a handler's signal stack. A known pattern fills all bytes
 * around the stack, and below the stack pointer from the red zone down. Prints "ready" before, and "intact" if the
 * pattern is unchanged when a byte has come.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <poll.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define SIZE_MAX_ 65536
#define AROUND 16384
#define GUARD 0x5a

static unsigned char arena[AROUND + SIZE_MAX_ + AROUND];
static unsigned char *const stack = arena + AROUND;
static size_t size;

static const struct timespec nap = {.tv_nsec = 20000000};
static struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

/* Fills the bytes from `low` to the stack pointer and sleeps until there is input. Returns 1 if all bytes are
 * unchanged; 0 if not, or if a sleep was cut short. Uses no stack itself. */
int sleep_in_guards(unsigned char *low, const struct timespec *nap, struct pollfd *input);

__asm__(".text\n"
        "sleep_in_guards:\n"
        "	mov %rdi, %r8\n"
        "	mov %rsi, %r9\n"
        "	mov %rdx, %r10\n"
        "	mov %rsp, %rcx\n"
        "	sub %rdi, %rcx\n"
        "	mov $0xa5, %al\n"
        "	rep stosb\n"
        "1:	mov $35, %eax\n" /* nanosleep */
        "	mov %r9, %rdi\n"
        "	xor %esi, %esi\n"
        "	syscall\n"
        "	test %rax, %rax\n"
        "	jnz 2f\n"
        "	mov $7, %eax\n" /* poll */
        "	mov %r10, %rdi\n"
        "	mov $1, %esi\n"
        "	xor %edx, %edx\n"
        "	syscall\n"
        "	test %rax, %rax\n"
        "	jz 1b\n"
        "	mov %r8, %rdi\n"
        "	mov %rsp, %rcx\n"
        "	sub %rdi, %rcx\n"
        "	mov $0xa5, %al\n"
        "	repe scasb\n"
        "	sete %al\n"
        "	movzbl %al, %eax\n"
        "	ret\n"
        "2:	xor %eax, %eax\n"
        "	ret\n");

_Static_assert(SYS_nanosleep == 35 && SYS_poll == 7, "as the code has them");

static volatile int held;

static void sleep_here(void)
{
	held = sleep_in_guards(stack, &nap, &input);
}

static void handle(int signal)
{
	sleep_here();
}

/* The signal interrupts this program's own code, not the C library's. */
static void sleep_in_handler(void)
{
	const stack_t signals = {.ss_sp = stack, .ss_size = size};
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	long result;

	if (sigaltstack(&signals, NULL) < 0 || sigaction(SIGUSR1, &action, NULL) < 0)
		return;
	__asm__ volatile("syscall" : "=a"(result) : "a"(SYS_kill), "D"(getpid()), "S"(SIGUSR1) : "rcx", "r11", "memory");
}

static bool is_guarded(const unsigned char *from, const unsigned char *to)
{
	bool guarded = true;

	for (; from < to; from++)
		guarded = guarded && *from == GUARD;
	return guarded;
}

int main(int count, char **arguments)
{
	static ucontext_t main_context, context;

	size = count == 3 ? strtoul(arguments[2], NULL, 10) : 0;
	if (size == 0 || size > SIZE_MAX_) {
		puts("Usage: small context|handler SIZE");
		return EXIT_FAILURE;
	}
	memset(arena, GUARD, sizeof arena);
	puts("ready");
	fflush(stdout);
	if (strcmp(arguments[1], "context") == 0) {
		getcontext(&context);
		context.uc_stack = (stack_t){.ss_sp = stack, .ss_size = size};
		context.uc_link = &main_context;
		makecontext(&context, sleep_here, 0);
		swapcontext(&main_context, &context);
	} else {
		sleep_in_handler();
	}
	bool guarded = is_guarded(arena, stack) && is_guarded(stack + size, arena + sizeof arena);

	puts(held && guarded ? "intact" : guarded ? "lost: bytes below the stack pointer, or a sleep"
	                                          : "lost: bytes around the stack");
	return held && guarded ? EXIT_SUCCESS : 3;
}
