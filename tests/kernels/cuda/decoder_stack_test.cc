// All layers of a decoder in one launch for few lanes, and in two a layer for many, emulated,
// against `ref`: answers and states of sessions, for random shapes and for the best MicroNet's.
#include "kernels/cuda/decoder_stack.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/cuda/stacks.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/device_backends.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::cuda::decoder_stack_test {
namespace {

Result<std::shared_ptr<const Model>> OpenOn(const ModelDraft& draft, const Backend& backend) {
  ModelOptions options;
  options.own_backend = &backend;
  return Model::FromBytes(SerialiseModel(draft).value(), options);
}

// Sanitizers take ten times as long.
#ifdef KINGLET_SANITIZED
constexpr bool kIsQuick = true;
#else
constexpr bool kIsQuick = false;
#endif

// Runs the same tokens in lanes of two sessions, at positions that differ, and compares.
class Pair {
 public:
  Pair(const ModelDraft& draft, uint32_t lanes, Order order, uint64_t seed)
      : backend_(EmulatedCuda({3, order})),
        found_(Start(OpenOn(draft, backend_).value(), {.lanes = lanes})),
        expected_(Start(Open(draft, "ref"), {.lanes = lanes})),
        random_(seed) {}

  // One token of some of the lanes.
  void Step(double share) {
    std::vector<uint32_t> lanes, ids;
    for (uint32_t lane = 0; lane < count(); ++lane) {
      if (random_.Below(1000) >= 1000 * share) continue;
      lanes.push_back(lane);
      ids.push_back(random_.Below(expected_->model().vocabulary_size()));
    }
    StepLanes(lanes, ids);
  }
  void StepLanes(const std::vector<uint32_t>& lanes, const std::vector<uint32_t>& ids) {
    ASSERT_TRUE(found_->StepLanes(lanes, ids).ok());
    ASSERT_TRUE(expected_->StepLanes(lanes, ids).ok());
  }
  void Fork(uint32_t from, uint32_t to) {
    for (Session* session : {found_.get(), expected_.get()}) {
      ASSERT_TRUE(session->Fork(from, to).ok());
    }
  }
  void Reset(uint32_t lane) {
    for (Session* session : {found_.get(), expected_.get()}) {
      ASSERT_TRUE(session->Reset(lane).ok());
    }
  }
  // The host's state goes to the device's lane, and back.
  void Exchange(uint32_t from, uint32_t to) {
    ASSERT_TRUE(found_->Restore(*expected_->Save(from), to).ok());
    ASSERT_TRUE(expected_->Restore(*found_->Save(to), to).ok());
  }
  void Compare(uint32_t lane) {
    ASSERT_EQ(Full(*found_, lane), Full(*expected_, lane)) << "lane " << lane;
    ASSERT_EQ(found_->Save(lane)->Hash(), expected_->Save(lane)->Hash()) << "lane " << lane;
  }
  uint32_t Below(uint32_t n) { return random_.Below(n); }
  uint32_t count() const { return expected_->lanes(); }

 private:
  Backend backend_;
  std::unique_ptr<Session> found_, expected_;
  TestRandom random_;
};

void ExpectSame(const ModelDraft& draft, uint32_t lanes, uint32_t steps, Order order,
                uint64_t seed) {
  Pair both(draft, lanes, order, seed);
  std::vector<uint32_t> all(lanes), ids(lanes);
  std::iota(all.begin(), all.end(), 0);
  for (uint32_t& id : ids) id = both.Below(20);
  ASSERT_NO_FATAL_FAILURE(both.StepLanes(all, ids));
  for (uint32_t step = 0; step < steps; ++step) {
    ASSERT_NO_FATAL_FAILURE(both.Step(lanes < 3 ? 1 : 0.7));
    const uint32_t lane = both.Below(lanes), other = both.Below(lanes);
    if (step % 5 == 2) {
      ASSERT_NO_FATAL_FAILURE(both.Fork(lane, other));
    }
    if (step % 7 == 3) {
      ASSERT_NO_FATAL_FAILURE(both.Exchange(lane, other));
    }
    if (step % 11 == 5) {
      ASSERT_NO_FATAL_FAILURE(both.Reset(lane));
      ASSERT_NO_FATAL_FAILURE(both.StepLanes({lane}, {1}));
    }
    // In long texts a difference stays.
    if (steps > 50 && step % 8 != 0) continue;
    ASSERT_NO_FATAL_FAILURE(both.Compare(both.Below(lanes)));
  }
  for (uint32_t lane = 0; lane < lanes; ++lane) ASSERT_NO_FATAL_FAILURE(both.Compare(lane));
}

TEST(CudaDecoderStack, LanesEqualThoseOfRef) {
  const ModelDraft draft = TinyMicronet(Stackable());
  for (const Order order : {Order::kForward, Order::kBackward}) {
    for (const uint32_t lanes : {1u, 2u, 15u, 17u, 33u, 64u, 65u, 129u}) {
      if (kIsQuick && lanes != 17 && lanes != 65) continue;
      SCOPED_TRACE(std::to_string(lanes) + " lanes");
      EXPECT_EQ(StacksOf<AnyShape>(draft, lanes), lanes <= kFewLanes ? 1 : 0);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(draft, lanes, lanes < 20 ? 25 : 8, order, lanes));
    }
  }
}

