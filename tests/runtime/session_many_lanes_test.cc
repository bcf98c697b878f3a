// Sessions of more than 128 lanes on the emulated device against single lanes on the host.
#include <gtest/gtest.h>

#include "tests/runtime/session_fixture.h"
#include "tests/support/device_backends.h"
#include "tests/support/lane_check.h"

namespace kinglet::session_many_lanes_test {
namespace {

// Of a model whose clusters have several tiles of sums, and tables of 4 and 2 columns.
TEST(SessionManyLanes, EqualSingleLanes) {
  for (const bool quantised : {true, false}) {
    TinyOptions options = WholeOptions(quantised);
    options.vocabulary_size = 3 * 1100;
    const ModelDraft draft = TinyMicronet(options);
    const Backend backend = EmulatedCuda({});
    ModelOptions on_device;
    on_device.own_backend = &backend;
    const auto found = Model::FromBytes(SerialiseModel(draft).value(), on_device).value();
    for (const uint32_t lanes : {129u, 65u, 33u}) {
      EXPECT_EQ(CompareLanes(found, Open(draft, "ref"), {lanes, 3}).value(), "");
    }
  }
}

}  // namespace
}  // namespace kinglet::session_many_lanes_test
