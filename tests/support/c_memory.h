// The functions of the C library that allocate memory (malloc, calloc, realloc, aligned allocation,
// mmap), replaced in the programs that link c_memory.c by functions that ask first.
#ifndef KINGLET_TESTS_SUPPORT_C_MEMORY_H_
#define KINGLET_TESTS_SUPPORT_C_MEMORY_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// From now on each allocation asks may_allocate(), and fails with ENOMEM if the answer is 0.
// count(1) follows each allocation, count(-1) precedes each release.
void AskBeforeAllocating(int (*may_allocate)(void), void (*count)(int blocks));

// The C library's own functions, which do not ask.
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

#ifdef __cplusplus
}
#endif

#endif  // KINGLET_TESTS_SUPPORT_C_MEMORY_H_
