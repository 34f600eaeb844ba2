/* The tests of smctrl.c without nvtaskset: libsmctrl enforces its masks itself. */
/*
 * gpus: h200 turing blackwell
 * runs: bare
 * link: libsmctrl.so.0
 */
#include "smctrl.c"
