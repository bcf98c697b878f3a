// The limit on the memory that a model and its sessions take together, and how much of it is used.
// Sizes are in bytes.
#ifndef KINGLET_RUNTIME_MEMORY_BUDGET_H_
#define KINGLET_RUNTIME_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "kinglet/status.h"

namespace kinglet {

// A limit and the bytes claimed from it. Any number of threads may use a budget at the same time.
class MemoryBudget {
 public:
  // What can be addressed, so that a size that was claimed fits in size_t.
  static constexpr uint64_t kNoLimit = std::numeric_limits<size_t>::max();
  explicit MemoryBudget(uint64_t limit = kNoLimit) : limit_(limit) {}

  uint64_t limit() const { return limit_; }
  // Bytes that may still be claimed.
  uint64_t left() const { return limit_ - used_.load(std::memory_order_relaxed); }
  // Claims `bytes`, or returns false and claims nothing if fewer are left.
  bool Claim(uint64_t bytes) {
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  // REQUIRES: at least `bytes` are claimed.
  void Release(uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

// Owns bytes claimed from a budget, and releases them when it is destroyed.
class MemoryClaim {
 public:
  MemoryClaim() = default;
  // Takes over `bytes` that the caller has claimed.
  MemoryClaim(std::shared_ptr<MemoryBudget> budget, uint64_t bytes)
      : budget_(std::move(budget)), bytes_(bytes) {}
  MemoryClaim(MemoryClaim&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryClaim& operator=(MemoryClaim&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryClaim() {
    if (budget_) budget_->Release(bytes_);
  }
  // Claims more of the same budget, or returns false and claims nothing.
  bool Grow(uint64_t bytes) {
    if (!budget_->Claim(bytes)) return false;
    bytes_ += bytes;
    return true;
  }

 private:
  std::shared_ptr<MemoryBudget> budget_;
  uint64_t bytes_ = 0;
};

// Claims `bytes` for `what` of `asker`. Errors: KINGLET_OUT_OF_MEMORY if fewer are left.
inline Result<MemoryClaim> ClaimMemory(const std::shared_ptr<MemoryBudget>& budget, uint64_t bytes,
                                       const std::string& asker, const std::string& what) {
  if (budget->Claim(bytes)) return MemoryClaim(budget, bytes);
  return Status::Refusal(
      KINGLET_OUT_OF_MEMORY, asker, what,
      "at most the " + std::to_string(budget->left()) + " bytes left of the model's memory limit",
      std::to_string(bytes));
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_MEMORY_BUDGET_H_
