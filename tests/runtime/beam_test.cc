#include "runtime/beam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>

#include "tests/support/device_backends.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::beam_test {
namespace {

using Ids = std::vector<uint32_t>;
using Hypothesis = Beam::Hypothesis;
constexpr uint64_t kNoBudget = UINT64_MAX;

std::shared_ptr<const Model> BeamModel(const ModelDraft& draft, const char* backend = "cpu",
                                       uint64_t memory_limit = 0) {
  ModelOptions options;
  options.backend = backend;
  if (memory_limit > 0) options.memory_limit = memory_limit;
  return *Model::FromFile(*ModelFile::FromBytes(*SerialiseModel(draft)), options);
}

// What a session answers that steps the tokens from the start.
class FromTheStart {
 public:
  FromTheStart(const std::shared_ptr<const Model>& model, EmptyCache empty_cache)
      : session_(*Session::Create(model, {empty_cache, 1, 1})), words_(model->vocabulary_size()) {}

  struct Answers {
    std::vector<double> exact;
    std::vector<float> row;
    std::vector<Candidate> best;
  };

  const Answers& After(const Ids& ids) {
    const auto [found, is_new] = known_.try_emplace(ids);
    Answers& answers = found->second;
    if (!is_new) return answers;
    EXPECT_TRUE(session_->Reset().ok());
    for (const uint32_t id : ids) EXPECT_TRUE(session_->StepToken(id).ok());
    answers.row.resize(words_);
    EXPECT_TRUE(session_->LogProbabilities(std::span<float>(answers.row)).ok());
    for (uint32_t id = 0; id < words_; ++id) {
      answers.exact.push_back(*session_->LogProbability(id));
    }
    answers.best = *session_->TopK(3);
    return answers;
  }

 private:
  const std::unique_ptr<Session> session_;
  const uint32_t words_;
  std::map<Ids, Answers> known_;
};

struct Shape {
  uint32_t lanes, threads;
  uint64_t bytes;  // of states
};

// Random steps, queries, holds and drops, each answer compared with FromTheStart.
class RandomSearch {
 public:
  RandomSearch(const std::shared_ptr<const Model>& model, EmptyCache empty_cache,
               const Shape& shape, FromTheStart& expected)
      : model_(model),
        session_(*Session::Create(model, {empty_cache, shape.lanes, shape.threads})),
        beam_(*session_, shape.bytes),
        bytes_(shape.bytes),
        expected_(expected),
        random_(shape.lanes * 100 + shape.threads) {
    live_.push_back({*beam_.Begin(), {}});
  }

  void Run(int calls) {
    for (int call = 0; call < calls && !testing::Test::HasFailure(); ++call) {
      switch (Below(5)) {
        case 0:
          AskPairs();
          break;
        case 1:
          AskRows();
          break;
        case 2:
          AskBest();
          break;
        default:
          StepSome();
      }
      if (live_.size() > 30) DropSome();
      ASSERT_LE(beam_.state_bytes(), bytes_);
    }
  }

 private:
  struct Live {
    Hypothesis hypothesis;
    Ids ids;
  };

  uint32_t Below(size_t limit) { return static_cast<uint32_t>(random_() % limit); }

  // Hypotheses with tokens, perhaps some of them twice.
  std::vector<Live> Some(size_t first) {
    std::vector<Live> some;
    if (live_.size() <= first) return some;
    for (uint32_t left = Below(9); left > 0; --left) {
      some.push_back(live_[first + Below(live_.size() - first)]);
    }
    return some;
  }

  static std::vector<Hypothesis> NumbersOf(const std::vector<Live>& some) {
    std::vector<Hypothesis> numbers;
    for (const Live& live : some) numbers.push_back(live.hypothesis);
    return numbers;
  }

