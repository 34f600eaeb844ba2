/* Between who loads our library into a process and the library there. */
#ifndef NVTASKSET_ATTACH_ENTRY_H
#define NVTASKSET_ATTACH_ENTRY_H

#define ATTACH_LIBRARY "libnvtaskset-attach.so"

/* What the library exports: `const char *nvtaskset_attached(const char *told)` is called once it is loaded, and returns
 * NULL, or why it refuses to work, in one line; it is unloaded then. What it is told lasts until it returns. */
#define ATTACH_ENTRY "nvtaskset_attached"

#endif
