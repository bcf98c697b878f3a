#define _GNU_SOURCE
#include "tests/support/c_memory.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define REPLACES __attribute__((visibility("default")))

static int Always(void) { return 1; }
static void Ignore(int blocks) { (void)blocks; }

static int (*may_allocate_now)(void) = Always;
static void (*count_blocks)(int) = Ignore;

void AskBeforeAllocating(int (*may_allocate)(void), void (*count)(int blocks)) {
  may_allocate_now = may_allocate;
  count_blocks = count;
}

static int Refused(void) {
  if (may_allocate_now()) return 0;
  errno = ENOMEM;
  return 1;
}

static void* Counted(void* memory) {
  if (memory != NULL) count_blocks(1);
  return memory;
}

REPLACES void* malloc(size_t bytes) { return Refused() ? NULL : Counted(__libc_malloc(bytes)); }

REPLACES void* calloc(size_t count, size_t bytes) {
  return Refused() ? NULL : Counted(__libc_calloc(count, bytes));
}

REPLACES void free(void* memory) {
  if (memory != NULL) count_blocks(-1);
  __libc_free(memory);
}

REPLACES void* realloc(void* memory, size_t bytes) {
  if (memory == NULL) return malloc(bytes);
  if (bytes == 0) {
    free(memory);
    return NULL;
  }
  return Refused() ? NULL : __libc_realloc(memory, bytes);
}

REPLACES void* memalign(size_t alignment, size_t bytes) {
  return Refused() ? NULL : Counted(__libc_memalign(alignment, bytes));
}

REPLACES void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

REPLACES int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  void* const made = memalign(alignment, bytes);
  if (made == NULL) return ENOMEM;
  *memory = made;
  return 0;
}

REPLACES void* mmap(void* address, size_t bytes, int rights, int flags, int descriptor,
                    off_t offset) {
  if (Refused()) return MAP_FAILED;
  void* const made = (void*)syscall(SYS_mmap, address, bytes, rights, flags, descriptor, offset);
  return made == MAP_FAILED ? made : Counted(made);
}

REPLACES void* mmap64(void* address, size_t bytes, int rights, int flags, int descriptor,
                      off64_t offset) {
  return mmap(address, bytes, rights, flags, descriptor, offset);
}

REPLACES int munmap(void* address, size_t bytes) {
  count_blocks(-1);
  return (int)syscall(SYS_munmap, address, bytes);
}
