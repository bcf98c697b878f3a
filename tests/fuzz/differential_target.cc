// One random model, one random text, every way to compute it.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "runtime/session.h"
#include "tests/fuzz/random_models.h"
#include "tests/fuzz/targets.h"
#include "tests/support/device_backends.h"

namespace kinglet::fuzz {
namespace {

// The results that every backend must give after each token.
struct Answers {
  StatusCode code = KINGLET_OK;
  std::vector<float> log_probabilities;
  std::vector<uint32_t> best;
  uint32_t drawn = 0;
  uint64_t high = 0;                   // of the interval of the token that comes next
  std::vector<double> of_text = {};    // the pooled vector and the scores
  std::optional<double> of_next = {};  // the log-probability of the next token, and nothing else
};

struct Text {
  std::vector<uint32_t> source, tokens;
  std::vector<uint32_t> segments;  // of the tokens, for a masked model
};

enum class Turn : uint8_t { kNone, kSaved };  // at every 13th token

struct Way {
  std::string name;
  const char* backend = "cpu";
  const Backend* own_backend = nullptr;
  uint32_t lanes = 1, lane = 0, threads = 1;
  Turn turn = Turn::kNone;
  size_t together = 1;  // tokens that lane 0 processes by one call
};

Answers Ask(Session& session, uint32_t lane, uint32_t next) {
  Answers answers;
  answers.log_probabilities.resize(session.model().vocabulary_size());
  const Status all = session.LogProbabilities(answers.log_probabilities, lane);
  answers.code = all.code();
  if (!all.ok()) {
    answers.log_probabilities.clear();
    return answers;
  }
  const auto best = session.TopK(4, lane);
  Expect(best.ok(), "expected words, found " + best.status().message());
  for (const Candidate& candidate : *best) answers.best.push_back(candidate.id);
  const auto drawn = session.Draw(3, {.temperature = 0.8, .top_k = 5}, lane);
  Expect(drawn.ok(), "expected a word, found " + drawn.status().message());
  answers.drawn = *drawn;
  if (const auto interval = session.IntervalOf(next, lane); interval.ok()) {
    answers.high = interval->high;
  }
  return answers;
}

// Saves the lane, lets it run elsewhere, and restores it from what was written.
void SaveAndRestore(Session& session, const std::shared_ptr<const Model>& model, uint32_t lane) {
  const auto state = session.Save(lane);
  Expect(state.ok(), "expected a state, found " + state.status().message());
  std::vector<std::byte> bytes(state->BlobBytes());
  state->WriteBlob(bytes);
  (void)session.StepToken(0, lane);
  const auto read = State::ReadBlob(model, bytes);
  // Values that overflowed are written but not read.
  const Status restored = session.Restore(read.ok() ? *read : *state, lane);
  Expect(restored.ok(), "expected to restore, found " + restored.message());
}

// A masked model's results at each position of the text, and for the complete text.
std::vector<Answers> ReadText(Session& session, const std::shared_ptr<const Model>& model,
                              const Text& text, const Way& way) {
  for (uint32_t lane = 0; lane < way.lanes; ++lane) {  // other lanes have other texts
    std::vector<uint32_t> ids = text.tokens;
    if (lane != way.lane) {
      ids.resize(1 + lane % ids.size());
      for (uint32_t& id : ids) id = (id + lane) % model->vocabulary_size();
    }
    const Status read = session.Encode(ids, std::span(text.segments).first(ids.size()), lane);
    Expect(read.ok(), way.name + ": expected a text, found " + read.message());
  }
  std::vector<Answers> all;
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    const Status looked = session.LookAt(i, way.lane);
    Expect(looked.ok() || looked.code() == KINGLET_NOT_FINITE,
           way.name + ": expected a position, found " + looked.message());
    if (i % 13 == 1 && way.turn == Turn::kSaved) SaveAndRestore(session, model, way.lane);
    all.push_back(Ask(session, way.lane, text.tokens[i]));
    std::vector<double>& numbers = all.back().of_text;
    numbers.resize(session.pooled_width());
    if (!numbers.empty()) (void)session.Pooled(numbers, way.lane);
    std::vector<double> scores(session.scores());
    if (!scores.empty()) (void)session.Scores(scores, 0, way.lane);
    numbers.insert(numbers.end(), scores.begin(), scores.end());
  }
  return all;
}

// Answers after each part of the text alone; the others are empty, but for the log-probability of
// the token that follows, if the call had one.
std::vector<Answers> ReadTogether(Session& session, const Text& text, const Way& way) {
  std::vector<Answers> all(text.tokens.size() - 1);
  for (size_t at = 0; at < all.size();) {
    const std::span<const uint32_t> part =
        std::span(text.tokens).subspan(at, std::min(way.together, all.size() - at));
    std::vector<double> of_tokens(part.size());
    uint64_t processed = 0;
    const Status status = session.StepMany(part, of_tokens, processed);
    Expect(status.ok() || status.code() == KINGLET_NOT_FINITE,
           way.name + ": expected a text, found " + status.message());
    if (!status.ok()) {
      all.resize(at);
      return all;
    }
    for (size_t i = 1; i < part.size(); ++i) all[at + i - 1].of_next = of_tokens[i];
    at += part.size();
    all[at - 1] = Ask(session, 0, text.tokens[at]);
  }
  return all;
}

std::optional<std::vector<Answers>> Compute(const std::vector<std::byte>& file, const Text& text,
                                            const Way& way) {
  ModelOptions options;
  options.backend = way.backend;
  options.own_backend = way.own_backend;
  auto model = Model::FromBytes(file, options);
  if (!model.ok() && model.status().code() == KINGLET_UNSUPPORTED) return std::nullopt;
  Expect(model.ok(), way.name + ": expected a model, found " + model.status().message());
  auto session = Session::Create(*model, {.lanes = way.lanes, .threads = way.threads});
  if (!session.ok() && session.status().code() == KINGLET_UNSUPPORTED) return std::nullopt;
  Expect(session.ok(), way.name + ": expected a session, found " + session.status().message());
  std::vector<uint32_t> lanes;
  for (uint32_t lane = 0; lane < way.lanes; ++lane) {
    lanes.push_back(lane);
    if (text.source.empty()) continue;
    const Status encoded = (*session)->Encode(text.source, lane);
    Expect(encoded.ok(), way.name + ": expected a source, found " + encoded.message());
  }
  if ((*model)->plan().reading) return ReadText(**session, *model, text, way);
  if (way.together > 1) return ReadTogether(**session, text, way);
  std::vector<Answers> all;
  for (size_t i = 0; i + 1 < text.tokens.size(); ++i) {
    std::vector<uint32_t> ids(way.lanes, text.tokens[i]);
    for (uint32_t lane = 0; lane < way.lanes; ++lane) {  // other lanes have other texts
      if (lane != way.lane) ids[lane] = (ids[lane] + lane) % (*model)->vocabulary_size();
    }
    const Status stepped = (*session)->StepLanes(lanes, ids);
    Expect(stepped.ok(), way.name + ": expected a step, found " + stepped.message());
    if (i % 13 == 1 && way.turn == Turn::kSaved) SaveAndRestore(**session, *model, way.lane);
    all.push_back(Ask(**session, way.lane, text.tokens[i + 1]));
  }
  return all;
}

// "" or the first difference. `next`: the token that follows.
std::string Compare(const Answers& found, const Answers& expected, uint32_t next, bool same_bits) {
  if (found.of_next) {
    const bool same = expected.code == KINGLET_OK &&
                      static_cast<double>(expected.log_probabilities[next]) == *found.of_next;
    return same ? "" : "another log-probability of the next token";
  }
  if (found.code != expected.code) return "status " + std::to_string(found.code);
  for (size_t id = 0; id < expected.log_probabilities.size(); ++id) {
    const float is = found.log_probabilities[id], should = expected.log_probabilities[id];
    const bool same = same_bits ? std::memcmp(&is, &should, sizeof is) == 0
                                : is == should || std::abs(is - should) <= 1e-4;
    if (!same) {
      char line[120];
      std::snprintf(line, sizeof line, "word %zu: expected %.9g, found %.9g", id,
                    static_cast<double>(should), static_cast<double>(is));
      return line;
    }
  }
  if (!same_bits) return "";
  if (found.of_text != expected.of_text) return "other numbers about the text";
  if (found.best != expected.best) return "other best words";
  if (found.drawn != expected.drawn) return "another word is drawn";
  return found.high == expected.high ? "" : "another interval";
}

// A device's numbers for several texts together are those of each text alone on the host.
void CompareTexts(const std::vector<std::byte>& file, std::span<const uint32_t> tokens,
                  const Backend& device) {
  const auto start = [&](const ModelOptions& options) {
    return Session::Create(*Model::FromBytes(file, options)).value();
  };
  const auto session = start({.own_backend = &device}), alone = start({.backend = "ref"});
  std::vector<std::vector<double>> numbers;
  std::vector<ScoredText> texts;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const size_t begin = i * 5 % tokens.size();
    const auto ids = tokens.subspan(begin, std::min(1 + i * 3 % 8, tokens.size() - begin));
    texts.push_back({ids});
    numbers.emplace_back(ids.size() - 1);
  }
  for (size_t i = 0; i < texts.size(); ++i) texts[i].log_probabilities = numbers[i];
  TextProgress done;
  const Status status = session->ScoreTexts(texts, done);
  Expect(status.ok() || status.code() == KINGLET_NOT_FINITE,
         "expected texts, found " + status.message());
  for (size_t i = 0; i < done.texts; ++i) {
    std::vector<double> of_tokens(numbers[i].size());
    uint64_t processed = 0;
    Expect(alone->Reset().ok() && alone->ScoreMany(texts[i].ids, of_tokens, processed).ok() &&
               of_tokens == numbers[i],
           "other numbers of text " + std::to_string(i));
  }
}

}  // namespace

