/* Names of C++ functions as people write them. */
#pragma once

/* Returns a clean text (terminal/text.h), which the caller frees; NULL without memory. Without libstdc++, and for a
 * name outside C++, the name itself. A child process demangles, and ends with this process. After a name that takes too
 * long, all names stay. */
char *demangle(const char *name);
