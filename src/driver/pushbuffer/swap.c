#include "swap.h"

#include <dlfcn.h>
#include <stddef.h>

#if defined(__x86_64__)

/* The part of linux/rseq.h's struct rseq that is written here. */
struct rseq_area {
	uint32_t cpu_id_start, cpu_id;
	volatile uint64_t sequence;
};

/* Where the C library has registered the area of each thread, from the thread pointer on. */
static ptrdiff_t offset;

bool swap_prepare(void)
{
	const ptrdiff_t *found = dlsym(RTLD_DEFAULT, "__rseq_offset");
	const unsigned int *size = dlsym(RTLD_DEFAULT, "__rseq_size");
	bool is_there = found && size && *size > 0;

	if (is_there)
		offset = *found;
	return is_there;
}

static struct rseq_area *own_area(void)
{
	char *thread;

	__asm__("movq %%fs:0, %0" : "=r"(thread));
	return (struct rseq_area *)(void *)(thread + offset);
}

enum swap_outcome swap_while(const volatile uint64_t *guard, uint64_t unchanged, volatile uint32_t *word, uint32_t old,
                             uint32_t new)
{
	struct rseq_area *area = own_area();
	enum swap_outcome outcome = SWAP_DONE;

again:
	/* From label 1 to label 2. The kernel leads an interrupted thread to label 4, in front of which it expects
	 * the signature. */
	__asm__ goto(".pushsection __rseq_cs, \"aw\"\n"
	             "	.balign 32\n"
	             "3:	.long 0, 0\n"
	             "	.quad 1f, 2f - 1f, 4f\n"
	             "	.popsection\n"
	             "	leaq 3b(%%rip), %%rcx\n"
	             "	movq %%rcx, %[sequence]\n"
	             "1:	cmpq %[unchanged], %[guard]\n"
	             "	jne %l[guard_changed]\n"
	             "	movl %[old], %%eax\n"
	             "	lock cmpxchgl %[new], %[word]\n"
	             "2:	jne %l[other_word]\n"
	             "	.pushsection __rseq_failure, \"ax\"\n"
	             "	.byte 0x0f, 0xb9, 0x3d\n"
	             "	.long 0x53053053\n"
	             "4:	jmp %l[again]\n"
	             "	.popsection\n"
	             :
	             : [sequence] "m"(area->sequence), [guard] "m"(*guard), [unchanged] "r"(unchanged), [word] "m"(*word),
	               [old] "r"(old), [new] "r"(new)
	             : "memory", "cc", "rax", "rcx"
	             : again, guard_changed, other_word);
	goto done;
guard_changed:
	outcome = SWAP_GUARD_CHANGED;
	goto done;
other_word:
	outcome = SWAP_OTHER_WORD;
done:
	/* The kernel must not read the sequence after this library was unloaded. */
	area->sequence = 0;
	return outcome;
}

#else

bool swap_prepare(void)
{
	return false;
}

enum swap_outcome swap_while(const volatile uint64_t *guard, uint64_t unchanged, volatile uint32_t *word, uint32_t old,
                             uint32_t new)
{
	(void)guard, (void)unchanged, (void)word, (void)old, (void)new;
	return SWAP_GUARD_CHANGED;
}

#endif
