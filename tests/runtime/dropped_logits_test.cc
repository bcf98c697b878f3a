// Queries that read few words of a large cluster, whose logits kernels then do not store. Every
// answer has the bits of the full distribution, after any earlier queries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tests/runtime/session_fixture.h"
#include "tests/support/softmax_builder.h"

namespace kinglet::dropped_logits_test {
namespace {

// A tail that a kernel sums tile by tile.
constexpr uint32_t kLarge = 65700;

struct Shape {
  TinySoftmax softmax;
  uint32_t cache_capacity;
  bool quantised;
};

std::vector<Shape> Shapes() {
  TinySoftmax tails;
  tails.tails = {7, kLarge, 9};
  tails.spread = 3;
  TinySoftmax packed = tails;
  packed.bits = 9;
  packed.tails = {kLarge};
  packed.tail_columns = 4;
  packed.tail_input = TailInput::kFixedPoint15;
  TinySoftmax whole;  // one cluster
  whole.head_size = kLarge;
  whole.tails = {};
  whole.bits = 9;
  return {{tails, 40, false}, {packed, 40, true}, {whole, 0, true}, {whole, 11, true}};
}

std::shared_ptr<const Model> OpenShape(const Shape& shape, const std::string& backend = "cpu") {
  return Open(TinyMicronetWith(shape.softmax, {.quantised = shape.quantised,
                                               .bits = shape.softmax.bits,
                                               .vocabulary = false,
                                               .cache_capacity = shape.cache_capacity}),
              backend);
}

std::vector<float> FullFloats(Session& session, uint32_t lane = 0) {
  std::vector<float> all(session.model().vocabulary_size());
  EXPECT_TRUE(session.LogProbabilities(std::span<float>(all), lane).ok());
  return all;
}

// Answers of a session of the reference, which stores all logits.
class DroppedLogits : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    model_ = OpenShape(Shapes()[GetParam()]);
    ids_ = Tokens(60, model_->vocabulary_size());
    expected_ = Start(OpenShape(Shapes()[GetParam()], "ref"));
    session_ = Start(model_, {.lanes = 3, .threads = 2});
  }
  void Step(uint32_t id) {
    ASSERT_TRUE(expected_->StepToken(id).ok());
    for (uint32_t lane = 0; lane < 3; ++lane) ASSERT_TRUE(session_->StepToken(id, lane).ok());
    all_ = Full(*expected_);
  }
  // Words of every cluster, some of which the cache holds, the first and last word of all, and
  // neighbours.
  std::vector<uint32_t> Words(size_t position) const {
    const uint32_t n = model_->vocabulary_size();
    std::vector<uint32_t> words = {0, 6, n - 1, n - 20, n / 2, n / 2 + 1};
    for (size_t i = 0; i <= position; i += 5) words.push_back(ids_[i]);
    return words;
  }
  void CheckTop(const std::vector<Candidate>& top, uint32_t k) const {
    std::vector<Candidate> sorted(all_.size());
    for (uint32_t id = 0; id < all_.size(); ++id) sorted[id] = {id, all_[id]};
    std::partial_sort(sorted.begin(), sorted.begin() + k, sorted.end(), MoreProbable);
    ASSERT_EQ(top.size(), k);
    for (uint32_t i = 0; i < k; ++i) {
      ASSERT_EQ(top[i].id, sorted[i].id) << i;
      ASSERT_EQ(top[i].log_probability, sorted[i].log_probability) << i;
    }
  }

  std::shared_ptr<const Model> model_;
  std::vector<uint32_t> ids_;
  std::unique_ptr<Session> expected_, session_;
  std::vector<double> all_;
};

TEST_P(DroppedLogits, AVectorKernelMakesThemAgain) {
#ifndef KINGLET_HAVE_CPU_BACKEND
  GTEST_SKIP() << "the build has no vector kernels";
#endif
  EXPECT_EQ(std::ranges::count_if(model_->kernels(),
                                  [](const Kernel& kernel) { return bool{kernel.logits}; }),
            1);
}

