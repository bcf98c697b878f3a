#include "tests/synthesis/coded_synthesis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <variant>

#include "format/model_file.h"
#include "runtime/session.h"

namespace kinglet::coded_synthesis_test {
namespace {

CodedSynthesisSpec Small(int bits) {
  CodedSynthesisSpec spec;
  spec.name = "small";
  spec.vocabulary_size = 30;
  spec.width = 12;
  spec.input = {4, {7}};
  spec.units = {6, 8};
  spec.output = {4, {5, 4, 4, 4}};
  spec.output_bias = true;
  spec.bits = bits;
  return spec;
}

TEST(CodedSynthesis, FilesRun) {
  for (const int bits : {0, 2, 9}) {
    const auto bytes = *SerialiseModel(*SynthesiseCoded(Small(bits)));
    EXPECT_EQ(bytes, *SerialiseModel(*SynthesiseCoded(Small(bits))));
    const auto model = *Model::FromBytes(bytes, {});
    const auto session = *Session::Create(model);
    std::vector<double> all(30);
    for (const uint32_t id : {0u, 29u, 4u}) {
      ASSERT_TRUE(session->StepToken(id).ok());
      ASSERT_TRUE(session->LogProbabilities(std::span<double>(all)).ok());
      double sum = 0;
      for (const double value : all) sum += std::exp(value);
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

TEST(CodedSynthesis, OutlinesHaveTheModelsShapes) {
  const ModelDraft model = *SynthesiseCoded(Small(9)), outline = *OutlineCoded(Small(9));
  ASSERT_EQ(model.tensors.size(), outline.tensors.size());
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    EXPECT_EQ(model.tensors[i].name, outline.tensors[i].name);
    EXPECT_EQ(model.tensors[i].shape, outline.tensors[i].shape);
    EXPECT_EQ(model.tensors[i].values.index(), outline.tensors[i].values.index());
    if (!model.tensors[i].coded()) {
      EXPECT_EQ(CountNonzeros(model.tensors[i]), Count(model.tensors[i].shape));
    }
  }
}

TEST(CodedSynthesis, RefusesWhatNoModelHas) {
  const auto refused = [](void (*change)(CodedSynthesisSpec&), const char* where) {
    CodedSynthesisSpec spec = Small(0);
    change(spec);
    const auto draft = SynthesiseCoded(spec);
    ASSERT_FALSE(draft.ok()) << where;
    EXPECT_NE(draft.status().message().find(std::string("synthesis: ") + where), std::string::npos)
        << draft.status().message();
  };
  refused([](CodedSynthesisSpec& spec) { spec.vocabulary_size = 1; }, "vocabulary size");
  refused([](CodedSynthesisSpec& spec) { spec.width = 0; }, "width");
  refused([](CodedSynthesisSpec& spec) { spec.input.positions = 5; }, "input positions");
  refused([](CodedSynthesisSpec& spec) { spec.input.positions = 0; }, "input positions");
  refused([](CodedSynthesisSpec& spec) { spec.input.pools = {}; }, "input pools");
  refused([](CodedSynthesisSpec& spec) { spec.input.pools = {0}; }, "input pool");
  refused([](CodedSynthesisSpec& spec) { spec.output->pools = {4, 4}; }, "output pools");
  refused([](CodedSynthesisSpec& spec) { spec.units = {}; }, "layers");
  refused([](CodedSynthesisSpec& spec) { spec.units = {0}; }, "units");
  refused([](CodedSynthesisSpec& spec) { spec.bits = 1; }, "bits");
  refused([](CodedSynthesisSpec& spec) { spec.bits = -3; }, "bits");
  refused([](CodedSynthesisSpec& spec) { spec.units = {1 << 20, 8}; }, "entries of all tensors");
}

}  // namespace
}  // namespace kinglet::coded_synthesis_test
