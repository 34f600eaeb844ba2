/* What a container with a device finds in its image, and how its hook is called. */
#ifndef NVTASKSET_CDI_INSIDE_H
#define NVTASKSET_CDI_INSIDE_H

#include "state/group/group.h"

#define INSIDE_LIBRARY "/opt/nvtaskset/lib"   /* where nvtaskset is installed on the host */
#define INSIDE_FRONT "/opt/nvtaskset/front"   /* with the names that the dynamic linker must find, and no others */
#define INSIDE_GROUPS GROUP_MOUNTS            /* with the group of the device */
#define INSIDE_MPS "/opt/nvtaskset/mps"       /* the pipes of the control daemon of the device */
#define INSIDE_DRIVER "/etc/ld.so.conf.d/00-000-nvtaskset.driver" /* a link to the driver, made by the hook */

#define HOOK_NAME "nvtaskset-cdi-hook" /* as argument 0; behind it stand the group's file, the driver's directory, "strict" or "" */

#endif
