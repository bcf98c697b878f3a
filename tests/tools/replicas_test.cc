#include "tools/replicas.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::replicas_test {
namespace {

std::shared_ptr<const Model> TinyModel(const char* backend = "ref") {
  ModelOptions options;
  options.backend = backend;
  return *Model::FromBytes(*SerialiseModel(TinyMicronet()), options);
}

TEST(Replicas, EveryLaneStepsAndAnswersWhateverTheThreads) {
  const auto model = TinyModel("cpu");
  const auto alone = *Session::Create(model);
  ASSERT_TRUE(alone->StepToken(3).ok());
  const double expected = *alone->LogProbability(5);
  for (const size_t lanes : {1, 2, 5, 20}) {
    for (const size_t threads : {1, 3}) {
      Replicas replicas = *Replicas::Create(model, {}, lanes, threads);
      ASSERT_TRUE(replicas.Step(7).ok());
      ASSERT_TRUE(replicas.Reset().ok());
      ASSERT_TRUE(replicas.Step(3).ok());
      EXPECT_EQ(replicas.position(), 1u);
      const auto answer = replicas.LogProbability(5, 0);
      ASSERT_TRUE(answer.ok()) << answer.status().message();
      EXPECT_EQ(*answer, expected);
      std::vector<uint32_t> seen;
      const auto each = replicas.AskEach<double>(0, [&](Session& session, uint32_t lane) {
        seen.push_back(lane);
        return session.LogProbability(5, lane);
      });
      ASSERT_TRUE(each.ok());
      EXPECT_EQ(*each, expected);
      EXPECT_EQ(seen.size(), lanes);
    }
  }
}

TEST(Replicas, ADifferenceNamesItsPosition) {
  Replicas replicas = *Replicas::Create(TinyModel(), {}, 3, 1);
  const auto answer = replicas.AskEach<double>(102, [](Session&, uint32_t lane) -> Result<double> {
    return lane == 2 ? -0.0 : 0.0;  // one bit
  });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.status().code(), KINGLET_MISMATCH);
  EXPECT_EQ(answer.status().message(),
            "lanes: position 102: expected the same bits from every lane, found lane 2 differs "
            "from lane 0");
}

TEST(Replicas, ALaneThatDiffersIsFoundByItsLogProbability) {
  Replicas replicas = *Replicas::Create(TinyModel(), {}, 4, 1);
  ASSERT_TRUE(replicas.Step(3).ok());
  ASSERT_TRUE(replicas.LogProbability(5, 0).ok());
  // One more token on one lane only.
  const auto stepped = replicas.AskEach<double>(0, [](Session& session, uint32_t lane) {
    const Status status = lane == 3 ? session.StepToken(4, lane) : Status();
    return status.ok() ? Result<double>(0.0) : status;
  });
  ASSERT_TRUE(stepped.ok());
  const auto answer = replicas.LogProbability(5, 9);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.status().code(), KINGLET_MISMATCH);
  EXPECT_NE(answer.status().message().find("position 9"), std::string::npos);
}

TEST(Replicas, ALaneThatFailsFailsAll) {
  Replicas replicas = *Replicas::Create(TinyModel(), {}, 4, 2);
  int calls = 0;
  const auto answer = replicas.AskEach<double>(0, [&](Session&, uint32_t) -> Result<double> {
    if (calls++ == 3) return Status(KINGLET_OUT_OF_MEMORY, "no memory");
    return 0.0;
  });
  EXPECT_EQ(answer.status().code(), KINGLET_OUT_OF_MEMORY);
}

TEST(Replicas, MemoryIsBounded) {
  const auto replicas = Replicas::Create(TinyModel(), {}, std::numeric_limits<uint32_t>::max(), 1);
  EXPECT_EQ(replicas.status().code(), KINGLET_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace kinglet::replicas_test
