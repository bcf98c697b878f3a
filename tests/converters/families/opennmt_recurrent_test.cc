// tests/converters/convert_opennmt_test.cc tests the answers of recurrent models.
#include <gtest/gtest.h>

#include <vector>

#include "converters/convert.h"
#include "runtime/translation.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/test_checkpoints.h"

namespace kinglet::opennmt_recurrent_test {
namespace {

constexpr uint32_t kStart = 2, kEnd = 3;

TEST(OpenNmtRecurrent, SourcesAndCancellation) {
  const TemporaryFolder folder;
  ConvertOptions options = FixtureOptions(KINGLET_TEST_DATA "/opennmt-recurrent/rnn-lstm-none");
  options.output = folder.Path("m.kgl");
  options.memory_length = 4;
  ASSERT_TRUE(Convert(options).ok());
  const auto session = *Session::Create(*Model::Open(options.output, {}));
  EXPECT_EQ(session->StepToken(kStart).code(), KINGLET_NO_SOURCE_YET);
  const std::vector<uint32_t> longest = {1, 2, 3, 4, 5}, longer = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(session->Encode(longest).ok());
  ASSERT_TRUE(session->StepToken(kStart).ok());
  const double before = *session->LogProbability(5);
  const Status refused = session->Encode(longer);
  EXPECT_EQ(refused.message(), "session: source: expected 1 to 5 tokens, found 6");
  session->Cancel();
  EXPECT_EQ(session->Encode(longest).code(), KINGLET_CANCELLED);
  EXPECT_EQ(*session->LogProbability(5), before);
  TranslationOptions search{kEnd, 100, 0};
  EXPECT_TRUE(Translate(longest, search, *session).ok());  // targets have no limit
}

}  // namespace
}  // namespace kinglet::opennmt_recurrent_test