  void StepSome() {
    std::vector<Live> from = Some(0);
    Ids ids;
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i].ids.size() >= 7) from[i] = live_.front();
      ids.push_back(Below(3) + 1);
    }
    std::vector<Hypothesis> to(from.size());
    const Status status = beam_.Step(NumbersOf(from), ids, to);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < to.size(); ++i) {
      Ids all = from[i].ids;
      all.push_back(ids[i]);
      for (const Live& other : live_) {
        ASSERT_EQ(other.hypothesis == to[i], other.ids == all);
      }
      ASSERT_EQ(*beam_.Tokens(to[i]), all);
      live_.push_back({to[i], std::move(all)});
    }
  }

  void DropSome() {
    std::vector<Hypothesis> dropped;
    while (live_.size() > 1 + Below(12)) {
      const size_t at = 1 + Below(live_.size() - 1);
      dropped.push_back(live_[at].hypothesis);
      live_[at] = live_.back();
      live_.pop_back();
    }
    ASSERT_TRUE(beam_.Drop(dropped).ok());
  }

  void AskPairs() {
    const std::vector<Live> some = Some(1);
    Ids ids;
    for (size_t i = 0; i < some.size(); ++i) ids.push_back(Below(model_->vocabulary_size()));
    std::vector<double> found(some.size());
    const Status status = beam_.LogProbabilities(NumbersOf(some), ids, found);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < some.size(); ++i) {
      ASSERT_EQ(found[i], expected_.After(some[i].ids).exact[ids[i]]);
    }
  }

  void AskRows() {
    const std::vector<Live> some = Some(1);
    const size_t words = model_->vocabulary_size();
    std::vector<float> found(some.size() * words);
    const Status status = beam_.Distributions(NumbersOf(some), found);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < some.size(); ++i) {
      const std::vector<float>& row = expected_.After(some[i].ids).row;
      ASSERT_TRUE(std::equal(row.begin(), row.end(),
                             found.begin() + static_cast<std::ptrdiff_t>(i * words)));
    }
  }

  void AskBest() {
    const std::vector<Live> some = Some(1);
    const auto found = beam_.TopK(NumbersOf(some), 3);
    ASSERT_TRUE(found.ok()) << found.status().message();
    for (size_t i = 0; i < some.size(); ++i) {
      const std::vector<Candidate>& best = expected_.After(some[i].ids).best;
      for (size_t j = 0; j < best.size(); ++j) {
        ASSERT_EQ((*found)[i][j].id, best[j].id);
        ASSERT_EQ((*found)[i][j].log_probability, best[j].log_probability);
      }
    }
  }

  const std::shared_ptr<const Model> model_;
  const std::unique_ptr<Session> session_;
  Beam beam_;
  const uint64_t bytes_;
  FromTheStart& expected_;
  std::mt19937 random_;
  std::vector<Live> live_;  // the one without tokens first
};

// KINGLET_BEAM_CALLS=100000 makes the searches as long.
void ExpectAsFromTheStart(const std::shared_ptr<const Model>& model,
                          EmptyCache empty_cache = EmptyCache::kReference, int calls = 250) {
  const char* const given = std::getenv("KINGLET_BEAM_CALLS");
  if (given != nullptr) calls = std::atoi(given);
  FromTheStart expected(model, empty_cache);
  const uint64_t few = 5 * (PageCount(model->layout()) + 1) * sizeof(StatePage);
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{2, 1, few}, Shape{5, 2, few}, Shape{16, 1, 1},
                             Shape{16, 1, kNoBudget}}) {
    RandomSearch(model, empty_cache, shape, expected).Run(calls);
  }
}

TEST(Beam, RandomTreesAnswerAsSessionsFromTheStart) {
  ExpectAsFromTheStart(BeamModel(TinyTransformer()));
  ExpectAsFromTheStart(BeamModel(TinyTransformer(), "ref64"));
  TinyOptions options;
  options.cache_capacity = 4;
  ExpectAsFromTheStart(BeamModel(TinyMicronet(options)));
  ExpectAsFromTheStart(BeamModel(TinyRecurrent({.cache_capacity = 4})), EmptyCache::kNormalised);
  ExpectAsFromTheStart(BeamModel(TinyRecurrent({})));
}

TEST(Beam, RandomTreesOnADevice) {
  cuda::Emulation emulation;
  const Backend backend = EmulatedCuda(emulation);
  ModelOptions on_device;
  on_device.own_backend = &backend;
  const auto bytes = SerialiseModel(TinyMicronet({.cache_capacity = 4})).value();
  ExpectAsFromTheStart(Model::FromBytes(bytes, on_device).value(), EmptyCache::kReference, 30);
}

