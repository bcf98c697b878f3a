// Compresses one block of bytes, or restores it: predicts each bit by a ByteModel, which takes the
// network's hints, and codes it.
#ifndef KINGLET_RUNTIME_COMPRESS_BLOCK_CODER_H_
#define KINGLET_RUNTIME_COMPRESS_BLOCK_CODER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kinglet/status.h"
#include "runtime/compress/token_spellings.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "runtime/special_tokens.h"

namespace kinglet::compress {

// What all blocks of a model share. Immutable; may be shared by threads.
class SharedWords {
 public:
  // Throws std::bad_alloc.
  explicit SharedWords(const Model& model);
  // The style in which the network knows the most of a text; kNone if it knows too little.
  TokenStyle StyleOf(std::span<const std::byte> text) const;
  // Null for a style that the model does not have.
  const TokenSpellings* Of(TokenStyle style) const;
  const SpecialTokens& special() const { return special_; }

 private:
  struct Spelt {
    TokenStyle style;
    TokenSpellings spellings;
  };
  std::vector<Spelt> spelt_;
  SpecialTokens special_;
};

// One block that is being coded. Runs until it needs the network's answer, so that several blocks
// can be lanes of one session.
class BlockCoder {
 public:
  // Compresses a block; `fast` mixes less. REQUIRES: `words` outlives the coder, and `text` too.
  static BlockCoder Compress(const SharedWords& words, std::span<const std::byte> text, bool fast);
  // Restores a block of `length` bytes. Any bytes give some text. KINGLET_CORRUPT for a style that
  // the model does not have. REQUIRES: `words` and `bytes` outlive the coder.
  static Result<BlockCoder> Restore(const SharedWords& words, std::span<const std::byte> bytes,
                                    size_t length);
  BlockCoder(BlockCoder&&) noexcept;
  BlockCoder& operator=(BlockCoder&&) noexcept;
  ~BlockCoder();

  // The bytes of memory that one coder of a block takes, without the block itself.
  static uint64_t MemoryOf(const Model& model, size_t length);

  // Codes until the end, or until tokens are waiting for the network.
  void Run();
  bool done() const;
  // REQUIRES: not done.
  std::span<const uint32_t> waiting() const;
  void SetProbabilities(std::span<const float> probabilities);
  // The compressed block, or the text. REQUIRES: done. Leaves the coder empty.
  std::vector<std::byte> Take();

 private:
  struct Contents;
  explicit BlockCoder(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

// Whether to stop; asked often, by several threads.
using StopAsked = std::function<bool()>;

// Runs each coder to its end as a lane of the session. `stop` may be empty. Errors: those of the
// session; KINGLET_CANCELLED once `stop` returns true. REQUIRES: at most as many coders as lanes.
Status RunCoders(Session& session, std::span<BlockCoder> coders, const StopAsked& stop);

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_BLOCK_CODER_H_
