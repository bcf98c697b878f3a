#include "tools/score_pairs.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "converters/texts/pair_file.h"
#include "runtime/accounting/exact_sum.h"
#include "tools/json_lines.h"
#include "tools/replicas.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

class PairPrinter {
 public:
  PairPrinter(const RunOptions& run, const ScorePairsOptions& options, const Model& model,
              Console& console)
      : json_(run.json),
        tokens_(options.tokens),
        hex_(options.hex),
        model_(model),
        console_(console) {}

  void Add(uint64_t sentence, std::span<const uint32_t> ids, std::span<const double> values) {
    for (size_t i = 0; i < ids.size(); ++i) {
      total_.Add(values[i]);
      if (json_) {
        PrintJson(sentence, i, ids[i], values[i]);
      } else if (tokens_ || hex_) {
        PrintText(sentence, i, ids[i], values[i]);
      }
    }
    ++sentences_;
    scored_ += ids.size();
  }

  void PrintSummary() {
    const double nll = (0.0 - total_.Value()) / static_cast<double>(scored_);
    const std::string protocol = "pairs; source encoded; start token " +
                                 std::to_string(*model_.file().description().start_token) +
                                 " unscored; fresh state every sentence; no cache; digest " +
                                 model_.file().digest();
    if (json_) {
      JsonLine line(NumberDigits(model_));
      line.Key("sentences").Integer(sentences_);
      line.Key("tokens").Integer(scored_ + sentences_).Key("scored").Integer(scored_);
      line.Loss(nll).Key("protocol").Text(protocol).Key("backend").Text(model_.backend().name);
      console_.out.Write(line.Finish());
      return;
    }
    const auto print = [this](const char* name, const std::string& value) {
      console_.out.Write(FactLine(name, value));
    };
    print("sentences", Grouped(sentences_));
    print("scored", Grouped(scored_));
    print("nll", NumberText(nll, model_) + " nats per token");
    print("perplexity", NumberText(std::exp(nll), model_));
    print("protocol", protocol);
  }

 private:
  void PrintJson(uint64_t sentence, uint64_t position, uint32_t id, double value) {
    JsonLine line(NumberDigits(model_));
    line.Key("sentence").Integer(sentence).Key("pos").Integer(position).Key("id").Integer(id);
    if (model_.vocabulary() != nullptr) line.Token(model_.vocabulary()->Word(id));
    line.LogProbability(value);
    if (hex_) line.Key("hex").Text(HexBits(value, model_));
    console_.out.Write(line.Finish());
  }

  void PrintText(uint64_t sentence, uint64_t position, uint32_t id, double value) {
    char text[96];
    std::snprintf(text, sizeof(text), "%8llu %8llu %8u %18.*g",
                  static_cast<unsigned long long>(sentence),
                  static_cast<unsigned long long>(position), id, NumberDigits(model_), value);
    std::string line = text;
    if (hex_) line += "  " + HexBits(value, model_);
    if (model_.vocabulary() != nullptr) line += "  " + DisplayText(model_.vocabulary()->Word(id));
    console_.out.Write(line + "\n");
  }

  const bool json_, tokens_, hex_;
  const Model& model_;
  Console& console_;
  ExactSum total_;
  uint64_t sentences_ = 0, scored_ = 0;
};

}  // namespace

Status ScorePairs(const RunOptions& run, const ScorePairsOptions& options,
                  const std::shared_ptr<const Model>& model, Console& console) {
  const ModelDescription& description = model->file().description();
  if (FindBlock<TransformerEncoder>(description) == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, run.model, "--pairs", "a model with an encoder",
                           "a language model, which scores --ids or --text");
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<SentencePair> pairs,
                           ReadPairs(options.pairs, *description.start_token));
  KINGLET_ASSIGN_OR_RETURN(Replicas replicas,
                           Replicas::Create(model, SessionOptions{}, run.lanes, run.threads));
  PairPrinter printer(run, options, *model, console);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto score = [&](Session& session, std::vector<double>& answers) {
      return FeedPair(pairs[i], session, [&](uint32_t id) -> Status {
        KINGLET_ASSIGN_OR_RETURN(const double value, session.LogProbability(id));
        answers.push_back(value);
        return Status();
      });
    };
    const Result<std::vector<double>> values = replicas.Run<double>(0, score);
    if (!values.ok()) return InSentence(i, values.status());
    printer.Add(i, pairs[i].target, *values);
    KINGLET_RETURN_IF_ERROR(console.out.status());
  }
  printer.PrintSummary();
  return Status();
}

}  // namespace kinglet