// With memory for all states each pair is processed once, and nothing before it is asked for.
TEST(Beam, ProcessesEachPairOnce) {
  auto session = *Session::Create(BeamModel(TinyRecurrent({})), {.lanes = 3});
  Beam beam(*session, kNoBudget);
  const Hypothesis start = *beam.Begin();
  std::vector<Hypothesis> all = {start}, level = all;
  for (int depth = 0; depth < 4; ++depth) {
    std::vector<Hypothesis> from;
    Ids ids;
    for (const Hypothesis hypothesis : level) {
      for (const uint32_t id : {1u, 2u, 1u}) {
        from.push_back(hypothesis);
        ids.push_back(id);
      }
    }
    std::vector<Hypothesis> to(from.size());
    ASSERT_TRUE(beam.Step(from, ids, to).ok());
    std::sort(to.begin(), to.end());
    to.erase(std::unique(to.begin(), to.end()), to.end());
    level = to;
  }
  EXPECT_EQ(level.size(), 16u);
  EXPECT_EQ(beam.stepped(), 0u);
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(beam.TopK(level, 2).ok());
    EXPECT_EQ(beam.stepped(), 2u + 4 + 8 + 16);
  }
}

TEST(Beam, FreesWhatNoReferenceNeeds) {
  const auto model = BeamModel(TinyRecurrent({}));
  auto session = *Session::Create(model, {.lanes = 2});
  const uint64_t left = model->budget()->left();
  Beam beam(*session, kNoBudget);
  std::vector<Hypothesis> at = {*beam.Begin()};
  for (uint32_t t = 0; t < 50; ++t) {
    std::vector<Hypothesis> next(3);
    ASSERT_TRUE(beam.Step(std::vector<Hypothesis>(3, at.front()), Ids{1, 2, 3}, next).ok());
    ASSERT_TRUE(beam.TopK(next, 1).ok());
    ASSERT_TRUE(beam.Drop(at).ok());
    at = next;
  }
  EXPECT_LE(beam.state_bytes(), 4 * (PageCount(model->layout()) + 1) * sizeof(StatePage));
  ASSERT_TRUE(beam.Drop(at).ok());
  EXPECT_EQ(beam.state_bytes(), 0u);
  // Pages that lanes keep of states that were saved or restored.
  EXPECT_LE(left - model->budget()->left(), 2 * PageCount(model->layout()) * sizeof(StatePage));
}

TEST(Beam, StatesComeAndGo) {
  const auto model = BeamModel(TinyTransformer());
  auto session = *Session::Create(model, {.lanes = 2});
  auto other = *Session::Create(model, {.lanes = 1});
  Beam beam(*session, kNoBudget), later(*other, kNoBudget);
  Hypothesis at = *beam.Begin();
  for (const uint32_t id : {3u, 4u}) {
    ASSERT_TRUE(beam.Step({&at, 1}, {&id, 1}, {&at, 1}).ok());
  }
  const State state = *beam.Save(at);
  EXPECT_EQ(state.position(), 2u);
  Hypothesis after = *later.Begin(&state);
  EXPECT_EQ(*later.Save(after), state);
  EXPECT_EQ((*later.TopK({&after, 1}, 1))[0][0].id, (*beam.TopK({&at, 1}, 1))[0][0].id);
  const uint32_t id = 5;
  ASSERT_TRUE(later.Step({&after, 1}, {&id, 1}, {&after, 1}).ok());
  EXPECT_EQ(*later.Tokens(after), Ids{5});
  ASSERT_TRUE(beam.Step({&at, 1}, {&id, 1}, {&at, 1}).ok());
  EXPECT_EQ(*later.Save(after), *beam.Save(at));
}

