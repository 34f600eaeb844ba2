/*
 * Calls that change memory, in all threads: between begin and end, accounts (account.h) and driver may differ.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A call begins on the thread, and has ended. */
void memory_note_call(bool begins);

/* Whether no other thread is in a call. `number` gets the number of ended calls: if equal later, no call ended
 * between. */
bool memory_is_quiet(uint64_t *number);

/* Of the threads, only the caller is left in the child of a fork. */
void calls_in_progress_after_fork(void);
