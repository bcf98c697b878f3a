#include "converters/checkpoints/wrapped_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kinglet::wrapped_names_test {
namespace {

using Names = std::vector<std::string>;

CheckpointTensors Weights(const Names& names) {
  CheckpointTensors weights;
  for (const std::string& name : names) weights.push_back({name, {1}, nullptr});
  return weights;
}

Names NamesOf(const CheckpointTensors& weights) {
  Names names;
  for (const CheckpointTensor& tensor : weights) names.push_back(tensor.name);
  return names;
}

Names Unwrapped(const Names& names) {
  CheckpointTensors weights = Weights(names);
  UnwrapNames(weights);
  return NamesOf(weights);
}

TEST(UnwrapNames, TakesWrappersOut) {
  EXPECT_EQ(Unwrapped({"module.a", "module.b.c"}), (Names{"a", "b.c"}));
  EXPECT_EQ(Unwrapped({"module.module.a"}), Names{"a"});
  EXPECT_EQ(Unwrapped({"_orig_mod.a", "b._orig_mod.c"}), (Names{"a", "b.c"}));
  EXPECT_EQ(Unwrapped({"module._orig_mod.a"}), Names{"a"});
  EXPECT_EQ(Unwrapped({"_orig_mod.module.a"}), Names{"a"});
  EXPECT_EQ(Unwrapped({"_fsdp_wrapped_module.a._checkpoint_wrapped_module.b"}), Names{"a.b"});
  EXPECT_EQ(Unwrapped({"n_averaged", "module.a"}), Names{"a"});
  EXPECT_EQ(Unwrapped({"module.a", "criterion.b", "generator.0.weight"}),
            (Names{"a", "criterion.b", "generator.0.weight"}));
}

TEST(UnwrapNames, LeavesOtherNames) {
  for (const Names& names : {Names{}, Names{"a", "module.b"}, Names{"rnns.0.module.weight"},
                             Names{"my_orig_mod.a"}, Names{"n_averaged"}, Names{"criterion.a"},
                             // Two names would be one.
                             Names{"a", "_orig_mod.a"}}) {
    CheckpointTensors weights = Weights(names);
    EXPECT_TRUE(UnwrapNames(weights).empty());
    EXPECT_EQ(NamesOf(weights), names);
  }
}

TEST(UnwrapNames, SaysWhatItTook) {
  CheckpointTensors weights = Weights({"module._orig_mod.a"});
  EXPECT_EQ(UnwrapNames(weights), (Names{"'_orig_mod.'", "'module.'"}));
}

TEST(KeepPrefix, KeepsTheTensorsBelow) {
  CheckpointTensors weights = Weights({"model.a", "loss.b", "model.c.d"});
  ASSERT_TRUE(KeepPrefix("model.", "m.pt", weights).ok());
  EXPECT_EQ(NamesOf(weights), (Names{"a", "c.d"}));
  EXPECT_EQ(KeepPrefix("net.", "m.pt", weights).message(),
            "checkpoint: m.pt: expected names that begin with 'net.', the recipe's \"prefix\", "
            "found 'a' (`kinglet inspect` shows all names)");
}

}  // namespace
}  // namespace kinglet::wrapped_names_test
