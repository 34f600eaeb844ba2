/* Names of C++ functions as people write them. */
#ifndef NVTASKSET_DEMANGLE_H
#define NVTASKSET_DEMANGLE_H

/* Returns a clean text (terminal/text.h), which the caller frees; NULL if there is no memory. Where the machine has no
 * libstdc++, or the name is none of C++, it is the name as it is; so it is for a name that has no end, and for all that
 * come after it. A child process does it, which ends with us. */
char *demangle(const char *name);

#endif
