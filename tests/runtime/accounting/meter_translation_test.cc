// The operations of translations, by the formulas of docs/ACCOUNTING.md.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/accounting/meter.h"
#include "tests/runtime/lower/lowering.h"
#include "tests/support/translation_builder.h"

namespace kinglet::meter_translation_test {
namespace {

const BackendTraits kReference = {};

void ExpectTally(const OperationTally& found, const OperationTally& expected) {
  EXPECT_DOUBLE_EQ(found.multiplications, expected.multiplications);
  EXPECT_DOUBLE_EQ(found.additions, expected.additions);
  EXPECT_DOUBLE_EQ(found.others, expected.others);
}

OperationTally Matrix(double rows, double cols) { return {rows * cols, rows * cols, 0}; }  // biased
OperationTally Norm(double n) { return {2 * n, 5 * n - 1, n + 3}; }
OperationTally Attention(double heads, double seen, double key, double value) {
  return {heads * seen * (key + 1 + value),
          heads * (seen * (key - 1) + 2 * seen - 1 + (seen - 1) * value), heads * (3 * seen - 1)};
}
OperationTally FeedForward(double width, double inner) {
  OperationTally sum = Matrix(inner, width);
  sum += Matrix(width, inner);
  sum += OperationTally{0, width, inner};  // the residual, the ReLU
  return sum;
}

// TinyTranslation: 3 heads of keys of 4 and values of 5 on 10, 2 heads on 8, two layers each.
OperationTally SourceToken(double length) {
  OperationTally sum = {10, 10, 0};  // scale, position
  for (int layer = 0; layer < 2; ++layer) {
    sum += Norm(10);
    sum += Matrix(39, 10);
    sum += Attention(3, length, 4, 5);
    sum += Matrix(10, 15);
    sum += OperationTally{0, 10, 0};
    sum += Norm(10);
    sum += FeedForward(10, 10);
  }
  sum += Norm(10);
  sum += Matrix(18, 10) * 2;  // keys and values for two layers
  return sum;
}
OperationTally TargetToken(double position, double source_length) {
  OperationTally sum = {8, 8, 0};
  for (int layer = 0; layer < 2; ++layer) {
    sum += Norm(8);
    sum += Matrix(26, 8);
    sum += Attention(2, position + 1, 4, 5);
    sum += Matrix(8, 10);
    sum += Norm(8);
    sum += Matrix(8, 8);
    sum += Attention(2, source_length, 4, 5);
    sum += Matrix(8, 10);
    sum += OperationTally{0, 16, 0};
    sum += Norm(8);
    sum += FeedForward(8, 10);
  }
  sum += Norm(8);
  sum += Matrix(17, 8);
  sum += OperationTally{0, 16, 2 * 17};  // normaliser
  sum += OperationTally{0, 3 * 17, 17};  // distribution
  return sum;
}

TEST(Meter, TranslationsAreCountedByTheLengthsOfBothSides) {
  const auto file = *ModelFile::FromBytes(*SerialiseModel(TinyTranslation()));
  const Plan plan = *Lower(*file);
  const std::vector<uint64_t> nonzeros = CountNonzeros(plan.weights);
  Trace encoder = EncoderTrace(plan, std::vector<uint32_t>{1, 12, 0});
  encoder += EncoderTrace(plan, std::vector<uint32_t>{7});
  Trace decoder = FullTrace(plan, std::vector<uint32_t>{2, 5, 16}, 3);
  decoder += FullTrace(plan, std::vector<uint32_t>{2, 4}, 1);
  EXPECT_EQ(encoder.tokens(), 4u);
  EXPECT_EQ(decoder.tokens(), 5u);

  const auto encoded = CountExecuted(plan, nonzeros, kReference, encoder);
  OperationTally expected = SourceToken(3) * 3;
  expected += SourceToken(1);
  ExpectTally(encoded.operations, expected / 4);
  for (const Component& component : encoded.components) {
    EXPECT_TRUE(component.name.starts_with("encoder") ||
                component.name.find(".source.key_value") != std::string::npos)
        << component.name;
  }
  const auto decoded = CountExecuted(plan, nonzeros, kReference, decoder);
  expected = {};
  for (const double position : {0, 1, 2}) expected += TargetToken(position, 3);
  for (const double position : {0, 1}) expected += TargetToken(position, 1);
  ExpectTally(decoded.operations, expected / 5);
  for (const Component& component : decoded.components) {
    EXPECT_FALSE(component.name.starts_with("encoder")) << component.name;
  }
}

// Attention to the source in integers also rescales its sums and rounds its weights.
TEST(Meter, QuantisedAttentionToTheSource) {
  const auto file =
      *ModelFile::FromBytes(*SerialiseModel(TinyTranslation({.bits = 9, .quantised = true})));
  const Plan plan = *Lower(*file);
  const auto count = CountExecuted(plan, CountNonzeros(plan.weights), kReference,
                                   FullTrace(plan, std::vector<uint32_t>{2}, 6));
  const auto find = [&](const std::string& name) {
    for (const Component& component : count.components) {
      if (component.name == name) return component.operations;
    }
    ADD_FAILURE() << "no component " << name;
    return OperationTally();
  };
  const std::string name = "layers.1.source.attention";
  ExpectTally(find(name + ".query_keys"), {2 * 6 * 4, 2 * 6 * 3, 0});
  ExpectTally(find(name + ".rescale"), {2 * (2 * 6 + 2 * 5), 0, 0});
  ExpectTally(find(name + ".quantise_weights"), {0, 0, 4 * 2 * 6});
}

}  // namespace
}  // namespace kinglet::meter_translation_test
