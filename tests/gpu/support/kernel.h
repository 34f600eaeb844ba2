/* What a program asks NVIDIA's kernel driver: this program's own `ioctl`, which passes all calls on. */
#ifndef TESTS_KERNEL_H
#define TESTS_KERNEL_H

#include <stdbool.h>

/* From here on, `listener` is told of each call of NVIDIA's kernel driver before it is made, in the thread that makes it. */
void kernel_listen(void (*listener)(unsigned long request, const void *argument));

/* Whether a library of this name (the end of its path) has asked NVIDIA's kernel driver anything since the last call. */
bool kernel_was_asked_by(const char *library);

#endif
