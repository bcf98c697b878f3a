// Whether one model's loss on a text is below another's, or the difference is noise.
#ifndef KINGLET_TOOLS_PAIRED_LOSSES_H_
#define KINGLET_TOOLS_PAIRED_LOSSES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tools/json_lines.h"

namespace kinglet {

// Sums of losses over text blocks: neighbouring scored tokens.
class BlockLosses {
 public:
  static constexpr uint64_t kTokens = 50;  // of a text block; the last one may have fewer

  void Add(double loss);
  uint64_t tokens() const { return tokens_; }
  std::span<const double> sums() const { return sums_; }
  double Mean() const;  // REQUIRES: tokens() > 0

 private:
  std::vector<double> sums_;
  uint64_t tokens_ = 0;
};

// The second model's mean loss minus the first one's, in nats a token.
struct PairedDifference {
  double mean = 0;
  // The 95 % confidence interval. Losses of neighbouring tokens are correlated, so text blocks are
  // taken as independent: the differences of at most 200 blocks, weighted by their tokens, with
  // Student's t. Absent with fewer than 10 blocks, which give no variance, or if a loss is
  // infinite.
  struct Interval {
    double low = 0, high = 0;
  };
  std::optional<Interval> interval;
  uint64_t blocks = 0, block_tokens = 0;
};
// REQUIRES: equal numbers of tokens, at least 1.
PairedDifference Compare(const BlockLosses& first, const BlockLosses& second);
// The member "difference" of a line of JSON.
void AppendDifference(const PairedDifference& found, JsonLine& line);

// The 97.5th percentile of Student's t distribution, within 0.001. REQUIRES: freedom >= 9.
double StudentsT(uint64_t freedom);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_PAIRED_LOSSES_H_
