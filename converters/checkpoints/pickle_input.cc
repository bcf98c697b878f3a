#include "converters/checkpoints/pickle_input.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "converters/checkpoints/refuse_checkpoint.h"

namespace kinglet {
namespace {

constexpr uint64_t kWindowBytes = uint64_t{64} << 10;
// Lines contain names and numbers; only protocol 0 also writes strings as lines.
constexpr uint64_t kLongestLine = uint64_t{16} << 20;

}  // namespace

PickleInput::PickleInput(std::span<const std::byte> bytes, uint64_t base)
    : window_(bytes), size_(bytes.size()), base_(base) {}

PickleInput::PickleInput(const StoredPickle& stored, uint64_t base)
    : stored_(&stored), size_(stored.size), base_(base) {}

Status PickleInput::Load(uint64_t count) {
  if (count > remaining()) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "pickle",
                           "byte " + std::to_string(base_ + position_),
                           std::to_string(count) + " more bytes",
                           "the end at byte " + std::to_string(base_ + size_) + kCopyAgain);
  }
  if (Ahead().size() >= count) return Status();
  // Bytes in memory never get here: their window contains all that remains.
  std::vector<std::byte> loaded(std::min(std::max(count, kWindowBytes), remaining()));
  KINGLET_RETURN_IF_ERROR(stored_->read(position_, loaded));
  buffer_ = std::move(loaded);
  window_ = buffer_;
  window_begin_ = position_;
  return Status();
}

Result<std::span<const std::byte>> PickleInput::Take(uint64_t count) {
  KINGLET_RETURN_IF_ERROR(Load(count));
  const std::span<const std::byte> taken = Ahead().first(count);
  position_ += count;
  return taken;
}

Result<std::string_view> PickleInput::TakeLine() {
  uint64_t wanted = 1;
  while (true) {
    KINGLET_RETURN_IF_ERROR(Load(wanted));
    const std::span<const std::byte> ahead = Ahead();
    const size_t searched = std::min<uint64_t>(ahead.size(), kLongestLine);
    const void* end = std::memchr(ahead.data(), '\n', searched);
    if (end != nullptr) {
      const auto* text = reinterpret_cast<const char*>(ahead.data());
      const auto length = static_cast<size_t>(static_cast<const char*>(end) - text);
      position_ += length + 1;
      return std::string_view(text, length);
    }
    if (searched == kLongestLine || ahead.size() == remaining()) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "pickle",
                             "byte " + std::to_string(base_ + position_), "a line that ends",
                             "no newline in " + std::to_string(searched) + " bytes" + kCopyAgain);
    }
    wanted = std::min(2 * static_cast<uint64_t>(ahead.size()), remaining());
  }
}

}  // namespace kinglet