TEST_P(DroppedLogits, AnswersHaveTheBitsOfTheFullDistribution) {
  for (size_t i = 0; i < ids_.size(); ++i) {
    SCOPED_TRACE(i);
    const auto lane = static_cast<uint32_t>(i % 3), next = (lane + 1) % 3, last = (lane + 2) % 3;
    Step(ids_[i]);
    const std::vector<uint32_t> words = Words(i);
    // One word, and then another of the same cluster.
    for (const uint32_t id : words) {
      ASSERT_EQ(*session_->LogProbability(id, lane), all_[id]) << id;
    }
    // Several words at once.
    std::vector<double> several(words.size());
    ASSERT_TRUE(session_->LogProbabilitiesOf(words, several, next).ok());
    for (size_t w = 0; w < words.size(); ++w) ASSERT_EQ(several[w], all_[words[w]]) << words[w];
    if (i % 12 != 5) continue;
    for (const uint32_t k : {1u, 10u, 300u}) {
      CheckTop(*session_->TopK(k, lane), k);
      CheckTop(*session_->TopK(k, last), k);  // the first query of this lane
    }
    ASSERT_EQ(*session_->Rank(words.back(), lane), *expected_->Rank(words.back()));
    // All words after a few, twice, and a few after all.
    const std::vector<float> floats(all_.begin(), all_.end());
    ASSERT_TRUE(FullFloats(*session_, lane) == floats);
    ASSERT_TRUE(Full(*session_, lane) == all_);
    ASSERT_EQ(*session_->LogProbability(words[3], lane), all_[words[3]]);
    ASSERT_EQ(*session_->Rank(words[2], lane), *expected_->Rank(words[2]));
    ASSERT_TRUE(session_->ComputeAll(next).ok());
    CheckTop(*session_->TopK(10, next), 10);
  }
}

TEST_P(DroppedLogits, LanesAndTextsHaveTheSameBits) {
  std::vector<double> single(ids_.size());
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (i > 0) single[i] = Full(*expected_)[ids_[i]];
    ASSERT_TRUE(expected_->StepToken(ids_[i]).ok());
  }
  all_ = Full(*expected_);
  for (const uint32_t lane : {0u, 2u}) {
    std::vector<double> out(ids_.size());
    uint64_t processed = 0;
    const Computing computing = lane == 0 ? Computing::kAll : Computing::kNeeded;
    ASSERT_TRUE(session_->StepMany(ids_, out, processed, lane, computing).ok());
    for (size_t i = 1; i < ids_.size(); ++i) ASSERT_EQ(out[i], single[i]) << i;
  }
  const std::vector<uint32_t> lanes = {2, 0};
  for (const Computing computing : {Computing::kNeeded, Computing::kAll}) {
    const auto top = session_->TopKLanes(lanes, 10, computing);
    ASSERT_TRUE(top.ok());
    for (const auto& of_lane : *top) CheckTop(of_lane, 10);
    const std::vector<uint32_t> words = {3, model_->vocabulary_size() - 30};
    std::vector<double> out(2);
    ASSERT_TRUE(session_->LogProbabilityLanes(lanes, words, out, computing).ok());
    EXPECT_EQ(out, (std::vector<double>{all_[words[0]], all_[words[1]]}));
  }
}

// A distribution's logits are made in the memory of the answer.
TEST_P(DroppedLogits, AllWordsOfATokenThatWasNotAskedForHaveTheBitsOfTheReference) {
  for (size_t i = 0; i < ids_.size(); ++i) {
    const auto lane = static_cast<uint32_t>(i % 3);
    Step(ids_[i]);
    if (i % 6 != 5) continue;
    SCOPED_TRACE(i);
    const std::vector<float> floats(all_.begin(), all_.end());
    if (i % 12 == 5) {
      ASSERT_TRUE(FullFloats(*session_, lane) == floats);
    } else {
      ASSERT_TRUE(Full(*session_, lane) == all_);
    }
    CheckTop(*session_->TopK(300, lane), 300);
    for (const uint32_t id : Words(i)) ASSERT_EQ(*session_->LogProbability(id, lane), all_[id]);
    std::vector<double> probabilities(all_.size()), expected(all_.size());
    ASSERT_TRUE(session_->Probabilities(std::span(probabilities), (lane + 1) % 3).ok());
    ASSERT_TRUE(expected_->Probabilities(std::span(expected)).ok());
    ASSERT_TRUE(probabilities == expected);
  }
}

