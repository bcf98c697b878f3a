// The sums over the scored tokens of a text, and their members of a summary.
#ifndef KINGLET_TOOLS_LOSS_TOTALS_H_
#define KINGLET_TOOLS_LOSS_TOTALS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "converters/texts/text_size.h"
#include "kinglet/status.h"
#include "runtime/accounting/exact_sum.h"
#include "tools/json_lines.h"

namespace kinglet {

// Sums of log-probabilities over scored tokens.
class LossTotals {
 public:
  void Add(double value, bool unknown);

  uint64_t scored() const { return scored_; }
  uint64_t unknown() const { return unknown_; }  // tokens with the unknown word's id
  double unknown_share() const;
  double logprob() const { return all_.Value(); }
  double logprob_without_unknown() const { return known_.Value(); }
  // Mean losses; NaN where there is no token.
  double nll() const;
  double nll_without_unknown() const;
  // The total loss divided by `count`.
  double LossPer(uint64_t count) const;

 private:
  ExactSum all_, known_;
  uint64_t scored_ = 0, unknown_ = 0;
};

double InBits(double nats);

// Members of a summary: "oov" and "oov_share"; the last ones, from "ppl_without_oov" on. `size` is
// the size of the scored text, if the text is known.
void AppendUnknown(const LossTotals& totals, JsonLine& line);
void EndSummary(const LossTotals& totals, const std::optional<TextSize>& size,
                const std::string& protocol, std::string_view backend, JsonLine& line);
// The first members of the summary of a stream: "tokens" to "oov_share".
void BeginStreamSummary(uint64_t tokens, const LossTotals& totals, JsonLine& line);

// KINGLET_INVALID_ARGUMENT, naming `input_name`, if nothing was scored.
Status RequireScored(const LossTotals& totals, const std::string& input_name);
// Warns on standard error if many words are unknown.
void WarnOfUnknown(const LossTotals& totals, const std::string& input_name, bool has_tokenizer);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_LOSS_TOTALS_H_
