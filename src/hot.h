/*
 * What every launch touches lies together. The driver's own launch leaves little of us in the caches, so the callback takes
 * as long as the lines and pages are many that it waits for, and hardly longer for its instructions (docs/evaluation.md).
 */
#ifndef NVTASKSET_HOT_H
#define NVTASKSET_HOT_H

#define HOT_LINE 64 /* bytes */

#define HOT_CODE __attribute__((hot, aligned(HOT_LINE)))

/* One line in all, for which what is linked first (files go by name) is HOT_FIRST, too: at the begin of a line. */
#define HOT_DATA __attribute__((section("hot")))
#define HOT_FIRST _Alignas(HOT_LINE)

/* A thread's own, of the initial-exec model, begins a line where glibc lets it: to a library that is opened later, it gives
 * the alignment of its own thread control block and no more. On x86-64 that is a line; on aarch64 it is 32 bytes, and 16
 * before glibc 2.35. More, and dlopen fails: "cannot allocate memory in static TLS block". */
#ifdef __x86_64__
#define HOT_OWN_FIRST HOT_FIRST
#else
#define HOT_OWN_FIRST
#endif

#endif
