#include "rm.h"

#include "faults.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In a file of its own: the C library declares that its `ioctl` does not call back, so the compiler would believe that rm.c's
 * variables stay as they are. */
int rm_call(int file, unsigned long request, void *argument)
{
	return ioctl(file, request, argument);
}

static int door(int file, unsigned long request, void *argument)
{
	return rm_is_file(file) ? rm_answer(request, argument) : (int)syscall(SYS_ioctl, file, request, argument);
}

/* The first eight bytes of a function that goes on at the door at once; as they are where that is too far, or unknown. */
static uint64_t lead_to_door(const unsigned char *function, uint64_t begin)
{
	int64_t distance = (int64_t)((uintptr_t)door - (uintptr_t)function);

#if defined(__x86_64__)
	distance -= 5; /* jmp */
	if (distance == (int32_t)distance)
		begin = (begin & ~UINT64_C(0xffffffffff)) | (uint64_t)(uint32_t)distance << 8 | 0xe9;
#elif defined(__aarch64__)
	if (distance < 1 << 27 && distance >= -(1 << 27)) /* b */
		begin = (begin & ~UINT64_C(0xffffffff)) | 0x14000000 | ((uint64_t)distance >> 2 & 0x3ffffff);
#endif
	return begin;
}

/* When the library is loaded. All of it at once: other threads may be on their way into the function. */
__attribute__((constructor)) static void open_door(void)
{
	void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	unsigned char *function = library ? dlsym(library, "ioctl") : NULL;
	uintptr_t page = (uintptr_t)function & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	size_t bytes = (uintptr_t)function + sizeof(uint64_t) - page;

	if (!function || mprotect((void *)page, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return;
	_Atomic uint64_t *begin = (_Atomic uint64_t *)(void *)function;

	atomic_store(begin, lead_to_door(function, atomic_load(begin)));
	__builtin___clear_cache((char *)function, (char *)function + sizeof *begin);
	mprotect((void *)page, bytes, PROT_READ | PROT_EXEC);
}
