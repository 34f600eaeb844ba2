/* The interface between the command, which loads our library into a process, and the library there. */
#pragma once

#define ATTACH_LIBRARY "libnvtaskset-attach.so"

/* The function exported by the library, `const char *nvtaskset_attached(const char *argument)`, is called once the
 * library is loaded. The result is NULL, or one line with the reason why the library refuses to work; the library is
 * then unloaded. `argument` is valid until the function returns. */
#define ATTACH_ENTRY "nvtaskset_attached"