TEST(CudaDecoderStack, RandomShapesEqualRef) {
  TestRandom random(58);
  const uint64_t trials = kIsQuick ? 10 : 30;
  uint64_t stacks = 0;
  for (uint64_t trial = 0; trial < trials; ++trial) {
    TinyOptions options = Stackable();
    options.seed = trial;
    options.layers = 1 + random.Below(3);
    options.width = 4 * (1 + random.Below(trial % 4 == 0 ? 64 : 16));
    options.heads = 1 + random.Below(trial % 3 == 0 ? 18 : 8);
    options.key_size = 8 * (1 + random.Below(trial % 5 == 0 ? 8 : 4));
    options.value_size = 8 * (1 + random.Below(trial % 5 == 1 ? 8 : 3));
    options.inner = 1 + random.Below(trial % 4 == 1 ? 300 : 70);
    options.window = 1 + random.Below(trial % 6 == 2 ? 256 : 40);
    options.pruned = trial % 2 == 0;
    options.cache_capacity = trial % 3 == 1 ? 0 : 5;
    SCOPED_TRACE("trial " + std::to_string(trial));
    const ModelDraft draft = TinyMicronet(options);
    const Order order = trial % 2 == 0 ? Order::kForward : Order::kBackward;
    const uint32_t many = kFewLanes + 1 + random.Below(40);
    if (trial % 5 == 0) {
      ASSERT_NO_FATAL_FAILURE(ExpectSame(draft, many, 2, order, trial));
    }
    // Some do not fit a thread block, and some have rows of 16 bits.
    if (StacksOf<AnyShape>(draft, 3) == 0) continue;
    ++stacks;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(draft, 1 + random.Below(3), 20, order, trial));
  }
  EXPECT_GT(stacks, trials / 2);
}

// Both beginnings of streams, with and without biases and a norm at the end.
TEST(CudaDecoderStack, FormsOfDecodersEqualRef) {
  for (uint64_t trial = 0; trial < (kIsQuick ? 6 : 16); ++trial) {
    TinyTransformerOptions options;
    options.norm_order = NormOrder::kPre;
    options.positions = TinyPositions::kSlots;
    options.start = trial % 3 == 0 ? StreamStart::kZeros : StreamStart::kMasked;
    options.biases = trial % 2 == 0;
    options.final_norm = trial % 5 < 2;
    options.quantised = true;
    options.bits = 8;
    options.key_size = options.value_size = 16;
    options.width = 36;
    options.seed = trial;
    options.vocabulary_size = 20;
    SCOPED_TRACE("trial " + std::to_string(trial));
    const ModelDraft draft = TinyTransformer(options);
    ASSERT_EQ(StacksOf<AnyShape>(draft, 1), 1);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(draft, 3, 15, Order::kBackward, trial));
    ASSERT_NO_FATAL_FAILURE(ExpectSame(draft, 66, 3, Order::kForward, trial));
  }
}

TinyOptions Best(uint32_t layers) {
  TinyOptions options = Stackable();
  options.layers = layers;
  options.width = 256;
  options.heads = 8;
  options.key_size = options.value_size = 24;
  options.inner = 768;
  options.window = 97;
  return options;
}

TEST(CudaDecoderStack, TheBestMicronetsShapeEqualsRef) {
  const ModelDraft draft = TinyMicronet(Best(2));
  EXPECT_EQ(StacksOf<BestShape>(draft, 1), 1);
  EXPECT_EQ(StacksOf<AnyShape>(draft, 1), 0);
  // The window is full after 97 tokens.
  ASSERT_NO_FATAL_FAILURE(ExpectSame(draft, 1, kIsQuick ? 7 : 110, Order::kForward, 1));
  if (kIsQuick) return;
  ASSERT_NO_FATAL_FAILURE(ExpectSame(draft, 2, 12, Order::kBackward, 2));
  ASSERT_NO_FATAL_FAILURE(ExpectSame(draft, 97, 2, Order::kForward, 3));
}

// Scores that overflow, and the NaN that their differences are, reach later numbers alike.
TEST(CudaDecoderStack, ScoresThatOverflowEqualThoseOfRef) {
  for (const float value : {3e38f, -3e38f}) {
    ModelDraft draft = TinyMicronet(Stackable());
    for (EncodedTensor& tensor : draft.tensors) {
      if (tensor.name.find("pos") == std::string::npos) continue;
      auto* const floats = std::get_if<DenseF32>(&tensor.values);
      if (floats != nullptr) floats->values[3] = value;
    }
    const Backend backend = EmulatedCuda();
    for (const uint32_t count : {1u, 70u}) {
      const auto found = Start(OpenOn(draft, backend).value(), {.lanes = count});
      const auto expected = Start(Open(draft, "ref"), {.lanes = count});
      std::vector<uint32_t> lanes(count);
      std::iota(lanes.begin(), lanes.end(), 0);
      for (uint32_t id = 0; id < 12; ++id) {
        const std::vector<uint32_t> ids(count, id);
        ASSERT_EQ(found->StepLanes(lanes, ids).ok(), expected->StepLanes(lanes, ids).ok());
        ASSERT_EQ(found->Save(count - 1)->Hash(), expected->Save(count - 1)->Hash())
            << value << " " << id;
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::cuda::decoder_stack_test
