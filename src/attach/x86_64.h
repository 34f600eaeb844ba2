/* What the parts of x86-64 (machine.h) share. */
#ifndef NVTASKSET_ATTACH_X86_64_H
#define NVTASKSET_ATTACH_X86_64_H

#include "machine.h"

/* The registers with which a thread makes an interrupted call again by itself, where the kernel would; else they stay. */
void x86_64_restart_call(struct user_regs_struct *registers);

/* Those with which it goes on at another instruction: no call is interrupted any more. */
struct user_regs_struct x86_64_go_on(const struct machine_state *state, uint64_t instruction);

#endif
