#include "swap.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The part of linux/rseq.h's struct rseq that is written here. */
struct rseq_area {
	uint32_t cpu_id_start, cpu_id;
	volatile uint64_t sequence;
};

/* Where the C library has registered the area of each thread, from the thread pointer on. */
static ptrdiff_t offset;

static bool membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) == 0;
}

static bool has_sequences(void)
{
	const ptrdiff_t *found = dlsym(RTLD_DEFAULT, "__rseq_offset");
	const unsigned int *size = dlsym(RTLD_DEFAULT, "__rseq_size");
	bool is_there = found && size && *size > 0;

	if (is_there)
		offset = *found;
	return is_there;
}

bool swap_prepare(void)
{
	int saved = errno;
	bool can = has_sequences() && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ);

	errno = saved;
	return can;
}

void swap_end_all(void)
{
	int saved = errno;

	membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ);
	errno = saved;
}

/* From label 1 to label 2. The kernel leads an interrupted thread to label 4, and expects the signature of the
 * machine in front of the label. */
#define SEQUENCE                                 \
	".pushsection __rseq_cs, \"aw\"\n"       \
	"	.balign 32\n"                    \
	"3:	.long 0, 0\n"                    \
	"	.quad 1f, 2f - 1f, 4f\n"         \
	"	.popsection\n"

#if defined(__x86_64__)

static struct rseq_area *own_area(void)
{
	char *thread;

	__asm__("movq %%fs:0, %0" : "=r"(thread));
	return (struct rseq_area *)(void *)(thread + offset);
}

static inline enum swap_outcome swap_in(struct rseq_area *area, const struct swap *swap)
{
again:
	__asm__ goto(SEQUENCE
	             "	leaq 3b(%%rip), %%rcx\n"
	             "	movq %%rcx, %[sequence]\n"
	             "1:	cmpq %[alive], %[life]\n"
	             "	jne %l[look_differs]\n"
	             "	cmpq %[unchanged], %[guard]\n"
	             "	jne %l[look_differs]\n"
	             "	movl %[old], %%eax\n"
	             "	lock cmpxchgl %[new], %[word]\n"
	             "2:	jne %l[other_word]\n"
	             "	.pushsection __rseq_failure, \"ax\"\n"
	             "	.byte 0x0f, 0xb9, 0x3d\n"
	             "	.long 0x53053053\n"
	             "4:	jmp %l[again]\n"
	             "	.popsection\n"
	             :
	             : [sequence] "m"(area->sequence), [life] "m"(*swap->life), [alive] "r"(swap->alive),
	               [guard] "m"(*swap->guard), [unchanged] "r"(swap->unchanged), [word] "m"(*swap->word),
	               [old] "r"(swap->old), [new] "r"(swap->new)
	             : "memory", "cc", "rax", "rcx"
	             : again, look_differs, other_word);
	return SWAP_DONE;
look_differs:
	return SWAP_LOOK_DIFFERS;
other_word:
	return SWAP_OTHER_WORD;
}

#elif defined(__aarch64__)

static struct rseq_area *own_area(void)
{
	char *thread;

	__asm__("mrs %0, tpidr_el0" : "=r"(thread));
	return (struct rseq_area *)(void *)(thread + offset);
}

/* The store is the last instruction of the sequence. It fails if the word was written since the load, or at random. */
static inline enum swap_outcome swap_in(struct rseq_area *area, const struct swap *swap)
{
again:
	__asm__ goto(SEQUENCE
	             "	adrp x9, 3b\n"
	             "	add x9, x9, :lo12:3b\n"
	             "	str x9, %[sequence]\n"
	             "1:	ldr x9, %[life]\n"
	             "	cmp x9, %[alive]\n"
	             "	b.ne %l[look_differs]\n"
	             "	ldr x9, %[guard]\n"
	             "	cmp x9, %[unchanged]\n"
	             "	b.ne %l[look_differs]\n"
	             "	ldxr w9, %[word]\n"
	             "	cmp w9, %w[old]\n"
	             "	b.ne %l[other_word]\n"
	             "	stxr w9, %w[new], %[word]\n"
	             "2:	cbnz w9, %l[again]\n"
	             "	.pushsection __rseq_failure, \"ax\"\n"
	             "	.inst 0xd428bc00\n"
	             "4:	b %l[again]\n"
	             "	.popsection\n"
	             :
	             : [sequence] "m"(area->sequence), [life] "m"(*swap->life), [alive] "r"(swap->alive),
	               [guard] "m"(*swap->guard), [unchanged] "r"(swap->unchanged), [word] "Q"(*swap->word),
	               [old] "r"(swap->old), [new] "r"(swap->new)
	             : "memory", "cc", "x9"
	             : again, look_differs, other_word);
	return SWAP_DONE;
look_differs:
	return SWAP_LOOK_DIFFERS;
other_word:
	return SWAP_OTHER_WORD;
}

#endif

/* The kernel must not read the sequence after this library was unloaded. */
enum swap_outcome swap_while(const struct swap *swap)
{
	struct rseq_area *area = own_area();
	enum swap_outcome outcome = swap_in(area, swap);

	area->sequence = 0;
	return outcome;
}
