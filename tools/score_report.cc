#include "tools/score_report.h"

#include <cmath>
#include <cstdio>
#include <vector>

#include "converters/texts/text_reader.h"
#include "runtime/special_words.h"
#include "tools/run_options.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

// A larger share of unknown words is worth a warning: perplexity counts all of them as one word.
constexpr double kManyUnknown = 0.05;

double InBits(double nats) { return nats / std::log(2.0); }

}  // namespace

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

Result<ScoreReport> ScoreReport::Create(const ScoreReportOptions& options, const Model& model,
                                        Console& console) {
  ScoreReport report(options, model, console);
  if (options.by == "gap") {
    report.gaps_.emplace(model.vocabulary_size());
  } else if (options.by == "frequency") {
    if (options.counts.empty()) {
      report.frequency_.emplace(RanksByOrder(model.vocabulary_size()));
    } else if (model.vocabulary() == nullptr) {
      return Status::Refusal(KINGLET_UNSUPPORTED, options.counts, "words",
                             "a model with a vocabulary (or ranks by id, without --counts)",
                             "a model that has ids only");
    } else {
      KINGLET_ASSIGN_OR_RETURN(std::vector<uint32_t> ranks,
                               RanksByCounts(options.counts, *model.vocabulary()));
      report.frequency_.emplace(std::move(ranks));
    }
  }
  return report;
}

ScoreReport::ScoreReport(const ScoreReportOptions& options, const Model& model, Console& console)
    : options_(options),
      model_(&model),
      console_(&console),
      digits_(NumberDigits(model)),
      unknown_(SpecialWordsOf(model).unknown) {}

void ScoreReport::BeginText(const char* name, uint64_t number) {
  number_ = {name, number};
  text_ = LossTotals();
  if (gaps_) gaps_->BeginText();
}

void ScoreReport::Skip(uint32_t id) {
  if (gaps_) gaps_->Skip(id);
}

void ScoreReport::Add(uint64_t position, uint32_t id, const ScoredToken& token,
                      std::string_view typed) {
  const bool unknown = id == unknown_;
  const double value = token.log_probability;
  text_.Add(value, unknown);
  all_.Add(value, unknown);
  if (gaps_) gaps_->Add(id, value);
  if (frequency_) frequency_->Add(id, value);
  if (options_.tokens) PrintToken(position, id, token, typed);
}

double ScoreReport::InUnit(double logprob) const {
  return options_.log10 ? logprob / std::log(10.0) : logprob;
}

void ScoreReport::PrintToken(uint64_t position, uint32_t id, const ScoredToken& token,
                             std::string_view typed) {
  const auto& [value, place] = token;
  const Vocabulary* vocabulary = model_->vocabulary();
  if (options_.json) {
    JsonLine line = NewLine();
    if (number_) line.Key(number_->first).Integer(number_->second);
    line.Key("pos").Integer(position).Key("id").Integer(id);
    if (vocabulary != nullptr) line.Token(vocabulary->Word(id), typed);
    line.LogProbability(InUnit(value));
    if (options_.hex) line.Key("hex").Text(HexBits(value, *model_));
    if (place.rank) line.Key("rank").Integer(*place.rank);
    if (place.interval) {
      line.Key("interval").BeginArray();
      line.Integer(place.interval->low).Integer(place.interval->high).EndArray();
    }
    console_->out.Write(line.Finish());
    return;
  }
  std::string line;
  char text[64];
  if (number_) {
    std::snprintf(text, sizeof(text), "%8llu ", static_cast<unsigned long long>(number_->second));
    line += text;
  }
  std::snprintf(text, sizeof(text), "%8llu %8u %18.*g", static_cast<unsigned long long>(position),
                id, digits_, InUnit(value));
  line += text;
  if (options_.hex) line += "  " + HexBits(value, *model_);
  if (place.rank) {
    std::snprintf(text, sizeof(text), "  %8u", *place.rank);
    line += text;
  }
  if (place.interval) {
    std::snprintf(text, sizeof(text), "  [%llu, %llu)",
                  static_cast<unsigned long long>(place.interval->low),
                  static_cast<unsigned long long>(place.interval->high));
    line += text;
  }
  if (vocabulary != nullptr) line += "  " + DisplayToken(vocabulary->Word(id), typed);
  console_->out.Write(line + "\n");
}

