#include "converters/tuning/text_trace.h"

#include <gtest/gtest.h>

#include <cmath>

#include "format/writer.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/support/model_builder.h"

namespace kinglet::text_trace_test {
namespace {

std::vector<uint32_t> RandomIds(uint64_t count, uint32_t vocabulary) {
  TestRandom random(count);
  std::vector<uint32_t> ids;
  for (uint64_t i = 0; i < count; ++i) ids.push_back(random.Below(vocabulary));
  return ids;
}

std::shared_ptr<const ModelFile> FileOf(const ModelDraft& draft) {
  const auto bytes = SerialiseModel(draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return ModelFile::FromBytes(*bytes).value();
}

// With one bin, log p is the log-softmax of table * hidden + bias. Computing that here in double
// from the draft's weights and the traced states shows that the states and their scale are right.
TEST(TraceText, TheStatesAreThoseOfTheProbabilities) {
  for (const bool quantised : {false, true}) {
    TinyOptions options;
    options.bins = 1;
    options.quantised = quantised;
    const ModelDraft draft = TinyMicronet(options);
    const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
    const std::vector<float> table = DecodedValues(draft.tensors[*softmax->head_table]);
    const std::vector<float> bias = softmax->head_bias
                                        ? DecodedValues(draft.tensors[*softmax->head_bias])
                                        : std::vector<float>(options.vocabulary_size);
    const std::vector<uint32_t> ids = RandomIds(50, options.vocabulary_size);
    const auto trace = TraceText(FileOf(draft), ids, {});
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    EXPECT_EQ(trace->ids, ids);
    EXPECT_EQ(trace->width, options.width);
    ASSERT_EQ(trace->log_probabilities.size(), ids.size() - 1);
    ASSERT_EQ(trace->hidden.size(), (ids.size() - 1) * options.width);
    EXPECT_EQ(trace->product_scale == 1.0F, !quantised);
    const double unit = std::sqrt(static_cast<double>(trace->product_scale));
    for (uint64_t t = 0; t + 1 < ids.size(); ++t) {
      std::vector<double> logits;
      double total = 0;
      for (uint32_t word = 0; word < options.vocabulary_size; ++word) {
        double logit = bias[word];
        for (uint32_t i = 0; i < options.width; ++i) {
          logit += static_cast<double>(table[word * options.width + i]) * unit *
                   static_cast<double>(trace->hidden[t * options.width + i]);
        }
        logits.push_back(logit);
        total += std::exp(logit);
      }
      EXPECT_NEAR(trace->log_probabilities[t], logits[ids[t + 1]] - std::log(total), 1e-5)
          << "quantised " << quantised << ", token " << t;
    }
  }
}

TEST(ScoreText, IsTheMeanOverASession) {
  const auto file = FileOf(TinyMicronet({.cache_capacity = 6}));
  const std::vector<uint32_t> ids = RandomIds(600, 23);
  const auto session = Session::Create(Model::FromFile(file, {}).value());
  long double sum = 0;
  for (size_t at = 1; at < ids.size(); ++at) {
    ASSERT_TRUE((*session)->StepToken(ids[at - 1]).ok());
    sum -= (*session)->LogProbability(ids[at]).value();
  }
  std::vector<uint64_t> reports;
  const auto loss = ScoreText(file, ids, [&reports](uint64_t done) { reports.push_back(done); });
  ASSERT_TRUE(loss.ok()) << loss.status().message();
  EXPECT_EQ(*loss, static_cast<double>(sum / 599));
  EXPECT_EQ(reports, (std::vector<uint64_t>{256, 512}));
  EXPECT_TRUE(ScoreText(file, std::vector<uint32_t>{3, 4}, {}).ok());
}

TEST(TextTrace, IdsOutOfTheVocabulary) {
  const auto file = FileOf(TinyMicronet());
  const std::vector<uint32_t> ids = {1, 23, 2};
  EXPECT_EQ(TraceText(file, ids, {}).status().code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(ScoreText(file, ids, {}).status().code(), KINGLET_ID_OUT_OF_RANGE);
}

}  // namespace
}  // namespace kinglet::text_trace_test