void RunDifferential(Input input) {
  ByteReader bytes(input);
  const RandomModel random = MakeRandomModel(bytes);
  const auto file = SerialiseModel(random.draft);
  ExpectOneLine(file.status());
  if (!file.ok()) return;
  const auto reference = Model::FromBytes(*file, {.backend = "ref"});
  Expect(reference.ok(), "expected a model, found " + reference.status().message());
  const uint32_t words = (*reference)->vocabulary_size();
  Text text;
  if (random.has_source) {
    for (uint32_t i = bytes.Between(1, 2); i > 0; --i) text.source.push_back(bytes.Between(0, 3));
  }
  const uint32_t count = bytes.Between(2, 16);
  while (text.tokens.size() < count) text.tokens.push_back(bytes.Byte() % words);
  if (random.masked) {
    const auto& block = *FindBlock<MaskedModel>(random.draft.description);
    text.tokens.resize(std::min<size_t>(text.tokens.size(), block.stack.window));
    for (size_t i = 0; i < text.tokens.size(); ++i) {
      text.segments.push_back(bytes.Byte() % SegmentsOf(block));
    }
  }

  const auto expected = Compute(*file, text, {.name = "ref", .backend = "ref"});
  if (!expected) return;  // predicts nothing
  const auto check = [&](const Way& way, bool same_bits) {
    const auto found = Compute(*file, text, way);
    if (!found) return;
    // A text that is read by one call ends where a value is not finite.
    const size_t answers = way.together > 1 ? found->size() : expected->size();
    for (size_t i = 0; i < answers; ++i) {
      const uint32_t next = text.tokens[std::min(i + 1, text.tokens.size() - 1)];
      const std::string difference = Compare((*found)[i], (*expected)[i], next, same_bits);
      Expect(difference.empty(), way.name + ": token " + std::to_string(i) + ": " + difference);
    }
  };
  for (const cpu::Target target : cpu::SupportedTargets()) {
    const std::string name(cpu::TargetName(target));
    setenv("KINGLET_CPU", name.c_str(), 1);
    check({.name = name}, true);
  }
  unsetenv("KINGLET_CPU");
  check({.name = "2 threads", .threads = 2}, true);
  check({.name = "3 lanes", .lanes = 3, .lane = 1}, true);
  check({.name = "9 lanes, 2 threads", .lanes = 9, .lane = 8, .threads = 2}, true);
  check({.name = "saved and restored", .turn = Turn::kSaved}, true);
  if (!random.masked) {
    check({.name = "5 tokens together", .together = 5}, true);
    check({.name = "a whole text together, 2 threads", .threads = 2, .together = 16}, true);
  }
  static const Backend kEmulated = EmulatedCuda();
  check({.name = "emulated device", .own_backend = &kEmulated, .lanes = 2}, random.quantised);
  if (!random.has_stack) return;
  static const Backend kNodeByNode = EmulatedCuda({.is_node_by_node = true});
  check({.name = "device, node by node", .own_backend = &kNodeByNode}, true);
  check({.name = "device, 66 lanes", .own_backend = &kEmulated, .lanes = 66, .lane = 65}, true);
  check({.name = "device, 5 tokens together", .own_backend = &kEmulated, .together = 5}, true);
  check({.name = "device, a whole text", .own_backend = &kEmulated, .together = 16}, true);
  CompareTexts(*file, text.tokens, kEmulated);
}

}  // namespace kinglet::fuzz
