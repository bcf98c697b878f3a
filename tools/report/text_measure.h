// The losses and operations of a model on a text for `kinglet report`, in memory that does not grow
// with the text.
#ifndef KINGLET_TOOLS_REPORT_TEXT_MEASURE_H_
#define KINGLET_TOOLS_REPORT_TEXT_MEASURE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converters/texts/text_reader.h"
#include "runtime/accounting/exact_sum.h"
#include "runtime/accounting/trace.h"
#include "runtime/session.h"
#include "tools/loss_bins.h"
#include "tools/loss_totals.h"
#include "tools/paired_losses.h"

namespace kinglet {

// A scored token of the passage that is shown word by word.
struct PassageWord {
  uint64_t position = 0;  // in the text
  uint32_t id = 0;
  std::string typed;  // how an unknown word was typed; may be empty
  double log_probability = 0;
  uint32_t rank = 0;
  std::vector<Candidate> best;  // the words that were most probable there
  CacheContribution contribution;
};

// Losses of the same tokens with the neural cache and by the network alone.
struct CachedLoss {
  uint64_t tokens = 0;
  ExactSum mixed, network;  // log p

  void Add(double log_probability, const CacheContribution& contribution);
  // Means; NaN where there is no token.
  double nll() const { return (0.0 - mixed.Value()) / static_cast<double>(tokens); }
  double nll_network() const { return (0.0 - network.Value()) / static_cast<double>(tokens); }
};

// The effect of the neural cache on the scored tokens. Hits are tokens whose word the cache
// contained.
struct CacheTally {
  CachedLoss all, hits, misses;
  double hit_share() const {
    return static_cast<double>(hits.tokens) / static_cast<double>(all.tokens);
  }
};

struct TextFigures {
  uint64_t tokens = 0;  // of the text
  LossTotals totals;
  BlockLosses blocks;
  std::optional<TextSize> size;  // of the scored text; nullopt if the text is not known
  std::vector<LossBin> frequency, gaps;
  // Of a model with a neural cache; the bins are those of `gaps` by the network alone.
  std::optional<CacheTally> cache;
  std::vector<LossBin> network_gaps;
  std::vector<PassageWord> passage;  // the first scored tokens
  Trace trace;                       // of all tokens, a query for the full distribution after each
  std::vector<uint32_t> first_ids;   // of the text
};

class TextMeasure {
 public:
  struct Options {
    uint64_t passage = 0;    // words to keep, at most
    uint64_t first_ids = 0;  // ids to keep, at most
    uint32_t threads = 1;
  };
  // Errors: those of Session::Create and of a step.
  static Result<TextMeasure> Create(std::shared_ptr<const Model> model, const Options& options);

  // The text's next tokens. Errors: those of steps and queries, with the token's position.
  Status Add(const TokenSequence& piece);
  uint64_t tokens() const { return figures_.tokens; }
  TextFigures Finish() &&;

 private:
  TextMeasure(std::shared_ptr<const Model> model, const Options& options);
  Status AddToken(uint32_t id, std::string_view typed);
  Status Score(uint32_t id, std::string_view typed);
  void AddSize(const TokenSequence& piece);

  std::shared_ptr<const Model> model_;
  Options options_;
  std::unique_ptr<Session> session_;
  std::optional<uint32_t> unknown_;
  std::optional<uint32_t> pending_;  // to be fed before the next query
  FullTracer tracer_;
  FrequencyBins frequency_;
  GapBins gaps_, network_gaps_;
  TextFigures figures_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_TEXT_MEASURE_H_
