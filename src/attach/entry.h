/* The interface between the command, which loads our library into a process, and the library there. */
#ifndef NVTASKSET_ATTACH_ENTRY_H
#define NVTASKSET_ATTACH_ENTRY_H

#define ATTACH_LIBRARY "libnvtaskset-attach.so"

/* The function that the library exports, `const char *nvtaskset_attached(const char *argument)`, is called once the
 * library is loaded. It returns NULL, or one line that says why the library refuses to work; the library is then
 * unloaded. `argument` is valid until the function returns. */
#define ATTACH_ENTRY "nvtaskset_attached"

#endif
