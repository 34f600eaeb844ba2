/* Shared by the x86-64 files (attach/machine.h). */
#pragma once

#include "attach/machine.h"

/* Changes the registers to make the thread itself repeat an interrupted call, if the kernel would. Else no change. */
void x86_64_restart_call(struct user_regs_struct *registers);

/* The thread's registers, changed to continue at another instruction, without an interrupted call. */
struct user_regs_struct x86_64_go_on(const struct machine_state *state, uint64_t instruction);