TEST(Beam, MemoryThatRunsOutDropsStatesFirst) {
  const ModelDraft draft = TinyRecurrent({});
  const auto roomy = BeamModel(draft);
  const uint64_t used = roomy->budget()->limit() - roomy->budget()->left();
  const auto model = BeamModel(draft, "cpu", used + Session::BytesPerLane(*roomy) * 2 + 60000);
  auto session = *Session::Create(model, {.lanes = 2});
  Beam beam(*session, kNoBudget);
  const Hypothesis start = *beam.Begin();
  std::vector<Hypothesis> all(30);
  const std::vector<Hypothesis> from(all.size(), start);
  Ids ids(all.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<uint32_t>(i % 17);
  ASSERT_TRUE(beam.Step(from, ids, all).ok());
  for (int again = 0; again < 2; ++again) {
    const auto best = beam.TopK(all, 1);
    ASSERT_TRUE(best.ok()) << best.status().message();
  }
  EXPECT_GT(beam.stepped(), 17u);  // some states were dropped
}

TEST(Beam, Refusals) {
  const auto model = BeamModel(TinyTransformer());
  auto session = *Session::Create(model, {.lanes = 2}), other = *Session::Create(model);
  Beam beam(*session, kNoBudget), another(*other, kNoBudget);
  const Hypothesis start = *beam.Begin(), foreign = *another.Begin();
  Hypothesis child = 0;
  const uint32_t one = 1;
  ASSERT_TRUE(beam.Step({&start, 1}, {&one, 1}, {&child, 1}).ok());
  Hypothesis dropped = child;
  ASSERT_TRUE(beam.Hold({&child, 1}).ok());
  ASSERT_TRUE(beam.Step({&child, 1}, {&one, 1}, {&dropped, 1}).ok());
  ASSERT_TRUE(beam.Drop({&dropped, 1}).ok());
  const auto expect = [](const Status& status, kinglet_status code, const std::string& message) {
    EXPECT_EQ(status.code(), code);
    EXPECT_EQ(status.message(), message);
  };
  for (const Hypothesis wrong : {foreign, dropped, Hypothesis{0}, ~Hypothesis{0}}) {
    const std::string message =
        "beam: hypothesis 1: expected a number that this beam gave and that was not dropped "
        "since, found " +
        std::to_string(wrong);
    const std::vector<Hypothesis> both = {child, wrong};
    std::vector<Hypothesis> to(2);
    std::vector<double> values(2);
    std::vector<float> rows(2 * model->vocabulary_size());
    expect(beam.Step(both, Ids{1, 2}, to), KINGLET_INVALID_ARGUMENT, message);
    EXPECT_EQ(to, std::vector<Hypothesis>(2));
    expect(beam.Hold(both), KINGLET_INVALID_ARGUMENT, message);
    expect(beam.Drop(both), KINGLET_INVALID_ARGUMENT, message);
    expect(beam.LogProbabilities(both, Ids{1, 2}, values), KINGLET_INVALID_ARGUMENT, message);
    expect(beam.Distributions(both, rows), KINGLET_INVALID_ARGUMENT, message);
    expect(beam.TopK(both, 1).status(), KINGLET_INVALID_ARGUMENT, message);
  }
  std::vector<double> value(1);
  expect(beam.Step({&child, 1}, Ids{17}, {&dropped, 1}), KINGLET_ID_OUT_OF_RANGE,
         "beam: token 0: expected a number below 17, found 17");
  expect(beam.LogProbabilities({&child, 1}, Ids{17}, value), KINGLET_ID_OUT_OF_RANGE,
         "beam: token 0: expected an id below 17, found 17");
  expect(beam.Step({&child, 1}, Ids{1, 2}, {&dropped, 1}), KINGLET_INVALID_ARGUMENT,
         "beam: ids: expected 1 elements, found 2");
  EXPECT_EQ(beam.TopK({&start, 1}, 1).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_TRUE(beam.Step({}, {}, {}).ok() && beam.Drop({}).ok() && beam.TopK({}, 1).ok());
  // Two references: the third drop is one too many, and takes nothing away.
  expect(beam.Drop(std::vector<Hypothesis>(3, child)), KINGLET_INVALID_ARGUMENT,
         "beam: hypothesis 2: expected a number that this beam gave and that was not dropped "
         "since, found " +
             std::to_string(child));
  EXPECT_TRUE(beam.Drop(std::vector<Hypothesis>(2, child)).ok());
  // A call that is cancelled computes nothing, and can be made again.
  ASSERT_TRUE(beam.Step({&start, 1}, {&one, 1}, {&child, 1}).ok());
  session->Cancel();
  EXPECT_EQ(beam.TopK({&child, 1}, 1).status().code(), KINGLET_CANCELLED);
  EXPECT_EQ(beam.stepped(), 0u);
  EXPECT_TRUE(beam.TopK({&child, 1}, 1).ok());

  auto translating = *Session::Create(BeamModel(TinyTranslation()), {.lanes = 2});
  Beam translations(*translating, kNoBudget);
  expect(translations.Begin().status(), KINGLET_NO_SOURCE_YET,
         "beam: begin: expected a state with an encoded source, found none");
  ASSERT_TRUE(translating->Encode(Ids{1, 2, 3}).ok());
  const State source = *translating->Save();
  const Hypothesis sentence = *translations.Begin(&source);
  ASSERT_TRUE(translations.Step({&sentence, 1}, {&one, 1}, {&child, 1}).ok());
  EXPECT_TRUE(translations.TopK({&child, 1}, 2).ok());
  EXPECT_EQ(beam.Begin(&source).status().code(), KINGLET_MISMATCH);
}

}  // namespace
}  // namespace kinglet::beam_test
