#include "tests/support/painted_stack.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace kinglet {
namespace {

constexpr size_t kStackBytes = size_t{1} << 20;
constexpr unsigned char kPaint = 0xA5;

struct PaintedCall {
  const std::function<void()>& call;
  const unsigned char* frame = nullptr;  // an address in the frame below which the call's own lie
};

void* RunPainted(void* argument) {
  auto& painted = *static_cast<PaintedCall*>(argument);
  painted.frame = static_cast<const unsigned char*>(__builtin_frame_address(0));
  painted.call();
  return nullptr;
}

}  // namespace

size_t StackOf(const std::function<void()>& call) {
  void* const memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* const stack = static_cast<unsigned char*>(memory);
  std::memset(stack, kPaint, kStackBytes);
  PaintedCall painted = {call};
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0 ||
      pthread_attr_setstack(&attributes, stack, kStackBytes) != 0 ||
      pthread_create(&thread, &attributes, RunPainted, &painted) != 0 ||
      pthread_join(thread, nullptr) != 0) {
    std::abort();
  }
  pthread_attr_destroy(&attributes);
  const unsigned char* lowest = stack;
  while (*lowest == kPaint) ++lowest;
  const size_t bytes = static_cast<size_t>(painted.frame - lowest);
  munmap(memory, kStackBytes);
  return bytes;
}

}  // namespace kinglet
