#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/runtime/lower/lowering.h"

namespace kinglet::lower_test {
namespace {

TEST(Lower, NamesAreUniqueSoReportsCanBeReadAndBuffersFound) {
  TinyOptions options;
  options.quantised = true;
  options.cache_capacity = 3;
  const auto file = TinyFile(options);
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  std::set<std::string> nodes, buffers;
  for (const Node& node : plan->nodes) EXPECT_TRUE(nodes.insert(node.name).second) << node.name;
  for (const BufferSpec& buffer : plan->buffers)
    EXPECT_TRUE(buffers.insert(buffer.name).second) << buffer.name;
}

TEST(Lower, TheHiddenStateIsStateInBothForms) {
  for (bool quantised : {false, true}) {
    TinyOptions options;
    options.quantised = quantised;
    const auto file = TinyFile(options);
    const auto plan = Lower(*file);
    ASSERT_TRUE(plan.ok());
    const std::string name = quantised ? "hidden.codes" : "hidden";
    bool found = false;
    for (const BufferSpec& buffer : plan->buffers)
      found = found || (buffer.name == name && buffer.state);
    EXPECT_TRUE(found) << name;
    EXPECT_EQ(plan->buffer(plan->hidden).name, name);
  }
}

}  // namespace
}  // namespace kinglet::lower_test
