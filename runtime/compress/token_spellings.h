// The spellings of a model's tokens in byte order, to find those that continue a beginning byte by
// byte.
#ifndef KINGLET_RUNTIME_COMPRESS_TOKEN_SPELLINGS_H_
#define KINGLET_RUNTIME_COMPRESS_TOKEN_SPELLINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kinglet/status.h"
#include "runtime/model.h"

namespace kinglet::compress {

// How the tokens of a text follow each other.
enum class TokenStyle : uint8_t {
  kNone = 0,    // the network does not predict
  kSpaced = 1,  // tokens stand between white space
  kTyped = 2,   // like kSpaced, but marks are tokens of their own without white space
  kPieces = 3,  // spaces are parts of tokens
};

class TokenSpellings {
 public:
  // Ranks in byte order [low, high).
  struct Range {
    uint32_t low, high;
    bool empty() const { return low >= high; }
  };

  // Throws std::bad_alloc. REQUIRES: a model with words.
  TokenSpellings(const Model& model, TokenStyle style);

  uint32_t size() const { return static_cast<uint32_t>(ids_.size()); }
  Range all() const { return {0, size()}; }
  uint32_t IdOf(uint32_t rank) const { return ids_[rank]; }
  const std::vector<uint32_t>& ids() const { return ids_; }
  uint32_t LengthOf(uint32_t rank) const { return begins_[rank + 1] - begins_[rank]; }
  uint8_t ByteAt(uint32_t rank, uint32_t depth) const { return bytes_[begins_[rank] + depth]; }
  // The first rank of a range whose byte at `depth` is `byte` or more. REQUIRES: the spellings of
  // the range agree in the bytes before `depth`, and are longer.
  uint32_t FirstFrom(Range range, uint32_t depth, unsigned byte) const {
    while (range.low < range.high) {
      const uint32_t middle = range.low + (range.high - range.low) / 2;
      if (ByteAt(middle, depth) < byte) {
        range.low = middle + 1;
      } else {
        range.high = middle;
      }
    }
    return range.low;
  }

 private:
  std::vector<uint32_t> ids_, begins_;
  std::vector<uint8_t> bytes_;
};

// The styles that fit a model, of which an encoder chooses for each text.
std::vector<TokenStyle> StylesOf(const Model& model);

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_TOKEN_SPELLINGS_H_
