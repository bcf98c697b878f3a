// Everything that a stream remembers, as a value: a state can be kept, copied, compared, hashed,
// restored in any session of the same model, or written as bytes for another process. Copies share
// their pages: a state of a stream that was saved a few tokens ago takes the pages of those tokens,
// not the complete window and cache. Immutable except for assignment; threads may share states as
// they may share a std::shared_ptr.
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

// A part of a stream's state that states share as a unit.
struct StatePage {
  static constexpr uint64_t kBytes = 4096;
  std::array<std::byte, kBytes> bytes;  // zeros after the end of the state
  uint64_t digest;                      // XXH3-64 of the bytes
  MemoryClaim memory;                   // of the model's limit
};
// A page of zeros, as at the start of a stream, is always null.
using SharedPage = std::shared_ptr<const StatePage>;

// The number of pages that cover the state of a stream.
inline uint64_t PageCount(const BufferLayout& layout) {
  return (layout.state_bytes + StatePage::kBytes - 1) / StatePage::kBytes;
}
// Copies at most StatePage::kBytes bytes to a page, whose memory is claimed from the budget.
// KINGLET_OUT_OF_MEMORY if the budget has too little left. Throws std::bad_alloc.
Result<SharedPage> MakePage(std::span<const std::byte> bytes,
                            const std::shared_ptr<MemoryBudget>& budget);

// The pages of a state, which its copies share.
struct PageTable {
  std::vector<SharedPage> pages;
  MemoryClaim memory;  // of the model's limit, without the pages' own
};
// A table of PageCount pages of zeros. KINGLET_OUT_OF_MEMORY if a lane is larger than a session's
// limit, or the model's limit has no room for the table. Throws std::bad_alloc.
Result<std::shared_ptr<PageTable>> MakePageTable(const Model& model);

class State {
 public:
  // The state of a new stream.
  explicit State(std::shared_ptr<const Model> model);
  // The state of a stream that has processed `position` tokens, `last_token` the last of them, with
  // a source of `source_length` tokens, which is 0 without a source. `pages` cover the model's
  // state.
  State(std::shared_ptr<const Model> model, uint64_t position, uint32_t last_token,
        uint64_t source_length, std::shared_ptr<const PageTable> pages);

  const Model& model() const { return *model_; }
  uint64_t position() const { return position_; }  // tokens processed
  uint32_t last_token() const { return last_token_; }
  uint64_t source_length() const { return source_length_; }  // tokens encoded
  std::span<const SharedPage> pages() const { return table_->pages; }

  // Whether a session of `model` can take this state: the same file, and the same real type.
  bool Fits(const Model& model) const;

  // Whether model, position, last token, length of the source and bytes are the same. Streams in
  // equal states always give the same answers.
  bool operator==(const State& other) const;
  // A hash, which equal states have in common in every process and on every machine.
  uint64_t Hash() const;

  // The state as bytes, all little-endian: "KGLS", version, bytes of a real, last token (u32 each),
  // position, tokens of the source (u64 each), the model's digest (32 hexadecimal digits), every
  // slot of every state buffer that a token has written, XXH3-64 of all that (u64).
  uint64_t BlobBytes() const;
  // The most bytes that any state of `model` takes.
  static uint64_t LargestBlobBytes(const Model& model);
  // REQUIRES: out.size() == BlobBytes().
  void WriteBlob(std::span<std::byte> out) const;
  // Reads what WriteBlob wrote. Errors: KINGLET_CORRUPT (not a state, truncated, damaged),
  // KINGLET_UNSUPPORTED_VERSION, KINGLET_MISMATCH (of another model, or of a backend with another
  // real type), KINGLET_OUT_OF_MEMORY. Takes memory for the bytes given, rounded up to pages, and
  // for the table of pages, all claimed from the model's limit first. Every index and code is
  // checked, so a forged blob can at worst give wrong probabilities. Floats must be finite: the
  // state of a stream whose own values overflowed can be written but not read.
  static Result<State> ReadBlob(std::shared_ptr<const Model> model,
                                std::span<const std::byte> blob);

 private:
  std::shared_ptr<const Model> model_;
  uint64_t position_ = 0;
  uint32_t last_token_ = 0;
  uint64_t source_length_ = 0;
  std::shared_ptr<const PageTable> table_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_STATE_H_
