#include "converters/passes/input_moments.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "format/write_file.h"
#include "format/writer.h"
#include "tests/converters/synthetic.h"
#include "tests/support/masked_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::input_moments_test {
namespace {

Result<InputMoments> Measure(const ModelDraft& draft, const CalibrationInput& input) {
  const TemporaryFolder folder;
  const std::string file = folder.Path("model.kgl");
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, SerialiseModel(draft));
  KINGLET_RETURN_IF_ERROR(WriteFileAtomically(bytes, file));
  return MeasureInputs(file, input);
}

const std::vector<float>& ValuesOf(const ModelDraft& draft, TensorId id) {
  return std::get<DenseF32>(draft.tensors[id].values).values;
}

// The first layer's input is the embedding's row, independently of the other layers.
TEST(MeasureInputs, OfTheFirstLayerAreTheEmbeddedWords) {
  const ModelDraft draft = TinyRecurrent();
  const std::vector<uint32_t> tokens = {3, 7, 3, 11, 0};
  const auto moments = Measure(draft, {.tokens = tokens});
  ASSERT_TRUE(moments.ok()) << moments.status().message();
  const auto* embedding = FindBlock<AdaptiveEmbedding>(draft.description);
  const auto* decoder = FindBlock<RecurrentDecoder>(draft.description);
  const SecondMoments& found = moments->at(decoder->layers[0].input_weight);
  ASSERT_EQ(found.width, embedding->width);
  const std::vector<float>& table = ValuesOf(draft, embedding->bins[0].table);
  for (uint64_t a = 0; a < found.width; ++a) {
    for (uint64_t b = 0; b < found.width; ++b) {
      double sum = 0;
      for (const uint32_t token : tokens) {
        sum += embedding->scale * embedding->scale * double{table[token * found.width + a]} *
               double{table[token * found.width + b]};
      }
      EXPECT_NEAR(found.mean[a * found.width + b], sum / 5, 1e-6);
    }
  }
  // Tables that are only looked up have none; those of all clusters do.
  EXPECT_FALSE(moments->contains(embedding->bins[0].table));
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  EXPECT_TRUE(moments->contains(*softmax->head_table));
  for (const SoftmaxTail& tail : softmax->tails) EXPECT_TRUE(moments->contains(tail.table));
}

// A tail's table is multiplied with P h, so that its moments are P M P^T.
TEST(MeasureInputs, OfAProjectedTailFollowFromTheHiddenStates) {
  const ModelDraft draft = TinyMicronet();
  const auto moments = Measure(draft, {.tokens = {1, 5, 9, 2, 2, 17}});
  ASSERT_TRUE(moments.ok()) << moments.status().message();
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  const SecondMoments& hidden = moments->at(*softmax->head_table);
  const SoftmaxTail& tail = softmax->tails.back();
  ASSERT_TRUE(tail.projection);
  const SecondMoments& found = moments->at(tail.table);
  const std::vector<float>& projection = ValuesOf(draft, *tail.projection);
  for (uint64_t a = 0; a < found.width; ++a) {
    for (uint64_t b = 0; b < found.width; ++b) {
      double sum = 0;
      for (uint64_t i = 0; i < hidden.width; ++i) {
        for (uint64_t j = 0; j < hidden.width; ++j) {
          sum += double{projection[a * hidden.width + i]} * hidden.mean[i * hidden.width + j] *
                 double{projection[b * hidden.width + j]};
        }
      }
      EXPECT_NEAR(found.mean[a * found.width + b], sum, 1e-5);
    }
  }
}

TEST(MeasureInputs, OfPairsAndWhatTheyRefuse) {
  const ModelDraft draft = TinyTranslation();
  const std::vector<SentencePair> pairs = {{{1, 2}, {3, 1}}, {{2}, {1}}};
  const auto moments = Measure(draft, {.pairs = pairs});
  ASSERT_TRUE(moments.ok()) << moments.status().message();
  EXPECT_TRUE(moments->contains(
      FindBlock<TransformerEncoder>(draft.description)->stack.layers[0].qkv_weight));
  // A masked model: all matrices that queries use, at masks and about the complete text.
  const ModelDraft masked = TinyMasked({.scores = 3});
  const auto read = Measure(masked, {.texts = {{{2, 9, 8, 3}, {0, 0, 1, 1}}, {{2, 3}, {}}}});
  ASSERT_TRUE(read.ok()) << read.status().message();
  const auto* text = FindBlock<MaskedModel>(masked.description);
  const auto* transform = FindDenseLayers(masked.description, DensePlace::kOutput);
  for (const TensorId id : {text->stack.layers[1].outer_weight, text->pooler->weight,
                            text->scores->weight, transform->layers[0].weight}) {
    EXPECT_TRUE(read->contains(id)) << masked.tensors[id].name;
  }
  EXPECT_FALSE(Measure(TinyMicronet(), {.tokens = {1, 4000000}}).ok());
  ModelDraft broken = TinyRecurrent();
  const TensorId table = FindBlock<AdaptiveEmbedding>(broken.description)->bins[0].table;
  std::get<DenseF32>(broken.tensors[table].values).values[18] = std::numeric_limits<float>::max();
  FindBlock<AdaptiveEmbedding>(broken.description)->scale = 1e10;
  EXPECT_EQ(Measure(broken, {.tokens = {3, 3}}).status().code(), KINGLET_NOT_FINITE);
}

}  // namespace
}  // namespace kinglet::input_moments_test
