#include "tests/support/counted_memory.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace kinglet {
namespace {

std::atomic<int64_t> held{0}, peak{0};

void* Allocate(size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) return nullptr;
  const int64_t now = held += static_cast<int64_t>(malloc_usable_size(memory));
  int64_t most = peak;
  while (most < now && !peak.compare_exchange_weak(most, now)) {
  }
  return memory;
}

void Free(void* memory) {
  if (memory != nullptr) held -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

CountedMemory::CountedMemory() : start_(held) { peak = start_; }
uint64_t CountedMemory::Peak() const { return static_cast<uint64_t>(peak - start_); }

}  // namespace kinglet

void* operator new(size_t bytes) {
  if (void* memory = kinglet::Allocate(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return kinglet::Allocate(bytes);
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t& tag) noexcept {
  return operator new(bytes, tag);
}
void operator delete(void* memory) noexcept { kinglet::Free(memory); }
void operator delete(void* memory, size_t /*bytes*/) noexcept { kinglet::Free(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  kinglet::Free(memory);
}
void operator delete[](void* memory) noexcept { kinglet::Free(memory); }
void operator delete[](void* memory, size_t /*bytes*/) noexcept { kinglet::Free(memory); }
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept {
  kinglet::Free(memory);
}
