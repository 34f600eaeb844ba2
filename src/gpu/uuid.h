/*
 * A GPU's UUID as text, like nvidia-smi's.
 */
#ifndef NVTASKSET_UUID_H
#define NVTASKSET_UUID_H

#define UUID_BYTES 16
#define UUID_TEXT 41 /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" */

void uuid_format(const unsigned char bytes[UUID_BYTES], char text[UUID_TEXT]);

#endif
