// Sessions whose streams are on a device: the same answers and states as on the host, to the last
// bit; a call that fails changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/device_program.h"
#include "runtime/embedder.h"
#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/define_builder.h"
#include "tests/support/device_backends.h"
#include "tests/support/masked_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/recurrent_translation_builder.h"
#include "tests/support/softmax_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::session_device_test {
namespace {

Result<std::shared_ptr<const Model>> OpenOn(const ModelDraft& draft, const Backend& backend) {
  ModelOptions options;
  options.own_backend = &backend;
  return Model::FromBytes(SerialiseModel(draft).value(), options);
}

struct Family {
  std::string name;
  ModelDraft draft;
};

TinyRecurrentOptions Recurrent(bool quantised, uint32_t projected = 0) {
  return {.projected = projected,
          .quantised = quantised,
          .bits = quantised ? 9 : 0,
          .cache_capacity = 7};
}

// Keys and values take 9 bits (kernels/cuda/bind_stack.h).
TinyOptions OptionsOfOneLaunch() {
  TinyOptions options = WholeOptions(true);
  options.value_size = 8;
  return options;
}

std::vector<Family> LanguageModels() {
  return {{"transformer", TinyMicronet(WholeOptions(false))},
          {"quantised transformer", TinyMicronet(WholeOptions(true))},
          {"layers in one launch", TinyMicronet(OptionsOfOneLaunch())},
          {"quantised, norms of sums",
           TinyTransformer({.positions = TinyPositions::kSlots, .quantised = true, .bits = 8})},
          {"LSTM", TinyRecurrent(Recurrent(false))},
          {"quantised LSTM", TinyRecurrent(Recurrent(true))},
          {"projected LSTM", TinyRecurrent(Recurrent(false, 5))},
          {"quantised projected LSTM", TinyRecurrent(Recurrent(true, 3))},
          {"relative positions", TinyTransformer({.bits = 9})},
          {"DeFINE", TinyDefine({})},
          {"spelling", TinyDefine({.spells = true})}};
}

// A model whose last tail has infinite logits.
ModelDraft WithATailThatOverflows() {
  ModelDraft draft = TinyMicronet(WholeOptions(false));
  for (EncodedTensor& tensor : draft.tensors) {
    if (tensor.name != "loss.projections.1.weight") continue;
    for (float& value : std::get<DenseF32>(tensor.values).values) value = 3e38f;
  }
  return draft;
}

class SessionDevice : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!backend_.needs) return;
    const Result<std::string> device = backend_.needs();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }
  Backend BackendHere() {
    const std::string name = GetParam();
    if (name == "pretended") return PretendedBackend(pretended_);
    if (name == "node_by_node") return EmulatedCuda({.is_node_by_node = true});
    return name == "emulated" ? EmulatedCuda() : DeviceBackends().front();
  }
  // On the device of the parameter; null after a failure.
  std::shared_ptr<const Model> OpenHere(const ModelDraft& draft) {
    const auto model = OpenOn(draft, backend_);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model.ok() ? *model : nullptr;
  }

  PretendedDevice pretended_;
  Backend backend_ = BackendHere();
};
// By name, so that bench/gpu_check can select the machine's own device.
#ifdef KINGLET_SANITIZED  // which see each operation's own node in kernels/cuda/conformance_test.cc
const auto kDevices = testing::Values("pretended", "emulated", "cuda");
#else
const auto kDevices = testing::Values("pretended", "emulated", "node_by_node", "cuda");
#endif
INSTANTIATE_TEST_SUITE_P(Devices, SessionDevice, kDevices,
                         [](const auto& device) { return std::string(device.param); });

std::vector<double> Numbers(const std::vector<Candidate>& tokens) {
  std::vector<double> numbers;
  for (const Candidate& token : tokens) {
    numbers.insert(numbers.end(), {static_cast<double>(token.id), token.log_probability});
  }
  return numbers;
}

// Makes every query.
void ExpectSameAnswers(Session& found, Session& expected, uint32_t lane, uint64_t seed) {
  const uint32_t vocabulary = expected.model().vocabulary_size();
  const auto ids = Tokens(4, vocabulary, seed);
  const auto ask = [&](Session& session, int query) -> std::vector<double> {
    std::vector<double> answer(ids.size());
    switch (query) {
      case 0:
        EXPECT_TRUE(session.LogProbabilitiesOf(ids, answer, lane).ok());
        return answer;
      case 1:
        return Numbers(session.TopK(5, lane).value());
      case 2:
        return {static_cast<double>(session.Draw(seed, {.temperature = 0.7}, lane).value())};
      default:
        return Full(session, lane);
    }
  };
  // In any order, so that any query may be the first about a token.
  for (int i = 0; i < 4; ++i) {
    const int query = (static_cast<int>(seed % 4) + i) % 4;
    ASSERT_EQ(ask(found, query), ask(expected, query)) << query;
    // The session does not remember what a device ranked by itself.
    if (found.ranks_on_device(5)) continue;
    ASSERT_EQ(found.clusters_opened(lane), expected.clusters_opened(lane));
  }
}

