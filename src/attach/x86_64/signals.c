/*
 * x86-64, Linux (attach/machine.h): signal handlers.
 */
#ifdef __x86_64__

#include "attach/machine.h"

#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* mov $15, %rax; syscall. Debuggers recognize handlers' frames by these bytes, so the C library does not
 * change them. */
static const unsigned char return_from_signal[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

#define CHUNK 65536

/* The address of the bytes in the mapping; 0 if they are not there. */
static uint64_t find_in_mapping(const struct memory *memory, const struct mapping *mapping, const unsigned char *bytes,
                                size_t length)
{
	static unsigned char chunk[CHUNK + 16];
	uint64_t found = 0;

	for (uint64_t at = mapping->start; at < mapping->end && !found; at += CHUNK) {
		size_t rest = mapping->end - at, size = rest < sizeof chunk ? rest : sizeof chunk;
		const unsigned char *place = NULL;

		if (memory_read(memory, at, chunk, size))
			place = memmem(chunk, size, bytes, length);
		found = place ? at + (uint64_t)(place - chunk) : 0;
	}
	return found;
}

uint64_t machine_find_signal_return(const struct memory *memory, const struct image *libc)
{
	uint64_t found = 0;

	for (size_t i = 0; i < memory->count && !found; i++) {
		const struct mapping *mapping = &memory->mappings[i];

		if (mapping->protection & PROT_EXEC && range_has(&libc->range, mapping->start))
			found = find_in_mapping(memory, mapping, return_from_signal, sizeof return_from_signal);
	}
	return found;
}

/* The frame that the kernel writes for a handler (arch/x86/kernel/signal_64.c). */
struct signal_frame {
	uint64_t restore;
	ucontext_t context;
};

uint64_t machine_interrupted_by_signal(const struct memory *memory, uint64_t frame)
{
	const size_t at = offsetof(struct signal_frame, context.uc_mcontext.gregs[REG_RIP]);
	uint64_t instruction;

	return memory_read(memory, frame + at, &instruction, sizeof instruction) ? instruction : 0;
}

#endif
