#include "tools/replicas.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <mutex>
#include <set>

#include "tests/support/model_builder.h"

namespace kinglet::replicas_test {
namespace {

std::shared_ptr<const Model> TinyModel() {
  ModelOptions options;
  options.backend = "ref";
  return *Model::FromBytes(*SerialiseModel(TinyMicronet()), options);
}

TEST(Replicas, EveryLaneWorksOnceWhateverTheThreads) {
  const auto model = TinyModel();
  for (const size_t lanes : {1, 2, 5}) {
    for (const size_t threads : {1, 2, 3, 64}) {
      Replicas replicas = *Replicas::Create(model, {}, lanes, threads);
      std::mutex mutex;
      std::multiset<Session*> seen;
      const auto answers = replicas.Run<double>(0, [&](Session& session, std::vector<double>& out) {
        const std::lock_guard<std::mutex> lock(mutex);
        seen.insert(&session);
        out = {1.0, 2.0};
        return Status();
      });
      ASSERT_TRUE(answers.ok());
      EXPECT_EQ(*answers, (std::vector<double>{1.0, 2.0}));
      EXPECT_EQ(seen.size(), lanes);
      EXPECT_EQ(std::set<Session*>(seen.begin(), seen.end()).size(), lanes);
    }
  }
}

TEST(Replicas, ADifferenceNamesItsPosition) {
  Replicas replicas = *Replicas::Create(TinyModel(), {}, 3, 1);
  int lane = 0;
  const auto answers = replicas.Run<double>(100, [&](Session&, std::vector<double>& out) {
    out = {0.0, 0.0, lane++ == 2 ? -0.0 : 0.0};  // one bit
    return Status();
  });
  ASSERT_FALSE(answers.ok());
  EXPECT_EQ(answers.status().code(), KINGLET_MISMATCH);
  EXPECT_EQ(answers.status().message(),
            "lanes: position 102: expected the same bits from every lane, found lane 2 differs "
            "from lane 0");
}

TEST(Replicas, AMissingAnswerIsADifference) {
  Replicas replicas = *Replicas::Create(TinyModel(), {}, 2, 1);
  int lane = 0;
  const auto answers = replicas.Run<double>(0, [&](Session&, std::vector<double>& out) {
    out.resize(lane++ == 0 ? 2 : 1);
    return Status();
  });
  EXPECT_EQ(answers.status().code(), KINGLET_MISMATCH);
}

TEST(Replicas, ALaneThatFailsFailsAll) {
  Replicas replicas = *Replicas::Create(TinyModel(), {}, 4, 2);
  std::atomic<int> calls{0};
  const auto answers = replicas.Run<double>(0, [&](Session&, std::vector<double>&) {
    if (calls++ == 3) throw std::bad_alloc();
    return Status();
  });
  EXPECT_EQ(answers.status().code(), KINGLET_OUT_OF_MEMORY);
}

TEST(Replicas, MemoryIsBounded) {
  const auto replicas = Replicas::Create(TinyModel(), {}, std::numeric_limits<uint32_t>::max(), 1);
  EXPECT_EQ(replicas.status().code(), KINGLET_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace kinglet::replicas_test
