/*
 * For tests of programs that are clients of MPS: what they see of it is the pipe of its daemon. On a simulated GPU, there is no
 * more than that; on a GPU, NVIDIA's daemon is started, and ends with the test's program. To be called before the program loads
 * the driver; children inherit it.
 */
#ifndef TESTS_CLIENT_H
#define TESTS_CLIENT_H

/* MPS is there; it is not there any more, which programs find out by themselves. For cmocka. */
int client_set_up(void **state);
int client_tear_down(void **state);

/* Its daemon has gone, for all who look for it; and is there again. */
void client_lose_mps(void);
int client_find_mps(void);

#endif
