/*
 * The kernel's time, which never goes backward: CLOCK_MONOTONIC of the host. A program may replace the C library's
 * functions of time, and a container may have its own clock (time_namespaces(7)): neither has an effect here. Times in
 * shared memory mean the same to all processes. errno is preserved; no cancellation point.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* The host's time, the same in all processes: in ns; in ms with fractions. No system call, unless the kernel offers no
 * other way. */
uint64_t process_clock_ns(void);
double clock_ms(void);

/* In ms since the machine started, suspended or not, by the process's own clock, as in /proc. */
double clock_boot_ms(void);

/* A time of process_clock_ns on the process's own CLOCK_MONOTONIC, for system calls. */
struct timespec clock_for_kernel(uint64_t ns);

/* Pauses the thread for `microseconds`; shorter if a signal comes. */
void clock_pause_us(long microseconds);

/* Finds the kernel's function and the process's namespace: when the library is loaded, and in the child of a fork,
 * perhaps in another namespace. */
void clock_begin(void);

/* --- vdso.c ------------------------------------------------------------------------------------------------------- */

/*
 * Functions that the kernel maps into each process (the vDSO; vdso(7)). Uses no name of the C library, since a program
 * may replace each name.
 */

/* The function of a name; NULL if the kernel maps no function of the name. No system call. */
void *vdso_function(const char *name);

/* The same in an image of at most `size` bytes. Nothing outside is read, also of a broken image. */
const void *vdso_find(const void *bytes, size_t size, const char *name);
