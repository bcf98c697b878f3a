// Compares vectors with the decoded table, and class scores with the block's formula, which is
// written out here in double precision.
#include "runtime/embedder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/session_fixture.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/recurrent_builder.h"

namespace kinglet::embedder_test {
namespace {

using Doubles = std::vector<double>;
const char* const kBackends[] = {"ref64", "ref", "cpu"};

std::unique_ptr<Embedder> Embed(const ModelDraft& draft, const std::string& backend) {
  auto embedder = Embedder::Create(Open(draft, backend));
  EXPECT_TRUE(embedder.ok()) << embedder.status().message();
  return std::move(*embedder);
}

Doubles VectorOf(Embedder& embedder, uint32_t id) {
  Doubles vector(embedder.width());
  const Status status = embedder.Vector(id, std::span(vector));
  EXPECT_TRUE(status.ok()) << status.message();
  return vector;
}

struct Scores {
  Doubles logits, log_probabilities;
  bool operator==(const Scores&) const = default;
};
Scores ScoresOf(Embedder& embedder, const std::vector<uint32_t>& ids) {
  Scores scores{Doubles(embedder.classes()), Doubles(embedder.classes())};
  const Status status = embedder.Classify(ids, scores.logits, scores.log_probabilities);
  EXPECT_TRUE(status.ok()) << status.message();
  return scores;
}

// Element by element from the draft, in any encoding.
class DraftNumbers {
 public:
  explicit DraftNumbers(const ModelDraft& draft) : draft_(draft) {}
  double At(TensorId id, uint64_t row, uint64_t column = 0) const {
    const EncodedTensor& tensor = draft_.tensors[id];
    const uint64_t columns = tensor.shape.size() == 1 ? 1 : tensor.shape[1];
    if (const auto* coded = std::get_if<Coded>(&tensor.values)) {
      const uint64_t length = columns / coded->scheme.positions, position = column / length;
      const uint32_t code =
          std::get<std::vector<uint32_t>>(coded->codes)[row * coded->scheme.positions + position];
      return At(coded->scheme.codebook, position * coded->scheme.pools[0] + code, column % length);
    }
    return double{std::get<DenseF32>(tensor.values).values[row * columns + column]};
  }
  const AdaptiveEmbedding& embedding() const {
    return *FindBlock<AdaptiveEmbedding>(draft_.description);
  }
  double Vector(uint32_t word, uint64_t i) const {
    return embedding().scale * At(embedding().bins[0].table, word, i);
  }

  Doubles Logits(const std::vector<uint32_t>& ids) const {
    const BagClassifier& block = *FindBlock<BagClassifier>(draft_.description);
    const uint64_t width = embedding().width;
    Doubles x(width);
    Doubles largest(width, -std::numeric_limits<double>::infinity());
    double words = 0;
    for (const uint32_t id : ids) {
      const bool counts = id != block.padding;
      words += counts ? 1 : 0;
      for (uint64_t i = 0; i < width; ++i) {
        const double entry = counts ? Vector(id, i) : 0;
        x[i] += entry;
        largest[i] = std::max(largest[i], entry);
      }
    }
    for (double& mean : x) mean /= words;
    if (block.max_pool) x.insert(x.end(), largest.begin(), largest.end());
    if (block.hidden) {
      const BagHiddenLayer& hidden = *block.hidden;
      x = Rectified(x, hidden.input_scale, hidden.input_shift);
      x = Rectified(Dense(x, hidden.weight, hidden.bias), hidden.output_scale, hidden.output_shift);
    }
    return Dense(x, block.weight, block.bias);
  }

 private:
  Doubles Rectified(Doubles x, TensorId scale, TensorId shift) const {
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::max(0.0, x[i] * At(scale, i) + At(shift, i));
    return x;
  }
  Doubles Dense(const Doubles& x, TensorId weight, std::optional<TensorId> bias) const {
    Doubles y(draft_.tensors[weight].shape[0]);
    for (size_t row = 0; row < y.size(); ++row) {
      if (bias) y[row] = At(*bias, row);
      for (size_t i = 0; i < x.size(); ++i) y[row] += At(weight, row, i) * x[i];
    }
    return y;
  }

