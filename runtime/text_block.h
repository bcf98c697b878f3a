// A text block: given tokens of one stream that go through the network together, so that each
// weight is read once for all of them. Every state, ring slot and log-probability has the bits that
// tokens one by one give:
//
// * Nodes that keep nothing from token to token run on all tokens at once, as on lanes.
// * Attention writes the keys and values of a token after the token before has read those of its
//   window. A kernel that takes one stream (Phase::takes_one_stream) does so for all tokens in one
//   run, head by head.
// * A pair of the neural cache is stored after the query for the token before. The cache's weights
//   are computed token by token, or, by a kernel that takes one stream, for tokens together: each
//   key is read once for them.
// * A recurrent network reads the states of the token before: its context nodes run token by token,
//   and only its softmax runs on all tokens.
#ifndef KINGLET_RUNTIME_TEXT_BLOCK_H_
#define KINGLET_RUNTIME_TEXT_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "runtime/execute.h"
#include "runtime/memory_budget.h"
#include "runtime/queries/distribution.h"
#include "runtime/stream.h"

namespace kinglet {

class TextBlock {
 public:
  // The most tokens of a text that go together; 1 if tokens go one by one: with a DeFINE unit that
  // keeps rows, whose memory belongs to one stream, and on a device, which has texts of its own
  // (DeviceLanes::ScoreText).
  static uint64_t TokensTogether(const Model& model);
  // The bytes that a text block of `tokens` tokens allocates.
  static uint64_t Bytes(const Model& model, uint64_t tokens);

  // `claim` covers Bytes(model, tokens). Throws std::bad_alloc. REQUIRES: the session's `model`,
  // `execution` and `memory` outlive the text block.
  template <class T>
  TextBlock(const Model& model, uint64_t tokens, EmptyCache empty_cache, Execution& execution,
            QueryMemory<T>& memory, MemoryClaim claim);

  // The most of the stream's next tokens that may go together.
  uint64_t MostTokens(const Stream& stream) const;

  // Processes the tokens, and writes the log-probability of next[i] after token i to out[i] for
  // each element of `next`. After an error, or std::bad_alloc, the stream is unchanged.
  // REQUIRES: 1 to MostTokens(stream) tokens; at most as many in `next`; out.size() == next.size().
  Status Process(std::span<const uint32_t> tokens, std::span<const uint32_t> next,
                 std::span<double> out, Computing computing, Stream& stream);

 private:
  // A range of context nodes that run in the same way.
  struct Part {
    NodeRange nodes;
    bool in_turn;  // each token runs all of these nodes before the next token
  };
  static std::vector<Part> PartsOf(const Model& model);

  std::byte* OwnState(size_t token) { return own_states_.get() + token * layout_.own_state_bytes; }
  Status RunContext(std::span<StreamFrame> frames);
  template <class T>
  Status Ask(std::span<const uint32_t> next, std::span<double> out, Computing computing,
             std::span<Distribution<T>> distributions);
  StreamFrame QueryFrame(size_t first, size_t i);
  Status AppendToCache(size_t token);
  Status ComputeCache(size_t token, size_t count);

  const Model& model_;
  const BufferLayout& layout_;
  Execution& execution_;
  MemoryClaim claim_;
  uint64_t tokens_;
  std::vector<Part> parts_;
  std::optional<size_t> append_;  // the node that stores a pair of the neural cache
  bool is_recurrent_;
  bool cache_takes_tokens_;             // the cache's kernels take several tokens at once
  AlignedMemory scratch_, own_states_;  // of each token
  AlignedMemory undo_;                  // Stream::BytesTogether
  // The query memory of kLanesTogether tokens that are asked together.
  AlignedMemory query_scratch_;
  template <class T>
  using Distributions = std::vector<Distribution<T>>;
  EitherReal<Distributions> distributions_;
  std::vector<StreamFrame> frames_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_BLOCK_H_
