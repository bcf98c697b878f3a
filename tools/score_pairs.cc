#include "tools/score_pairs.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "converters/texts/pair_file.h"
#include "tools/json_lines.h"
#include "tools/replicas.h"
#include "tools/score_protocol.h"
#include "tools/score_token.h"

namespace kinglet {
namespace {

// Scores the tokens of the target after the source, with identical results from all lanes.
Status ScorePair(const SentencePair& pair, const PlaceQuestions& places, Replicas& replicas,
                 std::vector<ScoredToken>& scored) {
  KINGLET_RETURN_IF_ERROR(CheckPair(pair, replicas.model()));
  KINGLET_RETURN_IF_ERROR(replicas.Encode(pair.source));
  uint32_t fed = *replicas.model().file().description().start_token;
  for (const uint32_t id : pair.target) {
    KINGLET_RETURN_IF_ERROR(replicas.Step(fed));
    KINGLET_ASSIGN_OR_RETURN(const ScoredToken token,
                             ScoreToken(places, id, scored.size(), replicas));
    scored.push_back(token);
    fed = id;
  }
  return Status();
}

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
  KINGLET_ASSIGN_OR_RETURN(Replicas replicas,
                           Replicas::Create(model, SessionOptions{}, run.lanes, run.threads));
  for (size_t i = 0; i < pairs.size(); ++i) {
    std::vector<ScoredToken> tokens;
    const Status status = ScorePair(pairs[i], places, replicas, tokens);
    if (!status.ok()) return InSentence(i, status);
    report.BeginText("sentence", i);
    for (size_t t = 0; t < tokens.size(); ++t) report.Add(t, pairs[i].target[t], tokens[t]);
    KINGLET_RETURN_IF_ERROR(console.out.status());
  }
  return PrintPairsSummary(run, path, pairs.size(), *model, report);
}

}  // namespace kinglet