  const ModelDraft& draft_;
};

TEST(Embedder, VectorsAreTheScaledRows) {
  for (const uint32_t positions : {0U, 3U}) {
    const ModelDraft draft = TinyClassifier({.positions = positions, .classes = 0});
    const DraftNumbers numbers(draft);
    for (const char* backend : kBackends) {
      const auto embedder = Embed(draft, backend);
      EXPECT_EQ(embedder->width(), 6U);
      EXPECT_EQ(embedder->classes(), 0U);
      for (uint32_t word = 0; word < 23; ++word) {
        const Doubles vector = VectorOf(*embedder, word);
        for (uint64_t i = 0; i < 6; ++i) {
          // One product by 1.5, rounded once.
          const double exact = numbers.Vector(word, i);
          EXPECT_EQ(vector[i], embedder->model().backend().real_bytes == 8
                                   ? exact
                                   : double{static_cast<float>(exact)});
        }
        std::vector<float> floats(6);
        ASSERT_TRUE(embedder->Vector(word, std::span(floats)).ok());
        for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(floats[i], static_cast<float>(vector[i]));
      }
    }
  }
}

// The vectors of a language model are the input of its first layer, bit for bit, while a session
// uses the same model.
TEST(Embedder, LanguageModelsGiveWhatTheirEmbeddingNodeComputes) {
  ModelDraft drafts[] = {TinyMicronet({.quantised = true, .cache_capacity = 4}), TinyMicronet(),
                         TinyRecurrent({.quantised = true, .bits = 9})};
  for (const ModelDraft& draft : drafts) {
    for (const char* backend : kBackends) {
      const auto model = Open(draft, backend);
      const auto session = Start(model);
      const auto embedder = std::move(*Embedder::Create(model));
      Doubles seen;
      session->set_observer([&](const Node& node, std::span<const StreamFrame> frames) {
        const StreamFrame& frame = frames.front();
        const auto* row = std::get_if<EmbedRow>(&node.op);
        if (row == nullptr) return;
        const Slot& slot = model->layout()[row->out];
        for (uint64_t i = 0; i < slot.count; ++i) {
          seen.push_back(model->backend().real_bytes == 8 ? slot.At<double>(frame)[i]
                                                          : double{slot.At<float>(frame)[i]});
        }
      });
      for (const uint32_t id : {22U, 0U, 9U, 22U}) {
        seen.clear();
        ASSERT_TRUE(session->StepToken(id).ok());
        EXPECT_EQ(VectorOf(*embedder, id), seen);
      }
    }
  }
}

TEST(Embedder, ClassScoresFollowTheFormula) {
  const std::vector<std::vector<uint32_t>> lists = {
      {5}, {22, 22, 22}, {1, 0}, {0, 0, 3}, {8, 0, 8, 21}, Tokens(40, 22, 3), Tokens(2000, 23, 4)};
  for (const uint32_t hidden : {0U, 5U}) {
    for (const bool max_pool : {false, true}) {
      for (const std::optional<uint32_t> padding : {std::optional<uint32_t>(0), {}}) {
        const ModelDraft draft = TinyClassifier({.positions = hidden == 0 ? 0U : 2U,
                                                 .hidden = hidden,
                                                 .max_pool = max_pool,
                                                 .padding = padding,
                                                 .biases = max_pool});
        const DraftNumbers numbers(draft);
        const auto sharp = Embed(draft, "ref64"), ref = Embed(draft, "ref"),
                   cpu = Embed(draft, "cpu");
        for (const std::vector<uint32_t>& ids : lists) {
          const Doubles expected = numbers.Logits(ids);
          double total = 0;
          for (const double logit : expected) total += std::exp(logit);
          const Scores exact = ScoresOf(*sharp, ids), rounded = ScoresOf(*ref, ids);
          for (size_t i = 0; i < expected.size(); ++i) {
            EXPECT_NEAR(exact.logits[i], expected[i], 1e-12);
            EXPECT_NEAR(exact.log_probabilities[i], expected[i] - std::log(total), 1e-12);
            EXPECT_NEAR(rounded.logits[i], expected[i], 1e-4);
            EXPECT_NEAR(rounded.log_probabilities[i], expected[i] - std::log(total), 1e-4);
          }
          EXPECT_EQ(ScoresOf(*cpu, ids), rounded);  // the same bits
          EXPECT_EQ(ScoresOf(*ref, ids), rounded);  // other lists leave no trace
        }
      }
    }
  }
}

TEST(Embedder, SumsOverWordsAreTakenInOrder) {
  ModelDraft draft = TinyClassifier({.vocabulary_size = 4,
                                     .width = 1,
                                     .classes = 1,
                                     .padding = {},
                                     .biases = false,
                                     .vocabulary = false});
  std::get<DenseF32>(draft.tensors[0].values).values = {0x1p24F, 1, -0x1p24F, 3};
  std::get<DenseF32>(draft.tensors[1].values).values = {1};
  std::get<AdaptiveEmbedding>(draft.description.blocks[0]).scale = 1;
  for (const char* backend : {"ref", "cpu"}) {
    const auto embedder = Embed(draft, backend);
    EXPECT_EQ(ScoresOf(*embedder, {0, 1, 1, 2}).logits[0], 0);  // 2^24 + 1 = 2^24 in float
    EXPECT_EQ(ScoresOf(*embedder, {1, 1, 0, 2}).logits[0], 0.5);
  }
}

TEST(Embedder, RefusesWhatItCannotDo) {
  const auto embedder = Embed(TinyClassifier({.padding = 3}), "cpu");
  Doubles scores(4, 7), vector(6, 7);
  const auto classify = [&](std::vector<uint32_t> ids) {
    return embedder->Classify(ids, scores, {}).code();
  };
  EXPECT_EQ(embedder->Vector(23, std::span(vector)).code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(embedder->Vector(0, std::span(vector).first(5)).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(classify({}), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(classify({3, 3}), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(classify({1, 23}), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(embedder->Classify({}, {}, std::span(scores).first(3)).code(),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(vector, Doubles(6, 7));
  EXPECT_EQ(scores, Doubles(4, 7));
  EXPECT_EQ(classify({0}), KINGLET_OK);  // 0 is a word like others here
  EXPECT_TRUE(embedder->Classify(std::vector<uint32_t>{1}, {}, {}).ok());

  const auto plain = Embed(TinyClassifier({.classes = 0}), "cpu");
  EXPECT_EQ(plain->Classify(std::vector<uint32_t>{1}, {}, {}).code(), KINGLET_UNSUPPORTED);
  const auto session = Session::Create(Open(TinyClassifier(), "cpu"));
  EXPECT_EQ(session.status().message(),
            "session: model: expected a language model, found an embedding with a classifier of "
            "word lists");
  EXPECT_EQ(Session::Create(Open(TinyClassifier({.classes = 0}), "cpu")).status().code(),
            KINGLET_UNSUPPORTED);
}

TEST(Embedder, NumbersThatOverflowAreRefused) {
  ModelDraft draft = TinyClassifier();
  for (float& value : std::get<DenseF32>(draft.tensors[0].values).values) value = 3e38F;
  Doubles scores(4, 7), vector(6, 7);
  const auto embedder = Embed(draft, "cpu");
  EXPECT_EQ(embedder->Vector(1, std::span(vector)).code(), KINGLET_NOT_FINITE);
  EXPECT_EQ(embedder->Classify(std::vector<uint32_t>{1}, scores, scores).code(),
            KINGLET_NOT_FINITE);
  EXPECT_EQ(vector, Doubles(6, 7));
  EXPECT_EQ(scores, Doubles(4, 7));
  EXPECT_EQ(VectorOf(*Embed(draft, "ref64"), 1)[0], 1.5 * double{3e38F});
}

TEST(Embedder, CountsAgainstTheMemoryLimits) {
  const auto bytes = *SerialiseModel(TinyClassifier());
  ModelOptions options;
  options.session_memory_limit = 1;
  EXPECT_EQ(Embedder::Create(*Model::FromBytes(bytes, options)).status().code(),
            KINGLET_OUT_OF_MEMORY);
  options = {};
  options.memory_limit = 1 << 20;
  const auto model = *Model::FromBytes(bytes, options);
  const uint64_t before = model->budget()->left();
  {
    const auto embedder = std::move(*Embedder::Create(model));
    EXPECT_EQ(model->budget()->left(), before - Embedder::Bytes(*model));
  }
  EXPECT_EQ(model->budget()->left(), before);
}

TEST(Embedder, ThreadsShareAModel) {
  const auto model = Open(TinyClassifier({.hidden = 5, .max_pool = true}), "cpu");
  const std::vector<uint32_t> ids = Tokens(50, 23);
  std::vector<Scores> found(4);
  std::vector<std::thread> threads;
  for (Scores& scores : found) {
    threads.emplace_back([&] {
      const auto embedder = std::move(*Embedder::Create(model));
      for (int pass = 0; pass < 20; ++pass) scores = ScoresOf(*embedder, ids);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Scores& scores : found) EXPECT_EQ(scores, found[0]);
}

}  // namespace
}  // namespace kinglet::embedder_test
