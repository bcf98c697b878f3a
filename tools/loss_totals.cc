#include "tools/loss_totals.h"

#include <cmath>
#include <cstdio>

#include "tools/console.h"

namespace kinglet {
namespace {

// The fraction of unknown words that gets a warning: perplexity counts all of them as one word.
constexpr double kManyUnknown = 0.05;

}  // namespace

double InBits(double nats) { return nats / std::log(2.0); }

void LossTotals::Add(double value, bool unknown) {
  all_.Add(value);
  ++scored_;
  if (unknown) {
    ++unknown_;
  } else {
    known_.Add(value);
  }
}

double LossTotals::unknown_share() const {
  return static_cast<double>(unknown_) / static_cast<double>(scored_);
}

double LossTotals::nll() const { return LossPer(scored_); }

double LossTotals::nll_without_unknown() const {
  return (0.0 - known_.Value()) / static_cast<double>(scored_ - unknown_);
}

// -sum would turn a sum of zero into minus zero.
double LossTotals::LossPer(uint64_t count) const {
  return (0.0 - all_.Value()) / static_cast<double>(count);
}

void AppendUnknown(const LossTotals& totals, JsonLine& line) {
  line.Key("oov").Integer(totals.unknown()).Key("oov_share").Number(totals.unknown_share());
}

void BeginStreamSummary(uint64_t tokens, const LossTotals& totals, JsonLine& line) {
  line.Key("tokens").Integer(tokens).Key("scored").Integer(totals.scored());
  line.Loss(totals.nll());
  AppendUnknown(totals, line);
}

void EndSummary(const LossTotals& totals, const std::optional<TextSize>& size,
                const std::string& protocol, std::string_view backend, JsonLine& line) {
  line.Key("ppl_without_oov").Number(std::exp(totals.nll_without_unknown()));
  if (size) {
    line.Key("words").Integer(size->words);
    line.Key("ppl_per_word").Number(std::exp(totals.LossPer(size->words)));
    line.Key("bits_per_byte").Number(InBits(totals.LossPer(size->bytes)));
    line.Key("bits_per_character").Number(InBits(totals.LossPer(size->characters)));
  }
  line.Key("protocol").Text(protocol).Key("backend").Text(backend);
}

Status RequireScored(const LossTotals& totals, const std::string& input_name) {
  if (totals.scored() > 0) return Status();
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, input_name, "tokens",
                         "at least one that is scored", "none");
}

void WarnOfUnknown(const LossTotals& totals, const std::string& input_name, bool has_tokenizer) {
  if (totals.unknown_share() <= kManyUnknown) return;
  char share[32];
  std::snprintf(share, sizeof(share), "%.1f", 100 * totals.unknown_share());
  // A model with a tokenizer of its own has tokenized the text with it.
  const char* const reason =
      has_tokenizer ? "the text may be of another language or kind than the model's"
                    : "the text may need the model's own tokenizer (convert --tokenizer)";
  PrintNote(input_name + ": " + share + " % of the scored tokens are unknown words: " + reason);
}

}  // namespace kinglet
