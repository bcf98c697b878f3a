// Sessions of more than 128 lanes on the emulated device against single lanes on the host.
#include <gtest/gtest.h>

#include "tests/runtime/session_fixture.h"
#include "tests/support/device_backends.h"
#include "tests/support/lane_check.h"

namespace kinglet::session_many_lanes_test {
namespace {

// More than 128 lanes of a model whose clusters have several tiles of sums, and whose tails have
// tables of 4 and 2 columns. Tests both ways to divide a cluster's logits among warps: one for a
// device that these lanes keep busy, one for a larger device.
TEST(SessionManyLanes, EqualSingleLanesHoweverAClusterIsDividedAmongWarps) {
  for (const bool quantised : {true, false}) {
    TinyOptions options = WholeOptions(quantised);
    options.vocabulary_size = 3 * 1100;
    const ModelDraft draft = TinyMicronet(options);
    for (const uint32_t enough_work_items : {1u, 10000u}) {
      cuda::Emulation emulation;
      emulation.enough_work_items = enough_work_items;
      const Backend backend = EmulatedCuda(emulation);
      ModelOptions on_device;
      on_device.own_backend = &backend;
      const auto found = Model::FromBytes(SerialiseModel(draft).value(), on_device).value();
      for (const uint32_t lanes : {129u, 33u}) {
        EXPECT_EQ(CompareLanes(found, Open(draft, "ref"), {lanes, 3}).value(), "")
            << enough_work_items;
      }
      if (!quantised) break;  // its logits are stored
    }
  }
}

}  // namespace
}  // namespace kinglet::session_many_lanes_test
