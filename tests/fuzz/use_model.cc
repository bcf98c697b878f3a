#include "tests/fuzz/use_model.h"

#include <algorithm>
#include <cmath>

#include "runtime/embedder.h"
#include "tests/fuzz/targets.h"

namespace kinglet::fuzz {
namespace {

void ExpectAnswer(const Status& status) {
  ExpectOneLine(status);
  const StatusCode code = status.code();
  Expect(code == KINGLET_OK || code == KINGLET_NOT_FINITE || code == KINGLET_OUT_OF_MEMORY ||
             code == KINGLET_NO_SOURCE_YET || code == KINGLET_NO_TOKEN_YET ||
             code == KINGLET_UNSUPPORTED,
         "expected an answer, found " + status.message());
}

}  // namespace

Result<std::shared_ptr<const Model>> OpenLimited(const std::shared_ptr<const ModelFile>& file,
                                                 const char* backend) {
  ModelOptions options;
  options.backend = backend;
  options.memory_limit = uint64_t{256} << 20;
  options.session_memory_limit = uint64_t{64} << 20;
  return Model::FromFile(file, options);
}

namespace {

// A masked model reads a text, and answers about each position and the complete text.
void UseReading(Session& session) {
  const Model& model = session.model();
  const uint32_t words = model.vocabulary_size();
  std::vector<uint32_t> ids = {0, words - 1, words / 2};
  ids.resize(std::min<size_t>(ids.size(), model.plan().encoder->window));
  std::vector<uint32_t> segments(ids.size());
  segments.back() = model.plan().reading->segments - 1;
  ExpectAnswer(session.Encode(ids, segments, 0));
  std::vector<float> all(words);
  std::vector<double> pooled(session.pooled_width()), scores(session.scores());
  for (size_t i = 0; i < ids.size(); ++i) {
    ExpectAnswer(session.LookAt(i));
    ExpectAnswer(session.TopK(5).status());
    ExpectAnswer(session.LogProbabilities(all));
    if (!scores.empty()) {
      ExpectAnswer(session.Scores(scores, model.plan().reading->scores_spans ? i : 0));
    }
  }
  if (!pooled.empty()) ExpectAnswer(session.Pooled(pooled));
  const auto state = session.Save();
  ExpectAnswer(state.status());
  if (state.ok()) ExpectAnswer(session.Restore(*state));
}

}  // namespace

void UseSession(Session& session) {
  if (session.model().plan().reading) return UseReading(session);
  const uint32_t words = session.model().vocabulary_size();
  const uint32_t source[] = {0};
  (void)session.Encode(source);
  for (const uint32_t id : {uint32_t{0}, words - 1, words / 2}) {
    ExpectAnswer(session.StepToken(id));
    const auto best = session.TopK(5);
    ExpectAnswer(best.status());
    if (best.ok()) {
      for (const Candidate& candidate : *best) {
        Expect(candidate.id < words && candidate.log_probability <= 1e-3,
               "expected words with log-probabilities of at most 0, found id " +
                   std::to_string(candidate.id) + ", " + std::to_string(candidate.log_probability));
      }
    }
    std::vector<float> all(words);
    ExpectAnswer(session.LogProbabilities(all));
    ExpectAnswer(session.Draw(7, {.temperature = 1.0}).status());
  }
  const auto state = session.Save();
  ExpectAnswer(state.status());
  if (state.ok()) ExpectAnswer(session.Restore(*state));
  ExpectAnswer(session.LogProbability(words - 1).status());
}

void UseModel(const std::shared_ptr<const Model>& model) {
  constexpr uint32_t kMostWords = 4096;
  if (model->vocabulary_size() > kMostWords) return;
  if (auto embedder = Embedder::Create(model); embedder.ok()) {
    std::vector<float> vector((*embedder)->width());
    ExpectAnswer((*embedder)->Vector(model->vocabulary_size() - 1, vector));
    if ((*embedder)->classes() > 0) {
      const uint32_t ids[] = {model->vocabulary_size() - 1};
      std::vector<double> logits((*embedder)->classes());
      const Status status = (*embedder)->Classify(ids, logits, {});
      if (status.code() != KINGLET_INVALID_ARGUMENT) ExpectAnswer(status);  // padding only
    }
  }
  if (auto session = Session::Create(model); session.ok()) {
    UseSession(**session);
  } else {
    ExpectAnswer(session.status());
  }
}

}  // namespace kinglet::fuzz
