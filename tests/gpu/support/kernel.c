#include "kernel.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

typedef void kernel_listener(unsigned long request, const void *argument);

static _Atomic(kernel_listener *) listener;

void kernel_listen(kernel_listener *wanted)
{
	atomic_store(&listener, wanted);
}

#define ASKERS 64

static _Atomic(void *) askers[ASKERS]; /* addresses behind calls */
static atomic_uint asked;

bool kernel_was_asked_by(const char *library)
{
	bool found = false;
	Dl_info info;

	for (unsigned int i = 0; i < ASKERS; i++) {
		void *caller = atomic_exchange(&askers[i], NULL);

		if (caller && dladdr(caller, &info) && info.dli_fname) {
			size_t length = strlen(info.dli_fname), wanted = strlen(library);

			found = found || (length >= wanted && strcmp(info.dli_fname + length - wanted, library) == 0);
		}
	}
	return found;
}

typedef int door(int file, unsigned long request, ...);

/* Exported, so that all libraries of the program find it before the C library's. */
__attribute__((visibility("default"))) int ioctl(int file, unsigned long request, ...)
{
	static _Atomic(door *) next;
	int saved = errno;
	va_list arguments;

	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);

	va_end(arguments);
	if ((request >> 8 & 0xff) == 'F') { /* the driver's */
		kernel_listener *told = atomic_load(&listener);

		atomic_store(&askers[atomic_fetch_add(&asked, 1) % ASKERS], __builtin_return_address(0));
		if (told)
			told(request, argument);
	}
	if (!atomic_load(&next))
		atomic_store(&next, (door *)dlsym(RTLD_NEXT, "ioctl"));
	errno = saved;
	return atomic_load(&next)(file, request, argument);
}