TEST_P(DroppedLogits, ACancelledDistributionWritesNothing) {
  Step(ids_[0]);
  const std::vector<float> untouched(all_.size(), 7.0f);
  std::vector<float> all = untouched;
  session_->Cancel();
  ASSERT_EQ(session_->LogProbabilities(std::span(all)).code(), KINGLET_CANCELLED);
  ASSERT_TRUE(all == untouched);
  for (size_t stop = 0, done = 1; done > stop; ++stop) {
    ASSERT_TRUE(session_->StepToken(ids_[0]).ok());
    ASSERT_TRUE(expected_->StepToken(ids_[0]).ok());
    done = 0;
    session_->set_observer([&](const kinglet::Node&, std::span<const StreamFrame>) {
      if (done++ == stop) session_->Cancel();
    });
    all = untouched;
    const Status status = session_->LogProbabilities(std::span(all));
    session_->set_observer({});
    if (status.ok()) {
      ASSERT_TRUE(std::ranges::equal(all, Full(*expected_))) << stop;
      // A cancellation that came too late is the next call's.
      if (done > stop) {
        ASSERT_EQ(session_->StepToken(ids_[0]).code(), KINGLET_CANCELLED);
      }
    } else {
      ASSERT_EQ(status.code(), KINGLET_CANCELLED) << stop;
      ASSERT_TRUE(all == untouched) << stop;
    }
  }
}

// Enough words for workers to help writing them in the memory of the answer.
TEST(ADistribution, OfTwoThreadsHasTheBitsOfTheReference) {
  TinySoftmax softmax;
  softmax.tails = {300007, 9};
  softmax.bits = 9;
  softmax.tail_columns = 4;
  softmax.tail_input = TailInput::kFixedPoint15;
  ModelDraft draft = TinyMicronetWith(
      softmax, {.quantised = true, .bits = 9, .vocabulary = false, .cache_capacity = 7});
  Quantised biases;
  biases.bits = 9;
  biases.rule = ScaleRule::kDividePerTensor;
  biases.scales = {97.3f};
  TestRandom random(4);
  for (uint32_t i = 0; i < softmax.tails[0]; ++i) {
    biases.codes.push_back(static_cast<int16_t>(static_cast<int>(random.Below(512)) - 256));
  }
  draft.tensors.push_back({"output.tail.0.bias", {softmax.tails[0]}, std::move(biases), false});
  for (Block& block : draft.description.blocks) {
    auto* const own = std::get_if<AdaptiveSoftmax>(&block);
    if (own != nullptr) own->tails[0].bias = static_cast<TensorId>(draft.tensors.size() - 1);
  }
  const auto expected = Start(Open(draft, "ref")), one = Start(Open(draft, "cpu")),
             two = Start(Open(draft, "cpu"), {.threads = 2});
  for (const uint32_t id : Tokens(4, expected->model().vocabulary_size())) {
    for (Session* const session : {expected.get(), one.get(), two.get()}) {
      ASSERT_TRUE(session->StepToken(id).ok());
    }
    const std::vector<double> all = Full(*expected);
    const std::vector<float> floats(all.begin(), all.end());
    for (Session* const session : {one.get(), two.get()}) {
      ASSERT_TRUE(FullFloats(*session) == floats);
      ASSERT_TRUE(Full(*session) == all);  // makes the logits again
      ASSERT_EQ(*session->LogProbability(300000), all[300000]);
    }
  }
}

// Scales with which logits can overflow, and do in the second case.
TEST(ADistribution, OfLogitsThatAreNotFiniteWritesNothing) {
  TinySoftmax softmax;
  softmax.tails = {9, kLarge};
  softmax.bits = 9;
  for (const TailInput input : {TailInput::kAsIs, TailInput::kFixedPoint15}) {
    softmax.tail_input = input;
    for (const float scale : {1e34f, 1.3e36f}) {
      for (const char* backend : {"ref", "cpu"}) {
        ModelDraft draft = TinyMicronetWith(
            softmax, {.quantised = true, .bits = 9, .vocabulary = false, .cache_capacity = 5});
        for (EncodedTensor& tensor : draft.tensors) {
          if (tensor.name != "output.tail.1.table") continue;
          auto& packed = std::get<Quantised>(tensor.values);
          std::ranges::fill(packed.scales, scale);
          for (int16_t& code : packed.codes) code = code < 0 ? -255 : 255;
        }
        const auto session = Start(Open(draft, backend));
        ASSERT_TRUE(session->StepToken(1).ok());
        std::vector<float> all(session->model().vocabulary_size(), 7.0f);
        const std::vector<float> untouched = all;
        const Status status = session->LogProbabilities(std::span(all));
        if (scale < 1e36f) {
          ASSERT_TRUE(status.ok()) << backend << status.message();
          EXPECT_FALSE(all == untouched);
        } else {
          ASSERT_EQ(status.code(), KINGLET_NOT_FINITE) << backend;
          EXPECT_TRUE(all == untouched);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, DroppedLogits, testing::Range(size_t{0}, Shapes().size()));

}  // namespace
}  // namespace kinglet::dropped_logits_test
