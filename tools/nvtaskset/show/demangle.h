/* Names of C++ functions as people write them. */
#ifndef NVTASKSET_DEMANGLE_H
#define NVTASKSET_DEMANGLE_H

/* Returns a clean text (terminal/text.h), which the caller frees; NULL without memory. A name that is not from C++
 * stays, and all names without libstdc++. A child process demangles, and ends with this process. After a name that
 * takes too long, this and all later names stay. */
char *demangle(const char *name);

#endif
