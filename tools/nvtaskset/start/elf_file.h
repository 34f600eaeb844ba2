/*
 * ELF files. A file may be anything, and hostile: only a regular file is opened, and read, not mapped.
 */
#pragma once

#include <elf.h>
#include <limits.h>
#include <stdbool.h>

#if defined(__x86_64__)
#define ELF_FILE_MACHINE EM_X86_64
#define ELF_FILE_MACHINE_NAME "x86-64"
#define ELF_FILE_TRIPLET "x86_64-linux-gnu" /* Debian's directories have the name */
#elif defined(__aarch64__)
#define ELF_FILE_MACHINE EM_AARCH64
#define ELF_FILE_MACHINE_NAME "aarch64"
#define ELF_FILE_TRIPLET "aarch64-linux-gnu"
#else
#error "which ELF machine is this?"
#endif

/* Opens a regular file for reading, close-on-exec; never waits. -1 if there is no file to read. */
int elf_file_open(const char *path);

/* Whether the header is of this machine. */
bool elf_file_is_native(const Elf64_Ehdr *header);

/* Whether the file is a library of this machine's class and kind: the dynamic linker passes over any file else. */
bool elf_file_is_library(const char *path);

/* Reads the path of the dynamic linker that the file names. False: the file names no linker. */
bool elf_file_linker(int file, const Elf64_Ehdr *header, char linker[PATH_MAX]);

/* Whether the file is glibc's dynamic linker itself, under any name. */
bool elf_file_is_linker(int file, const Elf64_Ehdr *header);