TEST_P(SessionDevice, LanesAtDifferentPositionsEqualThoseOfTheHost) {
  for (const Family& family : LanguageModels()) {
    SCOPED_TRACE(family.name);
    const auto model = OpenHere(family.draft);
    ASSERT_NE(model, nullptr);
    constexpr uint32_t kLanes = 11;  // more than there are places on the host
    const auto found = Start(model, {.lanes = kLanes});
    const auto expected = Start(Open(family.draft, "ref"), {.lanes = kLanes});
    const uint32_t vocabulary = model->vocabulary_size();
    TestRandom random(4);
    for (uint64_t step = 0; step < 60; ++step) {
      std::vector<uint32_t> order(kLanes), ids;
      std::iota(order.begin(), order.end(), 0);
      for (uint32_t i = kLanes - 1; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
      order.resize(step == 0 ? kLanes : random.Below(kLanes + 1));
      for (size_t i = 0; i < order.size(); ++i) ids.push_back(random.Below(vocabulary));
      ASSERT_TRUE(found->StepLanes(order, ids).ok());
      ASSERT_TRUE(expected->StepLanes(order, ids).ok());
      const uint32_t lane = random.Below(kLanes);
      ASSERT_NO_FATAL_FAILURE(ExpectSameAnswers(*found, *expected, lane, step));
      if (step % 7 == 0) {
        const auto best = found->TopKLanes(order, 3).value();
        const auto as_good = expected->TopKLanes(order, 3).value();
        for (size_t i = 0; i < order.size(); ++i) {
          ASSERT_EQ(Numbers(best[i]), Numbers(as_good[i]));
          ASSERT_EQ(Full(*found, order[i]), Full(*expected, order[i]));
        }
      }
      ASSERT_EQ(found->Save(lane)->Hash(), expected->Save(lane)->Hash());
    }
    EXPECT_GT(found->device_work().launches, 60u);
    EXPECT_GT(found->device_work().bytes_to_host, 0u);
    EXPECT_EQ(expected->device_work().launches, 0u);
  }
}

// Enough tokens for a device to compute their logits twice and store no logit.
TEST_P(SessionDevice, FortyLanesAskedAtOnceEqualThoseOfTheHost) {
  for (const Family& family : LanguageModels()) {
    SCOPED_TRACE(family.name);
    const auto model = OpenHere(family.draft);
    ASSERT_NE(model, nullptr);
    constexpr uint32_t kLanes = 40;
    const auto found = Start(model, {.lanes = kLanes});
    const auto expected = Start(Open(family.draft, "ref"), {.lanes = kLanes});
    const uint32_t vocabulary = model->vocabulary_size();
    TestRandom random(11);
    std::vector<uint32_t> lanes(kLanes), ids(kLanes);
    std::iota(lanes.begin(), lanes.end(), 0);
    std::vector<double> scores(kLanes), as_good(kLanes);
    for (uint64_t step = 0; step < 12; ++step) {
      for (uint32_t& id : ids) id = random.Below(vocabulary);
      ASSERT_TRUE(found->StepLanes(lanes, ids).ok());
      ASSERT_TRUE(expected->StepLanes(lanes, ids).ok());
      for (uint32_t& id : ids) id = random.Below(vocabulary);
      ASSERT_TRUE(found->LogProbabilityLanes(lanes, ids, scores).ok());
      ASSERT_TRUE(expected->LogProbabilityLanes(lanes, ids, as_good).ok());
      ASSERT_EQ(scores, as_good) << step;
      const auto best = found->TopKLanes(lanes, 6).value();
      const auto wanted = expected->TopKLanes(lanes, 6).value();
      for (uint32_t i = 0; i < kLanes; ++i) ASSERT_EQ(Numbers(best[i]), Numbers(wanted[i])) << i;
    }
  }
}

// The number of tails in top-k queries, and how many of them were computed.
struct TailsSeen {
  size_t opened = 0, all = 0;
};

// Steps the same tokens in two sessions and queries both for the k most probable tokens.
class TopKOfLanes {
 public:
  TopKOfLanes(std::shared_ptr<const Model> model, const ModelDraft& draft, uint32_t lanes)
      : lanes_(lanes),
        ids_(lanes),
        found_(Start(std::move(model), {.lanes = lanes})),
        expected_(Start(Open(draft, "ref"), {.lanes = lanes})) {
    std::iota(lanes_.begin(), lanes_.end(), 0);
  }
  uint32_t vocabulary() const { return expected_->model().vocabulary_size(); }
  // Ids below `below`.
  void Step(uint32_t below) {
    for (uint32_t& id : ids_) id = random_.Below(below);
    ASSERT_TRUE(found_->StepLanes(lanes_, ids_).ok());
    ASSERT_TRUE(expected_->StepLanes(lanes_, ids_).ok());
  }
  void Fork(uint32_t from, uint32_t to) {
    ASSERT_TRUE(found_->Fork(from, to).ok());
    ASSERT_TRUE(expected_->Fork(from, to).ok());
  }
  // The answers are the host's. The device computed at least the clusters that the host did.
  void Compare(uint32_t k, Computing computing, TailsSeen& seen) {
    const auto best = found_->TopKLanes(lanes_, k, computing);
    const auto wanted = expected_->TopKLanes(lanes_, k, computing);
    ASSERT_TRUE(best.ok()) << best.status().message();
    for (const uint32_t i : lanes_) ASSERT_EQ(Numbers((*best)[i]), Numbers((*wanted)[i])) << i;
    if (!found_->ranks_on_device(k)) return;
    const size_t clusters = expected_->model().plan().clusters.size();
    for (const uint32_t lane : lanes_) {
      const ClusterSet& opened = found_->last_work(lane).clusters;
      const ClusterSet& needed = expected_->last_work(lane).clusters;
      for (size_t i = 0; i < clusters; ++i) {
        ASSERT_TRUE(opened.Contains(i) || !needed.Contains(i)) << "lane " << lane << ", " << i;
      }
      if (computing == Computing::kAll) {
        ASSERT_EQ(opened, ClusterSet::First(clusters));
      }
      seen.opened += opened.Count() - 1;
      seen.all += clusters - 1;
    }
  }
  Session& found() { return *found_; }
  Session& expected() { return *expected_; }
  const std::vector<uint32_t>& lanes() const { return lanes_; }

  // The answers in arrays, from the device and from the host.
  void CompareArrays(uint32_t k, Computing computing) {
    const auto wanted = expected_->TopKLanes(lanes_, k, computing).value();
    const size_t each = std::min(k, vocabulary());
    for (Session* session : {expected_.get(), found_.get()}) {
      std::vector<uint32_t> ids(lanes_.size() * each), alone = ids;
      std::vector<double> numbers(ids.size());
      ASSERT_TRUE(session->TopKLanes(lanes_, k, ids, numbers, computing).ok());
      ASSERT_TRUE(session->TopKLanes(lanes_, k, alone, {}, computing).ok());
      EXPECT_EQ(ids, alone);
      for (size_t at = 0; at < ids.size(); ++at) {
        const Candidate& best = wanted[at / each][at % each];
        ASSERT_EQ(ids[at], best.id) << at;
        ASSERT_EQ(numbers[at], best.log_probability) << at;
      }
      numbers.resize(ids.size() + 1);
      EXPECT_EQ(session->TopKLanes(lanes_, k, ids, numbers, computing).code(),
                KINGLET_INVALID_ARGUMENT);
    }
  }

 private:
  std::vector<uint32_t> lanes_, ids_;
  std::unique_ptr<Session> found_, expected_;
  TestRandom random_{3};
};

TEST_P(SessionDevice, TailsWithoutABestTokenAreSkipped) {
  const std::string device = GetParam();
  for (const bool quantised : {false, true}) {
    for (const uint32_t cache : {0u, 9u}) {
      TinyOptions options = WholeOptions(quantised);
      options.cache_capacity = cache;
      const ModelDraft draft = TinyMicronet(options);
      const auto model = OpenHere(draft);
      ASSERT_NE(model, nullptr);
      TailsSeen few;  // 1 to 5 of the best
      for (const uint32_t lane_count : {1u, 11u, 40u, 70u}) {
        SCOPED_TRACE(std::to_string(lane_count) + " lanes, cache of " + std::to_string(cache));
        TopKOfLanes both(model, draft, lane_count);
        for (uint32_t step = 0; step < 15; ++step) {
          ASSERT_NO_FATAL_FAILURE(both.Step(both.vocabulary()));
          if (step % 5 == 4 && lane_count > 1) {
            ASSERT_NO_FATAL_FAILURE(both.Fork(step % lane_count, (step + 1) % lane_count));
          }
          TailsSeen many, all;
          ASSERT_NO_FATAL_FAILURE(both.Compare(1 + step % 5, Computing::kNeeded, few));
          ASSERT_NO_FATAL_FAILURE(both.Compare(6 + step, Computing::kNeeded, many));
          // More tokens than the head has: no tail can be skipped.
          if (6 + step > model->plan().clusters[0].size) {
            EXPECT_EQ(many.opened, many.all);
          }
          ASSERT_NO_FATAL_FAILURE(both.Compare(3, Computing::kAll, all));
          EXPECT_EQ(all.opened, all.all);
        }
      }
      if (device == "pretended") continue;
      EXPECT_GT(few.opened, 0u);
      EXPECT_LT(few.opened, few.all);
    }
  }
}

TEST_P(SessionDevice, TheBestTokensInArraysAreThoseOfTheHost) {
  const ModelDraft draft = TinyMicronet(WholeOptions(true));
  const auto model = OpenHere(draft);
  ASSERT_NE(model, nullptr);
  for (const uint32_t lane_count : {1u, 11u, 40u}) {
    TopKOfLanes both(model, draft, lane_count);
    for (const uint32_t k : {0u, 1u, 7u, 30u, 1000u}) {
      ASSERT_NO_FATAL_FAILURE(both.Step(both.vocabulary()));
      ASSERT_NO_FATAL_FAILURE(both.CompareArrays(k, Computing::kNeeded));
      ASSERT_NO_FATAL_FAILURE(both.CompareArrays(k, Computing::kAll));
    }
  }
}

// The host skips a tail that cannot contain one of the best tokens. An overflow in this tail is
// then no error, even if the device has computed the tail.
TEST_P(SessionDevice, ATailThatOverflowsIsAnErrorOnlyWhereItIsNeeded) {
  const ModelDraft draft = WithATailThatOverflows();
  const auto model = OpenHere(draft);
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(model->plan().clusters.size(), 3u);
  size_t answered = 0, refused = 0, spared = 0;
  for (const uint32_t lane_count : {1u, 33u}) {
    TopKOfLanes both(model, draft, lane_count);
    for (uint32_t step = 0; step < 40; ++step) {
      ASSERT_NO_FATAL_FAILURE(both.Step(both.vocabulary()));
      for (const uint32_t k : {2u, 5u, 8u, 12u, 17u, 25u}) {
        for (const uint32_t lane : both.lanes()) {
          // One by one: an error of one lane is the answer to all lanes of a query.
          const auto best = both.found().TopK(k, lane);
          const auto wanted = both.expected().TopK(k, lane);
          ASSERT_EQ(best.ok(), wanted.ok()) << best.status().message();
          if (!best.ok()) {
            EXPECT_EQ(best.status().message(), wanted.status().message());
            EXPECT_EQ(best.status().code(), KINGLET_NOT_FINITE);
            ++refused;
            continue;
          }
          ASSERT_EQ(Numbers(*best), Numbers(*wanted));
          ++answered;
          spared += both.found().last_work(lane).clusters.Contains(2) ? 1 : 0;
        }
        if (both.found().TopKLanes(both.lanes(), k, Computing::kAll).ok()) ADD_FAILURE();
        // Of a token of the head too.
        const std::vector<uint32_t> tokens(lane_count, 1);
        std::vector<double> scores(lane_count);
        EXPECT_TRUE(both.found().LogProbabilityLanes(both.lanes(), tokens, scores).ok());
        for (Session* session : {&both.found(), &both.expected()}) {
          EXPECT_EQ(
              session->LogProbabilityLanes(both.lanes(), tokens, scores, Computing::kAll).code(),
              KINGLET_NOT_FINITE);
        }
      }
    }
  }
  EXPECT_GT(answered, 0u);
  EXPECT_GT(refused, 0u);
  EXPECT_TRUE(spared > 0 || GetParam() == std::string("pretended"));
}

TEST_P(SessionDevice, StatesMoveToTheHostAndBack) {
  for (const Family& family : LanguageModels()) {
    SCOPED_TRACE(family.name);
    const auto model = OpenHere(family.draft);
    ASSERT_NE(model, nullptr);
    const auto device = Start(model, {.lanes = 2}), host = Start(Open(family.draft, "cpu"));
    const auto text = Tokens(60, model->vocabulary_size());
    const auto step = [&](Session& session, size_t begin, size_t end, uint32_t lane = 0) {
      for (size_t t = begin; t < end; ++t) ASSERT_TRUE(session.StepToken(text[t], lane).ok());
    };
    const auto straight = Start(Open(family.draft, "cpu"));
    step(*straight, 0, 60);
    step(*host, 0, 20);
    ASSERT_TRUE(device->Restore(*host->Save(), 1).ok());
    step(*device, 20, 40, 1);
    ASSERT_TRUE(host->Restore(*device->Save(1)).ok());
    EXPECT_TRUE(*host->Save() == *device->Save(1));
    step(*host, 40, 60);
    EXPECT_EQ(Full(*host), Full(*straight));
    ASSERT_TRUE(device->Fork(1, 0).ok());
    step(*device, 0, 30, 1);  // does not change the saved state
    step(*device, 40, 60, 0);
    EXPECT_EQ(Full(*device, 0), Full(*straight));
    EXPECT_TRUE(*device->Save(0) == *straight->Save());
    ASSERT_TRUE(device->Reset(0).ok());
    EXPECT_TRUE(*device->Save(0) == State(model));
    step(*device, 0, 60, 0);
    EXPECT_EQ(Full(*device, 0), Full(*straight));
  }
}

// Models whose windows begin with zeros, in floats, in codes of 16 bits and in rows of 9, and whose
// first token reads vectors of the token before it.
std::vector<Family> ModelsThatBeginWithZeros() {
  TinyOptions rows = WholeOptions(true);
  rows.key_size = rows.value_size = 8;
  return {{"slots", TinyMicronet(WholeOptions(true))},
          {"slots, rows of 9 bits", TinyMicronet(rows)},
          {"relative", TinyTransformer({.start = StreamStart::kZeros})},
          {"relative, codes",
           TinyTransformer({.start = StreamStart::kZeros, .quantised = true, .bits = 9})},
          {"LSTM", TinyRecurrent(Recurrent(false))},
          {"quantised LSTM", TinyRecurrent(Recurrent(true))},
          {"GRU", TinyRecurrent({.cells = {RecurrentCell::kGru, RecurrentCell::kGru}})},
          {"tanh", TinyRecurrent({.cells = {RecurrentCell::kTanh}, .quantised = true, .bits = 9})},
          {"QRNN", TinyRecurrent({.cells = {RecurrentCell::kQrnn, RecurrentCell::kQrnn}})}};
}

// A stream's answers and states do not depend on what an earlier stream left in the lane, at any
// position: windows and caches are empty, partly filled, full.
TEST_P(SessionDevice, LanesKeepNothingOfAnEarlierStream) {
  constexpr uint32_t kPositions = 16;  // windows have 5 and 6 slots, caches 7
  for (const Family& family : ModelsThatBeginWithZeros()) {
    SCOPED_TRACE(family.name);
    const auto model = OpenHere(family.draft);
    ASSERT_NE(model, nullptr);
    const auto device = Start(model, {.lanes = 4}), host = Start(Open(family.draft, "cpu"));
    const auto text = Tokens(kPositions, model->vocabulary_size(), 5);
    const auto other = Tokens(40, model->vocabulary_size(), 6);
    const auto read_other = [&](uint32_t lane, size_t count) {
      for (size_t i = 0; i < count; ++i) ASSERT_TRUE(device->StepToken(other[i], lane).ok());
    };
    std::vector<State> states = {*host->Save()};
    std::vector<std::vector<double>> answers = {{}};
    for (const uint32_t id : text) {
      ASSERT_TRUE(host->StepToken(id).ok());
      states.push_back(*host->Save());
      answers.push_back(Full(*host));
    }
    const auto compare = [&](uint32_t lane, size_t position) {
      SCOPED_TRACE(std::to_string(position));
      ASSERT_TRUE(*device->Save(lane) == states[position]);
      if (position > 0) {
        ASSERT_EQ(Full(*device, lane), answers[position]);
      }
    };
    ASSERT_NO_FATAL_FAILURE(read_other(0, 40));
    const uint64_t before = device->device_work().bytes_to_device;
    ASSERT_TRUE(device->Reset(0).ok());
    EXPECT_EQ(device->device_work().bytes_to_device, before);
    ASSERT_NO_FATAL_FAILURE(compare(0, 0));
    for (size_t i = 0; i < kPositions; ++i) {
      ASSERT_TRUE(device->StepToken(text[i], 0).ok());
      ASSERT_NO_FATAL_FAILURE(compare(0, i + 1));
      // Forked to a lane that was used, and rewound there; restored to a lane that was used.
      ASSERT_NO_FATAL_FAILURE(read_other(1, 3));
      ASSERT_TRUE(device->Fork(0, 1).ok());
      ASSERT_NO_FATAL_FAILURE(compare(1, i + 1));
      ASSERT_NO_FATAL_FAILURE(read_other(1, 2));
      ASSERT_TRUE(device->Restore(states[i + 1], 1).ok());
      ASSERT_NO_FATAL_FAILURE(compare(1, i + 1));
      ASSERT_TRUE(device->Restore(states[i / 2], 1).ok());
      ASSERT_TRUE(device->StepToken(text[i / 2], 1).ok());
      ASSERT_NO_FATAL_FAILURE(compare(1, i / 2 + 1));
      ASSERT_NO_FATAL_FAILURE(read_other(2, i));
      ASSERT_TRUE(device->Restore(*device->Save(0), 2).ok());
      ASSERT_NO_FATAL_FAILURE(compare(2, i + 1));
      ASSERT_TRUE(device->Reset(2).ok());
      ASSERT_TRUE(device->StepToken(text[0], 2).ok());
      ASSERT_NO_FATAL_FAILURE(compare(2, 1));
    }
  }
}

// Texts in pieces of any length, longer than a device takes at once, between single tokens, forks
// and restored states.
TEST_P(SessionDevice, GivenTextsHaveTheNumbersOfSingleTokens) {
  for (const Family& family : LanguageModels()) {
    SCOPED_TRACE(family.name);
    const auto model = OpenHere(family.draft);
    ASSERT_NE(model, nullptr);
    const auto found = Start(model, {.lanes = 2});
    const auto expected = Start(Open(family.draft, "ref"), {.lanes = 2});
    const uint32_t vocabulary = model->vocabulary_size();
    TestRandom random(8);
    for (const size_t count : {1, 2, 60, 3, 25, 24, 1, 70}) {
      std::vector<uint32_t> ids;
      for (size_t i = 0; i < count; ++i) ids.push_back(random.Below(vocabulary));
      std::vector<double> numbers(count), as_good(count);
      uint64_t processed = 0;
      const Computing computing = count % 2 == 0 ? Computing::kAll : Computing::kNeeded;
      ASSERT_TRUE(found->StepMany(ids, numbers, processed, 1, computing).ok());
      EXPECT_EQ(processed, count);
      ASSERT_TRUE(expected->StepMany(ids, as_good, processed, 1, computing).ok());
      if (std::isnan(as_good[0])) numbers[0] = as_good[0] = 0;  // before the first token
      ASSERT_EQ(numbers, as_good) << count;
      ASSERT_EQ(Full(*found, 1), Full(*expected, 1));
      ASSERT_EQ(found->Save(1)->Hash(), expected->Save(1)->Hash()) << count;
      for (Session* session : {found.get(), expected.get()}) {
        if (count == 25) {
          ASSERT_TRUE(session->Fork(1, 0).ok());
          ASSERT_TRUE(session->Fork(0, 1).ok());
        }
        if (count == 24) {
          const State state = *session->Save(1);
          ASSERT_TRUE(session->Reset(1).ok());
          ASSERT_TRUE(session->Restore(state, 1).ok());
        }
        ASSERT_TRUE(session->StepToken(3, 1).ok());
      }
    }
    // Without answers, and the score of a text alone.
    const std::vector<uint32_t> text = Tokens(50, vocabulary, 5);
    std::vector<double> scores(49), as_good(49);
    uint64_t processed = 0;
    for (Session* session : {found.get(), expected.get()}) {
      ASSERT_TRUE(session->Reset(0).ok());
      ASSERT_TRUE(session->StepMany(text, {}, processed).ok());
    }
    const uint64_t launches = found->device_work().launches;
    ASSERT_TRUE(found->ScoreMany(text, scores, processed).ok());
    const std::string device = GetParam();
    const bool together = family.name.find("transformer") != std::string::npos ||
                          family.name == "layers in one launch";
    if (together && device != "pretended") {
      // Not some for each token.
      EXPECT_LT(found->device_work().launches - launches, 4 * text.size());
    }
    ASSERT_TRUE(expected->ScoreMany(text, as_good, processed).ok());
    EXPECT_EQ(scores, as_good);
    EXPECT_EQ(found->Save(0)->Hash(), expected->Save(0)->Hash());
  }
}

// Texts of any length, one after the other, that a device takes together as far as it has room: the
// numbers of each text alone, and the state of the last one.
TEST_P(SessionDevice, TextsTogetherHaveTheNumbersOfEachAlone) {
  for (const Family& family : LanguageModels()) {
    SCOPED_TRACE(family.name);
    const auto model = OpenHere(family.draft);
    ASSERT_NE(model, nullptr);
    const auto found = Start(model);
    const auto expected = Start(Open(family.draft, "ref"));
    std::vector<std::vector<uint32_t>> texts;
    std::vector<std::vector<double>> numbers;
    std::vector<ScoredText> scored;
    for (const size_t size : {1, 2, 3, 2, 9, 14, 1, 30, 2, 0, 5, 60, 4, 7, 3, 2, 2, 2, 12}) {
      texts.push_back(Tokens(size, model->vocabulary_size(), texts.size()));
      const size_t context = texts.size() % 5;
      numbers.emplace_back(size - std::min(size, context + 1));
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      scored.push_back({texts[i], (i + 1) % 5, numbers[i]});
    }
    for (size_t end = 0; end <= scored.size(); end += 1 + end) {
      const std::span<const ScoredText> some = std::span(scored).first(end);
      const uint64_t launches = found->device_work().launches;
      TextProgress done;
      const Status status = found->ScoreTexts(some, done);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(done.texts, end);
      if (family.name == "layers in one launch" && end == 3) {
        const uint64_t of_all = found->device_work().launches - launches;
        ASSERT_TRUE(found->ScoreTexts(some.last(1), done).ok());
        const uint64_t of_last = found->device_work().launches - launches - of_all;
        EXPECT_TRUE(of_all == of_last || GetParam() == std::string("pretended"));
      }
      for (size_t i = 0; i < end; ++i) {
        ASSERT_TRUE(expected->Reset().ok());
        std::vector<double> as_good(std::max<size_t>(texts[i].size(), 1) - 1);
        uint64_t processed = 0;
        ASSERT_TRUE(expected->ScoreMany(texts[i], as_good, processed).ok());
        as_good.erase(as_good.begin(), as_good.end() - numbers[i].size());
        ASSERT_EQ(numbers[i], as_good) << end << ", " << i;
      }
      if (end == 0) continue;
      EXPECT_EQ(found->Save()->Hash(), expected->Save()->Hash()) << end;
      for (Session* session : {found.get(), expected.get()})
        ASSERT_TRUE(session->StepToken(1).ok());
      ASSERT_EQ(Full(*found), Full(*expected)) << end;
    }
  }
}

TEST_P(SessionDevice, ATextAmongOthersThatOverflowsIsNamed) {
  const ModelDraft draft = WithATailThatOverflows();
  const auto model = OpenHere(draft);
  ASSERT_NE(model, nullptr);
  const auto session = Start(model), expected = Start(Open(draft, "ref"));
  const uint32_t last = model->vocabulary_size() - 1;  // of the tail that overflows
  const std::vector<std::vector<uint32_t>> texts = {{1, 0, 1}, {last, 1, 0, last, 1}, {1, 0}};
  std::vector<std::vector<double>> numbers = {{0, 0}, {0, 0, 0, 0}, {0}};
  std::vector<ScoredText> scored;
  for (size_t i = 0; i < texts.size(); ++i) scored.push_back({texts[i], 0, numbers[i]});
  TextProgress done;
  EXPECT_EQ(session->ScoreTexts(scored, done).code(), KINGLET_NOT_FINITE);
  EXPECT_EQ(done.texts, 1u);
  EXPECT_EQ(done.tokens, 3u);
  std::vector<double> as_good(2);
  uint64_t processed = 0;
  ASSERT_TRUE(expected->ScoreMany(texts[0], as_good, processed).ok());
  EXPECT_EQ(numbers[0], as_good);
  ASSERT_TRUE(session->ScoreTexts(std::span(scored).subspan(2), done).ok());
  ASSERT_TRUE(expected->Reset().ok());
  as_good.resize(1);
  ASSERT_TRUE(expected->ScoreMany(texts[2], as_good, processed).ok());
  EXPECT_EQ(numbers[2], as_good);
}

TEST_P(SessionDevice, MaskedModelsReadTexts) {
  const std::vector<uint32_t> text = {2, 9, 4, 13, 3, 6, 3}, segments = {0, 0, 0, 0, 0, 1, 1};
  for (const int bits : {0, 9}) {
    for (const ScoredPart part : {ScoredPart::kClasses, ScoredPart::kSpans}) {
      const bool spans = part == ScoredPart::kSpans;
      const TinyMaskedOptions options = {.bits = bits,
                                         .quantised = bits > 0,
                                         .words = !spans,
                                         .pooler = !spans,
                                         .scores = spans ? 2u : 3u,
                                         .scored = part};
      const auto model = OpenHere(TinyMasked(options));
      ASSERT_NE(model, nullptr);
      const auto found = Start(model, {.lanes = 2});
      const auto expected = Start(Open(TinyMasked(options), "ref"), {.lanes = 2});
      const auto pooled = [&](Session& session, uint64_t position) {
        std::vector<double> out(session.pooled_width()), scores(session.scores());
        if (!out.empty()) {
          EXPECT_TRUE(session.Pooled(out, 1).ok());
        }
        EXPECT_TRUE(session.Scores(scores, spans ? position : 0, 1).ok());
        out.insert(out.end(), scores.begin(), scores.end());
        return out;
      };
      for (Session* session : {found.get(), expected.get()}) {
        ASSERT_TRUE(session->Encode({{5, 6}}, 1).ok());
        ASSERT_TRUE(session->Encode(text, segments, 1).ok());
      }
      for (const uint64_t position : {uint64_t{3}, uint64_t{0}, uint64_t{6}}) {
        ASSERT_EQ(pooled(*found, position), pooled(*expected, position));
        if (spans) continue;
        ASSERT_TRUE(found->LookAt(position, 1).ok());
        ASSERT_TRUE(expected->LookAt(position, 1).ok());
        ASSERT_EQ(Numbers(found->TopK(4, 1).value()), Numbers(expected->TopK(4, 1).value()));
        // Between two queries about one token.
        ASSERT_EQ(pooled(*found, position), pooled(*expected, position));
        ASSERT_EQ(Full(*found, 1), Full(*expected, 1));
      }
      EXPECT_EQ(found->Save(1)->Hash(), expected->Save(1)->Hash());
    }
  }
}

TEST_P(SessionDevice, SourcesAreEncoded) {
  std::vector<ModelDraft> drafts;
  for (const bool quantised : {false, true}) {
    drafts.push_back(TinyTranslation({.bits = quantised ? 9 : 0, .quantised = quantised}));
    for (const std::optional<AttentionScore>& score :
         {std::optional<AttentionScore>(), std::optional(AttentionScore::kDot),
          std::optional(AttentionScore::kGeneral), std::optional(AttentionScore::kMlp)}) {
      for (const bool both : {true, false}) {
        drafts.push_back(
            TinyRecurrentTranslation({.cell = both ? RecurrentCell::kLstm : RecurrentCell::kGru,
                                      .both_directions = both,
                                      .bridge = both,
                                      .attention = score,
                                      .quantised = quantised}));
      }
    }
  }
  for (const ModelDraft& draft : drafts) {
    SCOPED_TRACE(&draft - drafts.data());
    const auto model = OpenHere(draft);
    ASSERT_NE(model, nullptr);
    const auto found = Start(model, {.lanes = 2});
    const auto expected = Start(Open(draft, "ref"), {.lanes = 2});
    for (Session* session : {found.get(), expected.get()}) {
      ASSERT_TRUE(session->Encode(std::vector<uint32_t>{3, 4, 5, 6, 7, 8, 9}, 1).ok());
      ASSERT_TRUE(session->StepToken(2, 1).ok());
      ASSERT_TRUE(session->Encode(std::vector<uint32_t>{1, 12, 0, 7}, 1).ok());
      ASSERT_TRUE(session->Fork(1, 0).ok());
    }
    for (const uint32_t id : {2, 5, 16, 5}) {
      ASSERT_TRUE(found->StepToken(id).ok());
      ASSERT_TRUE(expected->StepToken(id).ok());
      ASSERT_EQ(Full(*found), Full(*expected));
    }
    EXPECT_EQ(found->Save()->Hash(), expected->Save()->Hash());
    // After a cancelled call the lane is as it was.
    const State before = *found->Save();
    found->Cancel();
    EXPECT_EQ(found->Encode(std::vector<uint32_t>{1}).code(), KINGLET_CANCELLED);
    EXPECT_TRUE(*found->Save() == before);
  }
}

TEST_P(SessionDevice, VectorsAndClassesEqualThoseOfTheHost) {
  const ModelDraft draft = TinyClassifier({.hidden = 5, .max_pool = true});
  const auto model = OpenHere(draft);
  ASSERT_NE(model, nullptr);
  const auto found = std::move(Embedder::Create(model)).value();
  const auto expected = std::move(Embedder::Create(Open(draft, "ref"))).value();
  for (const auto& tokens : {std::vector<uint32_t>{3, 1, 4, 1, 5}, {9}, {0, 7, 7}}) {
    std::vector<double> a(4), b(4), c(4), d(4);
    ASSERT_TRUE(found->Classify(tokens, a, b).ok());
    ASSERT_TRUE(expected->Classify(tokens, c, d).ok());
    EXPECT_EQ(a, c);
    EXPECT_EQ(b, d);
    std::vector<float> vector(6), same(6);
    ASSERT_TRUE(found->Vector(tokens[0], vector).ok());
    ASSERT_TRUE(expected->Vector(tokens[0], same).ok());
    EXPECT_EQ(vector, same);
  }
}

TEST_P(SessionDevice, TwelveLanesOrOneMayAskForAFewTokensOrNone) {
  const ModelDraft draft = TinyMicronet(WholeOptions(true));
  const auto model = OpenHere(draft);
  ASSERT_NE(model, nullptr);
  for (const uint32_t count : {1u, 12u}) {
    TopKOfLanes both(model, draft, count);
    TailsSeen seen;
    for (const uint32_t k : {3u, 1u}) {
      ASSERT_NO_FATAL_FAILURE(both.Step(40));
      ASSERT_NO_FATAL_FAILURE(both.Compare(k, Computing::kAll, seen));
    }
    const auto none = both.found().TopK(0);
    ASSERT_TRUE(none.ok()) << none.status().message();
    EXPECT_TRUE(none->empty());
    EXPECT_TRUE(both.found().TopKLanes(both.lanes(), 0).value().front().empty());
  }
}

TEST_P(SessionDevice, WhatIsRefusedOrCancelledLeavesAllAsItWas) {
  const auto model = OpenHere(TinyMicronet(WholeOptions(true)));
  ASSERT_NE(model, nullptr);
  const auto session = Start(model, {.lanes = 2});
  for (const uint32_t id : Tokens(20, 40)) {
    ASSERT_TRUE(session->StepLanes(std::vector<uint32_t>{0, 1}, std::vector<uint32_t>{id, 3}).ok());
  }
  const State before = *session->Save(1);
  const auto answers = Full(*session, 1);
  const auto step = [&](uint32_t id) {
    return session->StepLanes(std::vector<uint32_t>{0, 1}, std::vector<uint32_t>{2, id}).code();
  };
  EXPECT_EQ(step(40), KINGLET_ID_OUT_OF_RANGE);
  session->Cancel();
  EXPECT_EQ(step(7), KINGLET_CANCELLED);
  EXPECT_TRUE(*session->Save(1) == before);
  EXPECT_EQ(session->position(1), 20u);
  EXPECT_EQ(Full(*session, 1), answers);
  EXPECT_EQ(step(7), 0);
  session->Cancel();
  EXPECT_EQ(session->TopK(3).status().code(), KINGLET_CANCELLED);
  EXPECT_TRUE(session->TopK(3).ok());
}

TEST_P(SessionDevice, ObserversSeeEveryNodeAndChangeNothing) {
  const ModelDraft draft = TinyMicronet(WholeOptions(true));
  const auto model = OpenHere(draft);
  ASSERT_NE(model, nullptr);
  const auto session = Start(model), expected = Start(Open(draft, "ref"));
  size_t before = 0, after = 0;
  session->set_observer([&](const Node&, std::span<const StreamFrame>) { ++after; },
                        [&](const Node&, std::span<const StreamFrame>) { ++before; });
  for (const uint32_t id : Tokens(20, 40)) {
    ASSERT_TRUE(session->StepToken(id).ok());
    ASSERT_TRUE(expected->StepToken(id).ok());
    ASSERT_EQ(Full(*session), Full(*expected));
  }
  EXPECT_EQ(before, 20 * model->plan().nodes.size());
  EXPECT_EQ(after, before);
}

TEST(SessionOnFullDevice, IsRefusedWithTheLanesThatFit) {
  PretendedDevice device;
  const Backend backend = PretendedBackend(device);
  const auto model = OpenOn(TinyMicronet(), backend).value();
  device.memory_bytes = 5 * model->device()->BytesPerLane() + 1;
  const auto refused = Session::Create(model, {.lanes = 6});
  EXPECT_EQ(refused.status().code(), KINGLET_OUT_OF_MEMORY);
  for (const char* part : {"6 lanes", "at most 5", "pretended device"}) {
    EXPECT_NE(refused.status().message().find(part), std::string::npos)
        << refused.status().message();
  }
  const auto five = Start(model, {.lanes = 5});
  EXPECT_FALSE(Session::Create(model).ok());  // nothing is left
}

TEST(SessionOnFullDevice, WeightsThatDoNotFitAreRefused) {
  cuda::Emulation emulation;
  emulation.memory_bytes = 1000;
  const Backend backend = EmulatedCuda(emulation);
  const auto refused = OpenOn(TinyMicronet(), backend);
  EXPECT_EQ(refused.status().code(), KINGLET_OUT_OF_MEMORY) << refused.status().message();
}

TEST(SessionOnFailedDevice, ReturnsItsErrorFromThenOn) {
  PretendedDevice device;
  const Backend backend = PretendedBackend(device);
  const auto model = OpenOn(TinyMicronet(WholeOptions(true)), backend).value();
  const auto session = Start(model, {.lanes = 2});
  ASSERT_TRUE(session->StepToken(1).ok());
  const State saved = session->Save().value();
  ASSERT_TRUE(session->StepToken(1).ok());
  device.calls_left = 0;
  std::vector<double> all(40);
  EXPECT_EQ(session->StepToken(2).code(), KINGLET_INTERNAL);
  EXPECT_EQ(session->position(), 2u);
  EXPECT_EQ(session->LogProbabilities(std::span<double>(all)).code(), KINGLET_INTERNAL);
  EXPECT_EQ(session->TopKLanes(std::vector<uint32_t>{0}, 2).status().code(), KINGLET_INTERNAL);
  EXPECT_EQ(session->Save().status().code(), KINGLET_INTERNAL);
  EXPECT_EQ(session->Fork(0, 1).code(), KINGLET_INTERNAL);
  EXPECT_EQ(session->Restore(saved).code(), KINGLET_INTERNAL);
  EXPECT_TRUE(session->Reset().ok());  // is no work for the device
  EXPECT_EQ(session->StepToken(2).code(), KINGLET_INTERNAL);
}

}  // namespace
}  // namespace kinglet::session_device_test
