/*
 * What the hardware writes when a kernel has ended (facts.md, "Releases"), and the release with which the driver
 * itself learns of the end.
 */
#ifndef SIM_RELEASE_H
#define SIM_RELEASE_H

#include "api.h"
#include "descriptor.h"

/* The kernel has ended: carries out the releases of all slots. Where the memory is gone, the context fails. */
void release_all(CUcontext context, const struct descriptor *descriptor);

/* The driver asks to be told of a plain launch's end, in slot 0 if there is one; then, that it was told. If not, the
 * context fails: on the hardware, the next synchronisation would never end. */
uint32_t release_ask_for_end(CUcontext context, CUstream stream, struct descriptor *descriptor);
void release_check_end(CUcontext context, uint32_t number);

#endif
