#include "tools/score_pairs.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/texts/pair_file.h"
#include "runtime/sentence_scorer.h"
#include "tools/json_lines.h"
#include "tools/score_protocol.h"

namespace kinglet {
namespace {

Status PrintPairsSummary(const RunOptions& run, const std::string& path, uint64_t sentences,
                         const Model& model, ScoreReport& report) {
  const std::string protocol = "pairs; source encoded; start token " +
                               std::to_string(*model.file().description().start_token) +
                               " unscored; fresh state every sentence; no cache" +
                               ProtocolEnd(model);
  if (!run.json) {
    return report.Finish(FactLine("sentences", Grouped(sentences)), path, std::nullopt, protocol);
  }
  JsonLine line = report.NewLine();
  const uint64_t scored = report.all().scored();
  line.Key("sentences").Integer(sentences);
  line.Key("tokens").Integer(scored + sentences).Key("scored").Integer(scored);
  line.Loss(report.all().nll());
  AppendUnknown(report.all(), line);
  return report.Finish(line, path, std::nullopt, protocol);
}

}  // namespace

Status ScorePairs(const RunOptions& run, const std::string& path, const PlaceQuestions& places,
                  const std::shared_ptr<const Model>& model, ScoreReport& report,
                  Console& console) {
  const ModelDescription& description = model->file().description();
  if (!HasEncoder(description)) {
    return Status::Refusal(KINGLET_UNSUPPORTED, run.model, "--pairs", "a model with an encoder",
                           "a language model, which scores --ids or --text");
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<SentencePair> pairs,
                           ReadPairs(path, *description.start_token));
  SessionOptions options;
  options.lanes = static_cast<uint32_t>(run.lanes);
  options.threads = static_cast<uint32_t>(run.threads);
  KINGLET_ASSIGN_OR_RETURN(SentenceScorer scorer, SentenceScorer::Create(model, options));
  size_t taken = 0;
  Status checked;
  const Status ran = scorer.Run(
      [&](SentenceStream& stream) {
        if (taken == pairs.size()) return false;
        const SentencePair& pair = pairs[taken];
        checked = CheckPair(pair, *model);
        if (!checked.ok()) checked = InSentence(taken, checked);
        stream.source = pair.source;
        stream.tokens = {*description.start_token};
        stream.tokens.insert(stream.tokens.end(), pair.target.begin(), pair.target.end());
        ++taken;
        return checked.ok();
      },
      [&](uint64_t sentence, std::span<const ScoredToken> tokens) {
        report.BeginText("sentence", sentence);
        for (size_t t = 0; t < tokens.size(); ++t) {
          report.Add(t, pairs[sentence].target[t], tokens[t]);
        }
        return console.out.status();
      },
      [](uint64_t sentence, size_t) { return "sentence " + std::to_string(sentence); }, places);
  KINGLET_RETURN_IF_ERROR(ran);
  KINGLET_RETURN_IF_ERROR(checked);
  return PrintPairsSummary(run, path, pairs.size(), *model, report);
}

}  // namespace kinglet
