// Sessions of every form of Transformer: compares their log-probabilities with an independent
// evaluation in double precision (reference_network), and backends, lanes and saved states with
// each other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/runtime/reference_network.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::session_transformer_test {
namespace {

struct Form {
  const char* name;
  TinyTransformerOptions options;
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

using TP = TinyPositions;
constexpr NormOrder kPre = NormOrder::kPre;
constexpr StreamStart kZeros = StreamStart::kZeros;

const Form kForms[] = {
    {"relative", {}},
    {"relative_pre", {.norm_order = kPre}},
    {"relative_zeros", {.start = kZeros}},
    {"relative_pre_zeros", {.norm_order = kPre, .start = kZeros}},
    {"relative_start_rows", {.norm_order = kPre, .start = kZeros, .start_rows = true}},
    {"relative_clamp", {.clamp = 2}},
    {"relative_clamp_zeros", {.norm_order = kPre, .start = kZeros, .clamp = 1, .start_rows = true}},
    {"relative_clamp_nothing", {.clamp = 0, .tied_position_biases = true}},
    {"relative_clamp_beyond", {.clamp = 70}},
    {"relative_one_slot", {.window = 1}},
    {"relative_biases", {.biases = true, .final_norm = true, .epsilon = 1e-2}},
    {"relative_odd_heads", {.heads = 5, .key_size = 3, .value_size = 7}},
    {"relative_wide_heads", {.heads = 2, .key_size = 41, .value_size = 41, .window = 40}},
    {"relative_quantised", {.quantised = true, .bits = 9}},
    {"relative_quantised_start",
     {.norm_order = kPre,
      .start = kZeros,
      .clamp = 3,
      .start_rows = true,
      .quantised = true,
      .bits = 8}},
    {"relative_many_bits", {.quantised = true, .bits = 16}},
    {"relative_packed", {.bits = 6}},
    {"absolute", {.positions = TP::kAbsolute, .norm_order = kPre, .biases = true}},
    {"absolute_post", {.positions = TP::kAbsolute, .first = 0, .final_norm = true}},
    {"absolute_quantised",
     {.positions = TP::kAbsolute, .norm_order = kPre, .quantised = true, .bits = 9}},
    {"absolute_one_position", {.positions = TP::kAbsolute, .window = 1}},
    {"table", {.positions = TP::kTable, .norm_order = kPre, .final_norm = true, .window = 7}},
    {"table_odd_width", {.positions = TP::kTable, .width = 7}},
    {"slots_post", {.positions = TP::kSlots, .biases = true}},
};

class Transformers : public ::testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Forms, Transformers, ::testing::ValuesIn(kForms),
                         [](const auto& instance) { return std::string(instance.param.name); });

// More than three windows.
std::vector<uint32_t> Text(const TinyTransformerOptions& options) {
  return Tokens(3 * options.window + 4, options.vocabulary_size);
}

TEST_P(Transformers, AgreeWithTheEquations) {
  const TinyTransformerOptions& options = GetParam().options;
  const ModelDraft draft = TinyTransformer(options);
  const std::vector<uint32_t> ids = Text(options);
  const auto expected = EvaluateDensely(draft, ids);
  for (const std::string backend : {"ref64", "ref", "cpu"}) {
    const double tolerance = backend == "ref64" ? 1e-11 : options.quantised ? 0.05 : 2e-5;
    const auto session = Start(Open(draft, backend));
    for (size_t t = 0; t < ids.size(); ++t) {
      ASSERT_TRUE(session->StepToken(ids[t]).ok());
      const std::vector<double> found = Full(*session);
      for (size_t w = 0; w < found.size(); ++w) {
        ASSERT_NEAR(found[w], expected[t][w], tolerance) << backend << ", token " << t;
      }
    }
  }
}

TEST_P(Transformers, LanesAndSavedStatesAreTheSameBits) {
  const TinyTransformerOptions& options = GetParam().options;
  const auto model = Open(TinyTransformer(options), "cpu");
  const auto reference = Start(Open(TinyTransformer(options), "ref"));
  const std::vector<uint32_t> ids = Text(options);
  const auto one = Start(model), two = Start(model, {.lanes = 2});
  std::optional<State> saved;
  std::vector<std::vector<double>> seen;
  for (size_t t = 0; t < ids.size(); ++t) {
    if (t == ids.size() / 2) saved = *one->Save();
    ASSERT_TRUE(one->StepToken(ids[t]).ok() && reference->StepToken(ids[t]).ok());
    ASSERT_TRUE(two->StepToken(ids[t], 1).ok());
    ASSERT_TRUE(two->StepToken(ids[ids.size() - 1 - t], 0).ok());
    seen.push_back(Full(*one));
    ASSERT_EQ(Full(*two, 1), seen.back()) << t;
    ASSERT_EQ(Full(*reference), seen.back()) << t;
  }
  ASSERT_TRUE(one->Restore(*saved).ok());
  for (size_t t = ids.size() / 2; t < ids.size(); ++t) {
    ASSERT_TRUE(one->StepToken(ids[t]).ok());
    ASSERT_EQ(Full(*one), seen[t]) << t;
  }
}

// After the last position the stream starts again and remembers nothing.
TEST(TransformerSession, AfterTheLastAbsolutePositionAStreamStartsAnew) {
  const TinyTransformerOptions options{.positions = TP::kAbsolute, .norm_order = kPre};
  const auto model = Open(TinyTransformer(options), "cpu");
  const auto fresh = Start(model), old = Start(model);
  const std::vector<uint32_t> ids = Tokens(options.window, options.vocabulary_size);
  for (uint32_t i = 0; i < 2 * options.window; ++i) ASSERT_TRUE(old->StepToken(i % 3).ok());
  for (const uint32_t id : ids) {
    ASSERT_TRUE(fresh->StepToken(id).ok() && old->StepToken(id).ok());
    EXPECT_EQ(Full(*fresh), Full(*old));
  }
}

}  // namespace
}  // namespace kinglet::session_transformer_test