void ScoreReport::PrintBins() const {
  const std::vector<LossBin> bins = frequency_ ? frequency_->Bins()
                                    : gaps_    ? gaps_->Bins()
                                               : std::vector<LossBin>();
  for (const LossBin& bin : bins) {
    const double nll = (0.0 - bin.logprob.Value()) / static_cast<double>(bin.tokens);
    if (options_.json) {
      JsonLine line = NewLine();
      line.Key("by").Text(options_.by).Key("from").Integer(bin.from).Key("to");
      bin.to ? line.Integer(*bin.to) : line.Null();
      line.Key("tokens").Integer(bin.tokens).Key("nll").Number(nll);
      if (std::isinf(nll)) line.Key("impossible").Boolean(true);
      console_->out.Write(line.Finish());
      continue;
    }
    const std::string range = !bin.to ? "never before"
                              : bin.from == *bin.to
                                  ? std::to_string(bin.from)
                                  : std::to_string(bin.from) + "-" + std::to_string(*bin.to);
    console_->out.Write(options_.by + " " + range + ": " + NumberText(nll, *model_) +
                        " nats per token, " + Grouped(bin.tokens) + " tokens\n");
  }
}

void ScoreReport::WriteUnknown(JsonLine& line) const {
  line.Key("oov").Integer(all_.unknown()).Key("oov_share").Number(all_.unknown_share());
}

void ScoreReport::WriteLoss(JsonLine& line) const { line.Loss(all_.nll()); }

Status ScoreReport::Finish(JsonLine& line, const std::string& source,
                           const std::optional<TextSize>& size, const std::string& protocol) const {
  KINGLET_RETURN_IF_ERROR(RequireScored(source));
  PrintBins();
  line.Key("ppl_without_oov").Number(std::exp(all_.nll_without_unknown()));
  if (size) {
    line.Key("words").Integer(size->words);
    line.Key("ppl_per_word").Number(std::exp(all_.LossPer(size->words)));
    line.Key("bits_per_byte").Number(InBits(all_.LossPer(size->bytes)));
    line.Key("bits_per_character").Number(InBits(all_.LossPer(size->characters)));
  }
  line.Key("protocol").Text(protocol).Key("backend").Text(model_->backend().name);
  console_->out.Write(line.Finish());
  KINGLET_RETURN_IF_ERROR(console_->out.Flush());
  WarnOfUnknown(source);
  return Status();
}

Status ScoreReport::Finish(const std::string& head, const std::string& source,
                           const std::optional<TextSize>& size, const std::string& protocol) const {
  KINGLET_RETURN_IF_ERROR(RequireScored(source));
  PrintBins();
  const auto print = [this](const char* name, const std::string& value) {
    console_->out.Write(FactLine(name, value));
  };
  const auto number = [this](double value) { return NumberText(value, *model_); };
  console_->out.Write(head);
  print("scored", Grouped(all_.scored()));
  print("nll", number(all_.nll()) + " nats per token");
  print("perplexity", number(std::exp(all_.nll())));
  print("unknown words", Grouped(all_.unknown()) + ", share " + number(all_.unknown_share()));
  print("without them", number(std::exp(all_.nll_without_unknown())));
  if (size) {
    print("per word",
          number(std::exp(all_.LossPer(size->words))) + ", " + Grouped(size->words) + " words");
    print("bits", number(InBits(all_.LossPer(size->bytes))) + " per byte, " +
                      number(InBits(all_.LossPer(size->characters))) + " per character");
  }
  print("protocol", protocol);
  KINGLET_RETURN_IF_ERROR(console_->out.Flush());
  WarnOfUnknown(source);
  return Status();
}

Status ScoreReport::RequireScored(const std::string& source) const {
  if (all_.scored() > 0) return Status();
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, source, "tokens", "at least one that is scored",
                         "none");
}

void ScoreReport::WarnOfUnknown(const std::string& source) const {
  if (all_.unknown_share() <= kManyUnknown) return;
  char share[32];
  std::snprintf(share, sizeof(share), "%.1f", 100 * all_.unknown_share());
  // A model that knows how its text is cut has cut this one so.
  const char* const advice =
      model_->text() == nullptr
          ? "If the model's own texts have fewer, it cuts text otherwise: see convert --tokenizer"
          : "The model's own texts have fewer if they are of another language or kind";
  PrintNote(source + ": " + share + " % of the scored tokens are unknown words, which count as " +
            "one word; perplexity without them is printed too. " + advice);
}

}  // namespace kinglet
