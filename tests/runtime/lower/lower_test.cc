#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/recurrent_builder.h"

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

// 23 words of two sub-vectors: 46 products, or one for each position and row of the pool.
TEST(Lower, ProductsAreSharedWhereThatNeedsFewer) {
  for (const uint32_t pool : {22u, 23u, 24u, 100u}) {
    const ModelDraft draft =
        TinyRecurrent({.more_units = 0, .tails = 0, .head_coding = TinyCoding{2, {pool}}});
    const auto file = *ModelFile::FromBytes(*SerialiseModel(draft));
    const auto plan = Lower(*file);
    ASSERT_TRUE(plan.ok());
    const size_t rows = pool > 23 ? 1 : 0;
    EXPECT_EQ(OpsOf<CodedProduct>(*plan).size(), rows) << pool;
    EXPECT_EQ(OpsOf<PartialProducts>(*plan).size(), 1 - rows) << pool;
    EXPECT_EQ(OpsOf<CodedSums>(*plan).size(), 1 - rows) << pool;
  }
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
