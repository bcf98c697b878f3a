// Memory of a session in which kernels gather the vectors of many lanes: a part for each thread
// that may run kernels at the same time, allocated with the session.
#ifndef KINGLET_KERNELS_WORK_MEMORY_H_
#define KINGLET_KERNELS_WORK_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace kinglet {

class WorkMemory {
 public:
  static constexpr uint64_t kAlignment = 64;

  // `threads` parts of `bytes` bytes, 64-byte aligned and not initialised. Throws std::bad_alloc.
  WorkMemory(size_t threads, uint64_t bytes) : taken_(threads) {
    parts_.reserve(threads);  // so that every part has an owner when memory runs out
    for (size_t i = 0; i < threads; ++i) {
      parts_.emplace_back(
          static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment})));
    }
  }
  // How many bytes the constructor allocates.
  static uint64_t Bytes(size_t threads, uint64_t bytes) {
    return threads * (bytes + sizeof(Memory) + sizeof(std::atomic<bool>));
  }

  // A part of the memory, which the caller owns until the object is destroyed.
  class Part {
   public:
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    ~Part() { taken_.store(false, std::memory_order_release); }
    std::byte* data() const { return data_; }

   private:
    friend class WorkMemory;
    Part(std::byte* data, std::atomic<bool>& taken) : data_(data), taken_(taken) {}
    std::byte* data_;
    std::atomic<bool>& taken_;
  };
  // Any thread may call Take. Throws std::bad_alloc if all parts are taken.
  Part Take() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!taken_[i].exchange(true, std::memory_order_acquire)) {
        return Part(parts_[i].get(), taken_[i]);
      }
    }
    throw std::bad_alloc();
  }

 private:
  struct Delete {
    void operator()(std::byte* memory) const {
      ::operator delete (memory, std::align_val_t{kAlignment});
    }
  };
  using Memory = std::unique_ptr<std::byte, Delete>;
  std::vector<Memory> parts_;
  std::vector<std::atomic<bool>> taken_;
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_WORK_MEMORY_H_
