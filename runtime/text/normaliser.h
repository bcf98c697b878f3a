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

namespace kinglet {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581
// A text may have fewer bytes than this, before and after it is normalised.
inline constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

// Rules make a text at most so many times as long, and so many bytes longer: the largest rule of
// SentencePiece's own makes 33 bytes of 3.
inline constexpr uint64_t kMaxTextGrowth = 32, kFreeTextBytes = 4096;

// A text that is too long, for a refusal; and one whose cutting would take more than is left.
Status RefuseLongText(uint64_t bytes);
Status RefuseTextMemory(uint64_t bytes);

struct NormalisedText {
  std::string text;
  // [text.size() + 1]: the offset in the original of what made each byte; last, where the original
  // ended without the spaces that were removed.
  std::vector<uint32_t> origins;
};

class Normaliser {
 public:
  // `tables`' rules and the texts in `kept` are copied into tries, but their bytes are not: they
  // must outlive this. Texts in `kept` stay as they are wherever they stand, the longest first.
  Normaliser(const NormaliserTables& tables, bool space_suffix,
             const std::vector<std::string_view>& kept);

  // Takes any bytes: one that belongs to no character becomes U+FFFD. A text of which nothing is
  // left is empty, without origins. Errors: KINGLET_INVALID_ARGUMENT for a text that is too long,
  // or that grows by more than kMaxTextGrowth; KINGLET_OUT_OF_MEMORY if it grows to more than
  // `most` bytes.
  Result<NormalisedText> Normalise(std::string_view text, uint64_t most = kMaxTextBytes) const;

 private:
  struct Step {
    std::string_view made;
    size_t taken;  // bytes of the original
  };
  Step NextStep(std::string_view text) const;

  const NormaliserTables* tables_;
  bool space_suffix_;
  PrefixTrie rules_, kept_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_NORMALISER_H_
