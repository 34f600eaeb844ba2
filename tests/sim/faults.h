/*
 * How the simulator misbehaves on request, and how it ends a test that did something forbidden.
 *
 * SIM_FAULTS in the environment is a list of the names below, separated by commas.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include <stdbool.h>

#define FAULT_NO_TABLE "no-table"                 /* cuGetExportTable knows no callback table */
#define FAULT_SHORT_TABLE "short-table"           /* the callback table has too few entries */
#define FAULT_SLOT_TAKEN "slot-taken"             /* a debugger holds the one subscriber slot */
#define FAULT_NO_LAUNCH_EVENTS "no-launch-events" /* callbacks of domain 0xb cannot be enabled */
#define FAULT_LOST_LAUNCHES "lost-launches"       /* one launch in a thousand is not announced */
#define FAULT_BAD_QMD "bad-qmd"                   /* launch descriptors have an unknown version */
#define FAULT_NARROW_QMD "narrow-qmd"             /* launch descriptors have version 3.0 */
#define FAULT_DEVICE_RUNTIME "device-runtime"     /* kernels of every module can launch kernels */
#define FAULT_UNHEARD_NODES "unheard-nodes"       /* cuGraphAddNode_v2 is not announced */
#define FAULT_NO_DEVICE "no-device"               /* cuInit finds no GPU */
#define FAULT_HANG "hang"                         /* waiting for a kernel never ends */
#define FAULT_NO_CONTEXT "no-context"             /* contexts cannot be made, as with a full MPS server */
#define FAULT_NO_REGISTER "no-register"           /* no host memory can be registered */
#define FAULT_TIME_SLICES "time-slices"           /* the driver says that the process is no client of MPS */
#define FAULT_NO_ASIDE "no-aside"                 /* the kernel driver refuses to suspend channels */
#define FAULT_SECOND_ASIDE "second-aside"         /* it does every second time */
#define FAULT_KEEPS_ASIDE "keeps-aside"           /* it refuses to take them back */
#define FAULT_INERT_ASIDE "inert-aside"           /* it says that it has, and nothing stops */
#define FAULT_OLD_HANDLES "old-handles"           /* between two contexts, there were a thousand others */
#define FAULT_SLOW_CONTEXTS "slow-contexts"       /* contexts come and go slowly, and wait for their channels */
#define FAULT_SLOW_LAUNCHES "slow-launches"       /* calls that launch take 0.3 ms until the launch is announced */
#define FAULT_SLOW_LOADS "slow-loads"             /* the same, and 30 ms */
#define FAULT_NO_LAUNCHES "no-launches"           /* the driver refuses what it is to launch, as it does for want of resources */
#define FAULT_NO_SLICE "no-slice"                 /* the kernel driver sets no time slices */
#define FAULT_PAGEABLE "pageable"                 /* kernels may use any memory of the program */
#define FAULT_INCOHERENT "incoherent"             /* GPU and processor share a chip, and not their atomics */
#define FAULT_SLOW_NODES "slow-nodes"             /* ends the program if a node no longer fetches ahead */
#define FAULT_ODD_SEGMENTS "odd-segments"         /* the driver counts the words of segments, and not the bytes */
#define FAULT_NO_SEGMENTS "no-segments"           /* the driver announces no segments */
#define FAULT_TELLS_MEMORY "tells-memory"         /* the kernel driver tells memory, and contexts have some */
#define FAULT_HEARD_WAITS "heard-waits"           /* ends the program if a wait for the GPU is announced */
#define FAULT_SIGNALS "signals"                   /* SIGUSR1 comes in each cuGraphNodeSetEnabled */

/* Whether the environment asks for this one. */
bool fault(const char *name);

/* "simulated GPU: MESSAGE", one line on standard error, and SIGABRT. */
void fatal(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
