/*
 * MPS as programs see it that may be its clients: the pipe of a control daemon. No daemon reads it, so this is for simulated
 * GPUs.
 */
#ifndef TESTS_MPS_H
#define TESTS_MPS_H

/* From here on, until the other: for this process and its children. Fail the running cmocka test if they fail. */
void mps_pretend(void);
void mps_pretend_no_more(void);

#endif
