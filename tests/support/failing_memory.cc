#include "tests/support/failing_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

#ifdef KINGLET_FAILS_C_MEMORY
#include "tests/support/c_memory.h"
#endif

namespace kinglet {
namespace {

#ifdef KINGLET_FAILS_C_MEMORY
void* Plain(size_t bytes) { return __libc_malloc(bytes); }
void* Aligned(size_t alignment, size_t bytes) { return __libc_memalign(alignment, bytes); }
void Free(void* memory) { __libc_free(memory); }
#else
void* Plain(size_t bytes) { return std::malloc(bytes); }
void* Aligned(size_t alignment, size_t bytes) { return std::aligned_alloc(alignment, bytes); }
void Free(void* memory) { std::free(memory); }
#endif

constexpr int64_t kNever = INT64_MAX;

std::atomic<int64_t> good_left{kNever};  // good allocations; below 0: some have failed
std::atomic<bool> fails_once{false};
std::atomic<uint64_t> made{0};
std::atomic<int64_t> blocks{0};  // of operator new
[[maybe_unused]] std::atomic<int64_t> c_blocks{0};
std::atomic<uint64_t> made_by_new{0};

bool MaySucceed() {
  made.fetch_add(1, std::memory_order_relaxed);
  if (good_left.load(std::memory_order_relaxed) == kNever) return true;
  const int64_t before = good_left.fetch_sub(1, std::memory_order_relaxed);
  return fails_once.load(std::memory_order_relaxed) ? before != 0 : before > 0;
}

// Not inlined, like the functions below: otherwise the compiler sees that operator delete gets
// memory from malloc.
[[gnu::noinline]] void* TryAllocate(size_t bytes, size_t alignment) noexcept {
  made_by_new.fetch_add(1, std::memory_order_relaxed);
  if (!MaySucceed()) return nullptr;
  void* const memory = alignment == 0 ? Plain(bytes > 0 ? bytes : 1)
                                      : Aligned(alignment, (bytes / alignment + 1) * alignment);
  if (memory != nullptr) blocks.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void* AllocateOrThrow(size_t bytes, size_t alignment) {
  void* const memory = TryAllocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

[[gnu::noinline]] void Release(void* memory) noexcept {
  if (memory != nullptr) blocks.fetch_sub(1, std::memory_order_relaxed);
  Free(memory);
}

#ifdef KINGLET_FAILS_C_MEMORY
[[maybe_unused]] const bool c_memory_is_asked_for = [] {
  AskBeforeAllocating([] { return MaySucceed() ? 1 : 0; },
                      [](int more) { c_blocks.fetch_add(more, std::memory_order_relaxed); });
  return true;
}();
#endif

}  // namespace

FailingMemory::FailingMemory(int64_t good, Failing which) {
  fails_once = which == Failing::kOne;
  good_left = good;
}
FailingMemory::~FailingMemory() { good_left = kNever; }
bool FailingMemory::failed() const { return good_left < 0; }

uint64_t AllocationsMade() { return made; }
uint64_t AllocationsMadeByNew() { return made_by_new; }
int64_t BlocksHeld() { return blocks; }
int64_t BlocksOfTheCLibrary() { return c_blocks; }

}  // namespace kinglet

using kinglet::AllocateOrThrow;
using kinglet::Release;
using kinglet::TryAllocate;
using std::align_val_t;
using std::nothrow_t;

// NOLINTBEGIN(misc-new-delete-overloads)
void* operator new(size_t n) { return AllocateOrThrow(n, 0); }
void* operator new[](size_t n) { return AllocateOrThrow(n, 0); }
void* operator new(size_t n, const nothrow_t&) noexcept { return TryAllocate(n, 0); }
void* operator new[](size_t n, const nothrow_t&) noexcept { return TryAllocate(n, 0); }
void* operator new(size_t n, align_val_t a) { return AllocateOrThrow(n, static_cast<size_t>(a)); }
void* operator new[](size_t n, align_val_t a) { return AllocateOrThrow(n, static_cast<size_t>(a)); }
void* operator new(size_t n, align_val_t a, const nothrow_t&) noexcept {
  return TryAllocate(n, static_cast<size_t>(a));
}
void* operator new[](size_t n, align_val_t a, const nothrow_t&) noexcept {
  return TryAllocate(n, static_cast<size_t>(a));
}
void operator delete(void* p) noexcept { Release(p); }
void operator delete[](void* p) noexcept { Release(p); }
void operator delete(void* p, size_t) noexcept { Release(p); }
void operator delete[](void* p, size_t) noexcept { Release(p); }
void operator delete(void* p, const nothrow_t&) noexcept { Release(p); }
void operator delete[](void* p, const nothrow_t&) noexcept { Release(p); }
void operator delete(void* p, align_val_t) noexcept { Release(p); }
void operator delete[](void* p, align_val_t) noexcept { Release(p); }
void operator delete(void* p, size_t, align_val_t) noexcept { Release(p); }
void operator delete[](void* p, size_t, align_val_t) noexcept { Release(p); }
void operator delete(void* p, align_val_t, const nothrow_t&) noexcept { Release(p); }
void operator delete[](void* p, align_val_t, const nothrow_t&) noexcept { Release(p); }
// NOLINTEND(misc-new-delete-overloads)
