// The program, run as its users run it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/synthesis/coded_presets.h"
#include "tests/synthesis/presets.h"
#include "tests/tools/run_command.h"

namespace kinglet::synthesise_test {
namespace {

class SynthesiseTest : public testing::Test {
 protected:
  Outcome Run(const std::string& arguments) const {
    return folder_.RunShell(std::string(KINGLET_SYNTHESISE) + " " + arguments);
  }
  nlohmann::ordered_json Count(const std::string& file) const {
    const Outcome outcome = folder_.Run(
        "count " + file + " --rules micronet-2019 --bin-counts 198232,35479,11858 --json");
    EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
    return outcome.exit_status == 0 ? outcome.Json().at(0) : nlohmann::ordered_json();
  }
  CommandFolder folder_;
};

TEST_F(SynthesiseTest, ListsThePresets) {
  const Outcome outcome = Run("--list");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_EQ(outcome.out, PresetTable() + "\n" + CodedPresetTable());
}

TEST_F(SynthesiseTest, WritesWhatTheLibraryMakes) {
  const Outcome outcome = Run("--preset best -o best.kgl");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
  folder_.WriteModel("library.kgl", *Synthesise(FindPreset("best")->spec));
  const std::string bytes = folder_.Read("best.kgl");
  EXPECT_EQ(bytes, folder_.Read("library.kgl"));
  EXPECT_EQ(outcome.out, "best.kgl: " + std::to_string(bytes.size()) +
                             " bytes, 8304213 parameters, 5334816 not zero\n");
  EXPECT_EQ(folder_.Run("verify best.kgl").exit_status, 0);
}

TEST_F(SynthesiseTest, NumbersOfThePresetCanBeReplaced) {
  ASSERT_EQ(Run("--preset best -o m.kgl --seed 5 --window 33 --cache 100 --bits 8 --sparsity 0.5")
                .exit_status,
            0);
  const auto count = Count("m.kgl");
  EXPECT_EQ(count["bits"], std::vector<int>{8});
  EXPECT_EQ(count["params"]["total"], 8296021 - 8 * 24 * 64);
  for (const auto& component : count["components"]) {
    const std::string name = component["name"];
    if (name == "cache.weights") {
      EXPECT_EQ(component["muls"], 256 * 100);
    } else if (name == "layers.0.attention.softmax") {
      EXPECT_EQ(component["others"], 3 * 33 - 1);
    } else if (name == "layers.3.fc0" || name == "softmax.tail.2") {
      EXPECT_EQ(component["density"], 0.5);
    } else if (name == "softmax.clusters" || name == "embed.projection.2") {
      EXPECT_EQ(component["density"], 1);
    }
  }
  ASSERT_EQ(
      Run("--preset best -o other.kgl --window 33 --cache 0 --bits 0 --sparsity 0").exit_status, 0);
  const auto dense = Count("other.kgl");
  EXPECT_EQ(dense["bits"], std::vector<int>{32});
  EXPECT_EQ(dense["params"]["nonzero"], dense["params"]["total"]);
}

// The program accepts the published file of shapes and sparsities.
TEST_F(SynthesiseTest, SparsitiesComeFromAFile) {
  ASSERT_EQ(Run("--preset best -o best.kgl").exit_status, 0);
  ASSERT_EQ(
      Run("--preset best -o file.kgl --sparsities " KINGLET_TEST_DATA "/micronet-best-shapes.json")
          .exit_status,
      0);
  EXPECT_EQ(folder_.Read("best.kgl"), folder_.Read("file.kgl"));
  folder_.Write("s.json", R"({"layers.2.fc.3.weight": 0.75, "embed.layers.0.weight": 0.5})");
  ASSERT_EQ(Run("--preset best -o two.kgl --sparsities s.json").exit_status, 0);
  EXPECT_EQ(Count("two.kgl")["params"]["nonzero"], 8296021 - 768 * 256 * 3 / 4 - 3500 * 256 / 2);
}

TEST_F(SynthesiseTest, BadInputIsOneLineAndLeavesNothing) {
  folder_.Write("array.json", "[1]");
  folder_.Write("text.json", "no JSON");
  folder_.Write("value.json", R"({"layers.0.qkv.weight": "much"})");
  folder_.Write("unknown.json", R"({"layers.8.qkv.weight": 0.5})");
  folder_.Write("large.json", R"({"layers.0.qkv.weight": 1.01})");
  folder_.Write("tensors.json", R"({"tensors": 3})");
  folder_.Write("entry.json", R"({"tensors": [{"tensor": "layers.0.qkv.weight"}]})");
  folder_.Write("name.json", R"({"tensors": [{"tensor": 1, "final_sparsity": 0.5}]})");
  for (const std::string arguments :
       {"--preset dpq-bert --window 9", "--preset dpq-bert --bits 1", "--preset worst",
        "--preset best --window 0", "--preset best --bits 1", "--preset best --bits 99",
        "--preset best --sparsity 2", "--preset best --cache 4000000000",
        "--preset best --sparsities missing.json", "--preset best --sparsities array.json",
        "--preset best --sparsities text.json", "--preset best --sparsities value.json",
        "--preset best --sparsities unknown.json", "--preset best --sparsities large.json",
        "--preset best --sparsities tensors.json", "--preset best --sparsities entry.json",
        "--preset best --sparsities name.json", "--preset best --sparsities ."}) {
    const Outcome outcome = Run(arguments + " -o m.kgl");
    EXPECT_EQ(outcome.exit_status, 1) << arguments;
    EXPECT_TRUE(outcome.out.empty()) << arguments;
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
    EXPECT_TRUE(outcome.error.starts_with("synthesise: ")) << outcome.error;
    EXPECT_NE(outcome.error.find(": expected "), std::string::npos) << outcome.error;
    EXPECT_TRUE(folder_.Read("m.kgl").empty()) << arguments;
  }
  EXPECT_EQ(Run("--preset best -o missing/m.kgl").exit_status, 1);
  for (const std::string arguments :
       {"", "--preset best", "-o m.kgl", "--list --preset best", "--preset best -o m.kgl --deep",
        "--preset best -o m.kgl --window many", "--preset best -o m.kgl --window -1",
        "--preset best -o m.kgl --sparsity 0.1 --sparsities value.json"}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments << outcome.error;
    EXPECT_TRUE(folder_.Read("m.kgl").empty()) << arguments;
  }
}

}  // namespace
}  // namespace kinglet::synthesise_test
