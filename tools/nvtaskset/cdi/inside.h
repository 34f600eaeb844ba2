/* The paths of a device in a container's image, and the call of its hook. */
#ifndef NVTASKSET_CDI_INSIDE_H
#define NVTASKSET_CDI_INSIDE_H

#include "state/group/group.h"
#include "state/pool/pool.h"

#define INSIDE_LIBRARY "/opt/nvtaskset/lib"   /* the host's installation of nvtaskset */
#define INSIDE_FRONT "/opt/nvtaskset/front"   /* only the names that the dynamic linker must find */
#define INSIDE_GROUPS GROUP_MOUNTS            /* with the group of the device */
#define INSIDE_POOLS POOL_MOUNTS           /* with the pool of the group */
#define INSIDE_PAGES POOL_PAGES            /* with the page of the group in the pool */
#define INSIDE_MPS "/opt/nvtaskset/mps"       /* the pipes of the control daemon of the device */
#define INSIDE_DRIVER "/etc/ld.so.conf.d/00-000-nvtaskset.driver" /* a link to the driver, made by the hook */

#define HOOK_NAME "nvtaskset-cdi-hook" /* argument 0; then the group's file, the driver's directory, "strict" or "" */

#endif
