/* Tests that all registers of a thread keep their values. */
#ifndef TESTS_ATTACH_REGISTERS_H
#define TESTS_ATTACH_REGISTERS_H

#include <stdbool.h>

/* Holds a pattern in every register, and below its stack pointer where a function may, while it counts to `turns`, and
 * says whether all of it is there afterwards. Another pattern each time. */
bool registers_hold(unsigned long turns);

#endif
