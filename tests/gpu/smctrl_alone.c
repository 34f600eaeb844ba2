/* The tests of smctrl.c without nvtaskset: libsmctrl enforces its masks itself. */
#include "smctrl.c"
