// Loaded before the C library (LD_PRELOAD): calls that read or write files fail or do less than was
// asked.
//
// FAULT_KIND  short  every call moves at most half of what was asked
//             eintr  every other call fails with EINTR
//             eio, enospc   the call number FAULT_AT, from 1, and all later ones of its kind fail
//             erofs  every file that is to be created, in any folder, is refused
//             enomem, enomem1   the allocation number FAULT_AT since main began fails, with all
//                     later ones, or alone: malloc, calloc, realloc, what aligns, and mmap
//             eagain   the thread number FAULT_AT, from 1, and all later ones are not started
// FAULT_CALLS names a file into which the number of counted calls, or of allocations, is written at
// the end.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/support/c_memory.h"

static long calls;

static int IsFile(int descriptor) {
  struct stat status;
  return descriptor > 2 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

// 0: continue; otherwise the error to fail with.
static int Fault(int writes) {
  const char* kind = getenv("FAULT_KIND");
  const char* at = getenv("FAULT_AT");
  ++calls;
  if (kind == NULL) return 0;
  if (strcmp(kind, "eintr") == 0) return calls % 2 == 1 ? EINTR : 0;
  if (at == NULL || calls < atol(at)) return 0;
  if (strcmp(kind, "eio") == 0) return EIO;
  return strcmp(kind, "enospc") == 0 && writes ? ENOSPC : 0;
}

static size_t Shortened(size_t count) {
  const char* kind = getenv("FAULT_KIND");
  if (kind == NULL || strcmp(kind, "short") != 0 || count < 2) return count;
  return count / 2;
}

static void* Next(const char* name) { return dlsym(RTLD_NEXT, name); }

#define FAIL_IF_ASKED(descriptor, writes) \
  if (IsFile(descriptor)) {               \
    const int error = Fault(writes);      \
    if (error != 0) {                     \
      errno = error;                      \
      return -1;                          \
    }                                     \
    count = Shortened(count);             \
  }

ssize_t read(int descriptor, void* out, size_t count) {
  FAIL_IF_ASKED(descriptor, 0)
  return ((ssize_t(*)(int, void*, size_t))Next("read"))(descriptor, out, count);
}

ssize_t pread(int descriptor, void* out, size_t count, off_t offset) {
  FAIL_IF_ASKED(descriptor, 0)
  return ((ssize_t(*)(int, void*, size_t, off_t))Next("pread"))(descriptor, out, count, offset);
}

ssize_t pread64(int descriptor, void* out, size_t count, off64_t offset) {
  FAIL_IF_ASKED(descriptor, 0)
  return ((ssize_t(*)(int, void*, size_t, off64_t))Next("pread64"))(descriptor, out, count, offset);
}

ssize_t write(int descriptor, const void* data, size_t count) {
  FAIL_IF_ASKED(descriptor, 1)
  return ((ssize_t(*)(int, const void*, size_t))Next("write"))(descriptor, data, count);
}

ssize_t writev(int descriptor, const struct iovec* parts, int number) {
  size_t count = 2;
  FAIL_IF_ASKED(descriptor, 1)
  if (count < 2 && number > 0) return write(descriptor, parts[0].iov_base, parts[0].iov_len);
  return ((ssize_t(*)(int, const struct iovec*, int))Next("writev"))(descriptor, parts, number);
}

int fsync(int descriptor) {
  size_t count = 0;
  FAIL_IF_ASKED(descriptor, 1)
  (void)count;
  return ((int (*)(int))Next("fsync"))(descriptor);
}

static int Is(const char* wanted) {
  const char* kind = getenv("FAULT_KIND");
  return kind != NULL && strcmp(kind, wanted) == 0;
}

static int Open(const char* name, const char* path, int flags, mode_t mode) {
  if ((flags & O_CREAT) != 0 && Is("erofs")) {
    errno = EROFS;
    return -1;
  }
  return ((int (*)(const char*, int, mode_t))Next(name))(path, flags, mode);
}

#define DEFINE_OPEN(name)                      \
  int name(const char* path, int flags, ...) { \
    va_list rest;                              \
    va_start(rest, flags);                     \
    const mode_t mode = va_arg(rest, mode_t);  \
    va_end(rest);                              \
    return Open(#name, path, flags, mode);     \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define DEFINE_MKSTEMP(name)                                   \
  int name(char* pattern, int flags) {                         \
    if (Is("erofs")) {                                         \
      errno = EROFS;                                           \
      return -1;                                               \
    }                                                          \
    return ((int (*)(char*, int))Next(#name))(pattern, flags); \
  }
DEFINE_MKSTEMP(mkostemp)
DEFINE_MKSTEMP(mkostemp64)

int mkstemp(char* pattern) { return mkostemp(pattern, 0); }
int mkstemp64(char* pattern) { return mkostemp(pattern, 0); }

int mkdir(const char* path, mode_t mode) {
  if (Is("erofs")) {
    errno = EROFS;
    return -1;
  }
  return ((int (*)(const char*, mode_t))Next("mkdir"))(path, mode);
}

typedef void* (*Run)(void*);
typedef int (*Create)(pthread_t*, const pthread_attr_t*, Run, void*);

#define DEFINE_CREATE(name)                                                                \
  int name(pthread_t* thread, const pthread_attr_t* attributes, Run run, void* argument) { \
    static long threads;                                                                   \
    const char* at = getenv("FAULT_AT");                                                   \
    if (Is("eagain") && at != NULL && ++threads >= atol(at)) return EAGAIN;                \
    return ((Create)Next(#name))(thread, attributes, run, argument);                       \
  }
DEFINE_CREATE(pthread_create)

// --- memory

static long allocations;        // since main began
static long failing_from = -1;  // -1: they are not counted
static long failing_to = LONG_MAX;

static int HasMemory(void) {
  if (failing_from < 0) return 1;
  const long number = __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
  return number < failing_from || number > failing_to;
}
static void IgnoreBlocks(int blocks) { (void)blocks; }

typedef int (*Main)(int, char**, char**);
static Main program;

static int CountedMain(int count, char** arguments, char** environment) {
  const char* at = getenv("FAULT_AT");
  if (Is("enomem") || Is("enomem1")) {
    failing_from = at != NULL ? atol(at) : LONG_MAX;
    if (Is("enomem1")) failing_to = failing_from;
    AskBeforeAllocating(HasMemory, IgnoreBlocks);
  }
  return program(count, arguments, environment);
}

int __libc_start_main(Main main, int count, char** arguments, void (*begin)(void),
                      void (*end)(void), void (*end_linker)(void), void* stack) {
  typedef int (*Start)(Main, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);
  program = main;
  return ((Start)Next("__libc_start_main"))(CountedMain, count, arguments, begin, end, end_linker,
                                            stack);
}

__attribute__((destructor)) static void Report(void) {
  const char* path = getenv("FAULT_CALLS");
  const int of_memory = failing_from >= 0;
  failing_from = -1;
  FILE* file = path != NULL ? fopen(path, "w") : NULL;
  if (file == NULL) return;
  fprintf(file, "%ld\n", of_memory ? allocations : calls);
  unsetenv("FAULT_KIND");
  fclose(file);
}
