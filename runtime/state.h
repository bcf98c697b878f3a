// What a stream remembers, as a value: keep it, copy it, compare it, hash it, give it back to any
// session of the same model, or write it as bytes for another process. Copies share their pages, so
// a state taken from a stream that was saved a few tokens ago costs those tokens' pages, not the
// whole window and cache. Immutable but for assignment; states may be shared by threads like
// std::shared_ptr.
#ifndef KINGLET_RUNTIME_STATE_H_
#define KINGLET_RUNTIME_STATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/model.h"

namespace kinglet {

// Bytes of a stream's state that are kept and shared as one.
struct StatePage {
  static constexpr uint64_t kBytes = 4096;
  std::array<std::byte, kBytes> bytes;  // the last page of a state is filled up with zeros
  uint64_t digest;                      // XXH3-64 of the bytes
};
// Null: all zeros, as at the start of a stream. No other page is all zeros.
using SharedPage = std::shared_ptr<const StatePage>;

// Pages that cover the state of a stream.
inline uint64_t PageCount(const BufferLayout& layout) {
  return (layout.state_bytes + StatePage::kBytes - 1) / StatePage::kBytes;
}
// The page of these bytes, at most StatePage::kBytes. Throws std::bad_alloc.
SharedPage MakePage(std::span<const std::byte> bytes);

class State {
 public:
  // The start of a stream.
  explicit State(std::shared_ptr<const Model> model);
  // As a stream is after its `position`th token, `last_token`, behind a source of `source_length`
  // tokens (0: none). `pages` cover the model's state.
  State(std::shared_ptr<const Model> model, uint64_t position, uint32_t last_token,
        uint64_t source_length, std::vector<SharedPage> pages);

  const Model& model() const { return *model_; }
  uint64_t position() const { return position_; }  // tokens processed
  uint32_t last_token() const { return last_token_; }
  uint64_t source_length() const { return source_length_; }  // tokens encoded
  std::span<const SharedPage> pages() const { return pages_; }

  // Whether a session of `model` can take this state: the same file, and the same real type.
  bool Fits(const Model& model) const;

  // Equal states answer every query alike for ever: the same model, position, token, length of
  // the source and bytes.
  bool operator==(const State& other) const;
  // Equal for equal states, in every process on every machine.
  uint64_t Hash() const;

  // As bytes, all little-endian: "KGLS", version, real bytes, last token (u32 each), position,
  // tokens of the source (u64 each), the model's digest (32 hexadecimal digits), every written slot
  // of every state buffer, XXH3-64 of all that (u64). Slots no token has written are left out.
  uint64_t BlobBytes() const;
  // No state of `model` needs more.
  static uint64_t LargestBlobBytes(const Model& model);
  // REQUIRES: out.size() == BlobBytes().
  void WriteBlob(std::span<std::byte> out) const;
  // Errors: KINGLET_CORRUPT (no state, cut short, damaged), KINGLET_UNSUPPORTED_VERSION,
  // KINGLET_MISMATCH (of another model or backend), KINGLET_OUT_OF_MEMORY. Every index and code in
  // it is checked, so a forged blob can at worst give wrong probabilities. Reals must be finite: a
  // stream whose own numbers overflowed can be written but not read back.
  static Result<State> ReadBlob(std::shared_ptr<const Model> model,
                                std::span<const std::byte> blob);

 private:
  std::shared_ptr<const Model> model_;
  uint64_t position_ = 0;
  uint32_t last_token_ = 0;
  uint64_t source_length_ = 0;
  std::vector<SharedPage> pages_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_STATE_H_
