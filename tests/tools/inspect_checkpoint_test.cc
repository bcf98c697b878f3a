#include "tools/inspect_checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/transformer_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::inspect_checkpoint_test {
namespace {

const std::string kForms = KINGLET_TEST_DATA "/checkpoint-forms/";

TEST(InspectCheckpoint, TellsModelsFromCheckpoints) {
  const CommandFolder folder;
  folder.WriteModel("model", TinyMicronet(TinyOptions()));
  folder.Write("damaged.kgl", "PK\x03\x04");
  EXPECT_FALSE(IsCheckpointPath(folder.Path("model")));
  EXPECT_FALSE(IsCheckpointPath(folder.Path("damaged.kgl")));
  EXPECT_FALSE(IsCheckpointPath(folder.Path("missing.kgl")));
  EXPECT_TRUE(IsCheckpointPath(folder.Path(".")));
  EXPECT_TRUE(IsCheckpointPath(folder.Path("missing")));
  EXPECT_TRUE(IsCheckpointPath(kForms + "state_dict.pt"));
  EXPECT_TRUE(IsCheckpointPath(kForms + "empty.pt"));
}

TEST(InspectCheckpoint, TensorsFamiliesAndTheNextStep) {
  const auto text = ReportCheckpoint(kForms + "data_parallel.pt", CheckpointView::kText);
  ASSERT_TRUE(text.ok()) << text.status().message();
  for (const char* part :
       {"tensors       7 of 145 entries\n",
        "note          removed from the tensors' names: 'module.'\n",
        "  pytorch-examples: all names fit\n", "  encoder.weight    [7, 3]   f32\n",
        "data_parallel.pt -o model.kgl\n"}) {
    EXPECT_NE(text->find(part), std::string::npos) << part << "\n" << *text;
  }
  const auto json =
      nlohmann::json::parse(*ReportCheckpoint(kForms + "bfloat16.pt", CheckpointView::kJson));
  EXPECT_EQ(json["tensors"][0],
            nlohmann::json({{"name", "encoder.weight"}, {"shape", {7, 3}}, {"type", "bf16"}}));
  EXPECT_EQ(json["families"][0]["name"], "pytorch-examples");
  EXPECT_EQ(json["families"][0]["supported"], true);
  EXPECT_EQ(json["families"][0]["missing"].size(), 0u);
}

TEST(InspectCheckpoint, OfNoFamily) {
  const auto text = ReportCheckpoint(kForms + "unknown.pt", CheckpointView::kText);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_NE(text->find("families\n  none\n"), std::string::npos) << *text;
  EXPECT_NE(text->find("--recipe-skeleton > recipe.json"), std::string::npos) << *text;
  const auto skeleton = nlohmann::json::parse(
      *ReportCheckpoint(kForms + "unknown.pt", CheckpointView::kRecipeSkeleton));
  EXPECT_EQ(skeleton["embedding"]["table"], "?");
  EXPECT_EQ(ReportCheckpoint("/nowhere.pt", CheckpointView::kText).status().code(),
            KINGLET_NOT_FOUND);
}

}  // namespace
}  // namespace kinglet::inspect_checkpoint_test
