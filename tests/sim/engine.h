/*
 * Work that takes time: kernels that a context has been given and that have not ended.
 *
 * A kernel named "where" whose blocks are busy for ENGINE_CYCLES or more takes half a nanosecond for each cycle, by
 * the clock of the machine; and longer by as much as the kernel has more blocks than its TPCs hold at once. All other
 * kernels end before their launch returns, as long as nothing is before them. The kernels of a context run one after
 * the other, whatever their stream; green contexts share their primary context's engine. While the context's channels
 * are suspended, nothing runs, and a kernel in its middle waits there.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "launch.h"

#define ENGINE_CYCLES 1000000

/* How many launches a channel takes while nothing runs: the next one waits (hardware.md). */
#define ENGINE_ROOM 1021

/* Waits until the channels take another launch, which engine_takes follows. */
void engine_wait_for_room(CUcontext context);

/* Takes the launch if it cannot run at once. False: the caller runs it at once, and says when it has. Until the
 * GPU fetches the launch, its descriptor is the one at `place`; NULL: that of a graph's node, which lies
 * elsewhere. */
struct segment_place;
bool engine_takes(const struct launch *launch, const struct descriptor *descriptor, const struct segment_place *place);
void engine_has_run(CUcontext context);

/* From here on, all later kernels of the context wait until the word has the value, as if all streams shared a
 * channel. */
void engine_wait_for_word(CUcontext context, const _Atomic uint32_t *word, uint32_t value);

/* From here on, the context's kernels wait, or run on. None ends after it was suspended: this waits for those that
 * are at their ends. */
void engine_put_aside(CUcontext context, bool is_aside);

/* Whether a context is suspended. */
bool engine_some_are_aside(void);

/* How long its kernels run before those of other programs do (turns.h); from its next kernel on. */
#define ENGINE_SLICE_US 2048
void engine_set_slice(CUcontext context, uint64_t slice_us);

/* Waits until all kernels of the context have ended. */
void engine_wait(CUcontext context);

/* The number of the context's last kernel; waits until that one has ended; whether it has. */
uint64_t engine_last(CUcontext context);
void engine_wait_for(CUcontext context, uint64_t kernel);
bool engine_has_ended(CUcontext context, uint64_t kernel);

/* Waits until no context is suspended, as calls that change what channels can reach do on the hardware. */
void engine_wait_for_all(void);

/* The context is about to be destroyed: waits for its kernels. */
void engine_forget(CUcontext context);

#endif
