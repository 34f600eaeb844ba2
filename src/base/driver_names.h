/* The names by which programs load the driver library, and so our library in front of it. */
#ifndef NVTASKSET_DRIVER_NAMES_H
#define NVTASKSET_DRIVER_NAMES_H

#define DRIVER_NAME "libcuda.so.1"
#define DRIVER_OTHER_NAME "libcuda.so"         /* some programs try this name first */
#define DRIVER_LINK "libnvtaskset-driver.so.1" /* the name by which our library depends on the driver: a link to it */

#endif
