// BLEU of translations (Papineni et al. 2002) with the definition and the defaults of sacrebleu
// (Post 2018): one reference, tokens of mteval-v13a, mixed case, exponential smoothing.
#ifndef KINGLET_TOOLS_BLEU_H_
#define KINGLET_TOOLS_BLEU_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kinglet {

// The tokens of mteval-v13a: punctuation stands alone, but for periods and commas inside numbers.
std::vector<std::string> Tokens13a(std::string_view text);

struct BleuFigures {
  double bleu = 0;                     // 0 to 100
  std::array<double, 4> precisions{};  // of 1 to 4 tokens, in per cent
  double brevity_penalty = 1;
  uint64_t tokens = 0, reference_tokens = 0;
};

class Bleu {
 public:
  // What sacrebleu prints of these choices.
  static constexpr const char* kSignature = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp";

  void Add(std::string_view translation, std::string_view reference);
  uint64_t sentences() const { return sentences_; }
  // Of all sentences together.
  BleuFigures Figures() const;

 private:
  uint64_t sentences_ = 0, tokens_ = 0, reference_tokens_ = 0;
  std::array<uint64_t, 4> right_{}, all_{};  // n-grams of the translations, by n - 1
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BLEU_H_
