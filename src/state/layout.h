/*
 * The memory of a segment, as owners and editors map it. */
#ifndef NVTASKSET_SEGMENT_LAYOUT_H
#define NVTASKSET_SEGMENT_LAYOUT_H

#include "base/memfd_find.h"
#include "segment.h"

#include <stddef.h>

/* How its file is made, by whom ever: with MFD_NOEXEC_SEAL, too, where the kernel knows that (Linux 6.3), as not every C library
 * does. Others may read what they inherit, and do no more: see handle.h. */
#define SEGMENT_FILE_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING)
#define SEGMENT_FILE_MODE 0644
#define SEGMENT_FILE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SEGMENT_NAME "nvtaskset"
#define SEGMENT_LINK MEMFD_LINK(SEGMENT_NAME) /* /proc/PID/maps shows it like this, too */

#define SEGMENT_MAGIC UINT64_C(0x6b73617464766e01) /* no text, so that no text file is taken for a segment */
#define SEGMENT_MOVED UINT64_C(0x6b73617464766e02) /* in its place, once all has moved to a new file */
#define SEGMENT_VERSION 4
#define SEGMENT_RING 8
#define SEGMENT_REVISION_WORDS (sizeof(struct segment_revision) / sizeof(uint64_t))

/*
 * 8-byte words in the machine's byte order:
 *
 *   0    magic, version, size,
 *        owner, 2 words          written once, magic last; SEGMENT_MOVED in its place when all moves to a new file
 *        execution               in which the library is at work, see segment_execution; 0 before it is
 *        out of force            not 0 where the library does not obey yet
 *   64   the revision in force   raised by editors
 *   128  counters                added to by the owner; apart from what launches only read
 *   256  the places              where the owner's threads count launches
 *   4352 the ring of revisions   revision n stands at place n % SEGMENT_RING
 *
 * Revisions are read while they are written: see base/ring.h.
 */
struct segment_memory {
	_Atomic uint64_t magic;
	uint32_t version;
	uint32_t size;
	struct identity owner;
	_Atomic uint64_t execution;
	_Atomic uint64_t out_of_force;
	_Alignas(64) _Atomic uint64_t number;
	_Alignas(64) _Atomic uint64_t refreshed;
	_Atomic uint64_t reasons[15];
	struct segment_place places[SEGMENT_PLACES];
	_Alignas(64) _Atomic uint64_t ring[SEGMENT_RING][SEGMENT_REVISION_WORDS];
};

_Static_assert(sizeof(struct pci_address) == 8, "shared layout");
_Static_assert(sizeof(struct segment_partition) == 40, "shared layout");
_Static_assert(sizeof(struct segment_revision) == 8 + SEGMENT_GPUS * 40, "shared layout");
_Static_assert(offsetof(struct segment_memory, owner) == 16, "shared layout");
_Static_assert(offsetof(struct segment_memory, number) == 64, "shared layout");
_Static_assert(offsetof(struct segment_memory, refreshed) == 128, "shared layout");
_Static_assert(offsetof(struct segment_memory, places) == 256, "shared layout");
_Static_assert(offsetof(struct segment_memory, ring) == 4352, "shared layout");
_Static_assert(sizeof(struct segment_place) == 64, "shared layout");
_Static_assert(SEGMENT_REASON_COUNT <= 15, "shared layout");

/* Of a side that holds none. */
extern const struct segment segment_closed;

/* Whether a file that calls itself a segment has its size and its seals: its process may be hostile. */
bool segment_is_file(int file);

/* Makes a file, maps it, and makes its handle, in place of the one given, or of none (-1). The memory is all zero. -1 with the
 * reason. */
int segment_make(struct segment *segment, int in_place_of, struct error *error);

/* Maps the file, which is one, for what it is open for, and takes it over; `segment_closed`, with errno, where that fails. */
struct segment segment_map(int file);

/* Whether a hold's file is open for writing, and its memory mapped so. */
bool segment_may_write(const struct segment *segment);

/* Takes an editor's lock, which its hold has until segment_edit ends or it is closed. Waits a bounded time. -1 with the
 * reason. */
int segment_lock(const struct segment *segment, struct error *error);

/* A hold on memory that is there, without a file. */
struct segment segment_in(struct segment_memory *memory);

/* Puts a revision into the ring; it is in force when the number is raised. */
void segment_store(struct segment_memory *memory, uint64_t number, const struct segment_revision *revision);

#endif
