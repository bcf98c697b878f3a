// The bytes of a pickle, front to back: from memory, or from a file that is read as needed.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_INPUT_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "converters/checkpoints/pickle.h"
#include "kinglet/status.h"

namespace kinglet {

class PickleInput {
 public:
  // `bytes` or `stored` must outlive the input. `base` is added to offsets in messages.
  PickleInput(std::span<const std::byte> bytes, uint64_t base);
  PickleInput(const StoredPickle& stored, uint64_t base);

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return size_ - position_; }

  // The next `count` bytes; valid until the next call. Errors: KINGLET_INVALID_CHECKPOINT if fewer
  // are left, and those of StoredPickle::read.
  Result<std::span<const std::byte>> Take(uint64_t count);
  // The next bytes up to a newline, without it; valid until the next call. Errors: those of Take.
  Result<std::string_view> TakeLine();

 private:
  // Makes window_ contain at least `count` bytes from position_ on.
  Status Load(uint64_t count);
  std::span<const std::byte> Ahead() const { return window_.subspan(position_ - window_begin_); }

  const StoredPickle* stored_ = nullptr;  // nullptr: window_ is the entire pickle
  std::vector<std::byte> buffer_;
  std::span<const std::byte> window_;
  uint64_t window_begin_ = 0;
  uint64_t position_ = 0;
  uint64_t size_ = 0;
  uint64_t base_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_INPUT_H_
