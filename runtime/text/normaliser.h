// SentencePiece's normaliser: rewrites a text by rules, tidies its spaces, and remembers which byte
// of the original each byte comes from.
#ifndef KINGLET_RUNTIME_TEXT_NORMALISER_H_
#define KINGLET_RUNTIME_TEXT_NORMALISER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/text_tables.h"
#include "kinglet/status.h"
#include "runtime/text/prefix_trie.h"
#include "runtime/text/text_part.h"

namespace kinglet {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581
// A text may have fewer bytes than this, before and after it is normalised.
inline constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

// The factor by which rules may make a text longer, and the bytes that they may add beyond it. The
// largest of SentencePiece's own rules makes 33 bytes of 3.
inline constexpr uint64_t kMaxTextGrowth = 32, kFreeTextBytes = 4096;

// The refusal of a text of `bytes` bytes, which is too long.
Status RefuseLongText(uint64_t bytes);
// The refusal of a text of `bytes` bytes, for whose tokens too little memory is left.
Status RefuseTextMemory(uint64_t bytes);

struct NormalisedText {
  std::string text;
  // [text.size() + 1]: for each byte of `text` the offset of its origin in the original; last, the
  // end of the original without the spaces that were removed.
  std::vector<uint32_t> origins;
};

class Normaliser {
 public:
  // Texts in `kept` are not rewritten; where several begin at the same byte, the longest counts.
  // REQUIRES: the bytes of `tables` and `kept` outlive the normaliser, whose tries point to them.
  Normaliser(const NormaliserTables& tables, bool space_suffix,
             const std::vector<std::string_view>& kept);

  // Takes any bytes of a part of a text; a byte that belongs to no character becomes U+FFFD. If
  // nothing of the part remains, the result is empty, without origins. Errors:
  // KINGLET_INVALID_ARGUMENT for a text that is too long, or that grows by more than
  // kMaxTextGrowth; KINGLET_OUT_OF_MEMORY if the text grows to more than `most` bytes.
  Result<NormalisedText> Normalise(std::string_view text, uint64_t most, TextPart& part) const;
  // A whole text.
  Result<NormalisedText> Normalise(std::string_view text) const {
    TextPart whole;
    return Normalise(text, kMaxTextBytes, whole);
  }

 private:
  // The bytes that replace the first `taken` bytes of a text.
  struct Replacement {
    std::string_view made;
    size_t taken;
  };
  Replacement NextReplacement(std::string_view text) const;

  const NormaliserTables* tables_;
  bool space_suffix_;
  PrefixTrie rules_, kept_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_NORMALISER_H_
