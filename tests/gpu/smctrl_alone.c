/* The same without nvtaskset: libsmctrl brings what enforces its masks. */
#include "smctrl.c"
