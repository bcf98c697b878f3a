// What many lanes on a device take of the host: no memory from step to step, few copies and waits.
// Times are measured by bench/host_path.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/counted_memory.h"
#include "tests/support/instant_device.h"

namespace kinglet::host_path_test {
namespace {

constexpr uint32_t kLanes = 100, kBest = 10;

class HostPath : public testing::Test {
 protected:
  HostPath() {
    TinyOptions options = WholeOptions(true);
    options.vocabulary_size = 200;
    ModelOptions on_device;
    on_device.own_backend = &backend_;
    const auto model =
        Model::FromBytes(SerialiseModel(TinyMicronet(options)).value(), on_device).value();
    session_ = Start(model, {.lanes = kLanes});
    std::iota(lanes_.begin(), lanes_.end(), 0);
  }
  void Step() {
    for (uint32_t& id : ids_) id = (id * 3 + 5) % 200;
    EXPECT_TRUE(session_->StepLanes(lanes_, ids_).ok());
  }
  void Best(Computing computing) {
    EXPECT_TRUE(session_->TopKLanes(lanes_, kBest, best_, of_best_, computing).ok());
  }
  void Score() { EXPECT_TRUE(session_->LogProbabilityLanes(lanes_, ids_, scores_).ok()); }

  // The calls of the device since the last call of this function.
  struct Copies {
    uint64_t uploads, waits;
    bool operator==(const Copies&) const = default;
  };
  Copies Since() {
    const Copies since = {device_.uploads - before_.uploads, device_.waits - before_.waits};
    before_ = {device_.uploads, device_.waits};
    return since;
  }

  InstantDevice device_;
  const Backend backend_ = InstantBackend(device_);
  std::unique_ptr<Session> session_;
  std::vector<uint32_t> lanes_ = std::vector<uint32_t>(kLanes), ids_ = lanes_;
  std::vector<uint32_t> best_ = std::vector<uint32_t>(kLanes * kBest);
  std::vector<double> of_best_ = std::vector<double>(kLanes * kBest);
  std::vector<double> scores_ = std::vector<double>(kLanes);

 private:
  Copies before_ = {};
};

TEST_F(HostPath, AStepIsOneCopyAndAnAnswerOneWait) {
  device_.tails = 2;
  for (int step = 0; step < 3; ++step) {
    Since();
    Step();
    EXPECT_EQ(Since(), (Copies{1, 0}));
    Best(Computing::kAll);
    const Copies all = Since();
    Best(Computing::kNeeded);
    const Copies needed = Since();
    Score();
    const Copies scored = Since();
    if (step == 0) continue;  // copies the nodes that answer
    EXPECT_EQ(all, (Copies{0, 1}));
    EXPECT_EQ(needed, (Copies{1, 2}));  // the lanes of a tail; which lanes need it
    EXPECT_EQ(scored, (Copies{1, 1}));  // the tokens that are asked for
  }
}

TEST_F(HostPath, StepsAndAnswersAllocateNothing) {
  device_.tails = 2;
  const auto each = [&] {
    Step();
    Best(Computing::kAll);
    Best(Computing::kNeeded);
    Score();
  };
  each();
  const CountedMemory memory;
  for (int i = 0; i < 3; ++i) each();
  EXPECT_EQ(memory.Peak(), 0u);
}

TEST_F(HostPath, WorkIsCountedWhenItIsAskedFor) {
  device_.tails = 2;
  Step();
  EXPECT_EQ(session_->last_work(3).clusters, ClusterSet());
  Best(Computing::kNeeded);
  EXPECT_EQ(session_->last_work(3).clusters, (ClusterSet{0, 1}));  // every third lane has a tail
  EXPECT_EQ(session_->last_work(4).clusters, ClusterSet{0});
  EXPECT_GT(session_->last_work(4).arithmetic.Total(), 0);
  Best(Computing::kAll);
  EXPECT_EQ(session_->last_work(4).clusters,
            ClusterSet::First(session_->model().plan().clusters.size()));
  Step();
  EXPECT_EQ(session_->last_work(4).clusters, ClusterSet());
}

}  // namespace
}  // namespace kinglet::host_path_test
