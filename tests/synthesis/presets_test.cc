#include "tests/synthesis/presets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace kinglet::presets_test {
namespace {

TEST(Presets, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const Preset& preset : Presets()) {
    EXPECT_TRUE(names.insert(preset.spec.name).second) << preset.spec.name;
    EXPECT_FALSE(preset.source.empty()) << preset.spec.name;
    const auto found = FindPreset(preset.spec.name);
    ASSERT_TRUE(found) << preset.spec.name;
    EXPECT_EQ(found->source, preset.source);
  }
  EXPECT_EQ(names.size(), 31u);
  for (const char* name : {"", "Best", "best ", "8.3"}) EXPECT_FALSE(FindPreset(name)) << name;
}

TEST(Presets, TheBestIsThatOfItsFile) {
  std::ifstream file(std::string(KINGLET_TEST_DATA) + "/micronet-best-shapes.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  const nlohmann::json& config = json["config"];
  const SynthesisSpec best = FindPreset("best")->spec;
  EXPECT_EQ(best.vocabulary_size, config["n_vocab"]);
  EXPECT_EQ(best.cutoffs, config["cutoffs"].get<std::vector<uint32_t>>());
  EXPECT_EQ(best.widths, config["n_embeds"].get<std::vector<uint32_t>>());
  EXPECT_EQ(best.widths.front(), config["n_embed"]);
  EXPECT_EQ(best.layers, config["n_layers"]);
  EXPECT_EQ(best.heads, config["n_head"]);
  EXPECT_EQ(best.key_size, config["n_k"]);
  EXPECT_EQ(best.value_size, config["n_v"]);
  EXPECT_EQ(best.inner, config["n_inner"]);
  EXPECT_EQ(best.window, config["n_seq"].get<uint32_t>() + 1);
  EXPECT_EQ(best.bits, config["bits"]);
  EXPECT_EQ(best.cache, config["n_cache"]);
  EXPECT_EQ(best.cache_lambda, config["cache_lambda"].get<double>());
  EXPECT_EQ(best.cache_theta, config["cache_theta"].get<double>());
  EXPECT_EQ(best.bin_counts, json["test_bin_counts"].get<std::vector<uint64_t>>());
}

TEST(Presets, TheTableHasALineForEach) {
  const std::string table = PresetTable();
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'),
            static_cast<std::ptrdiff_t>(Presets().size()) + 1);
  for (const Preset& preset : Presets()) {
    EXPECT_NE(table.find("\n" + preset.spec.name + " "), std::string::npos) << preset.spec.name;
  }
  EXPECT_NE(table.find("198232,35479,11858; micronet_evaluate.ipynb"), std::string::npos) << table;
}

}  // namespace
}  // namespace kinglet::presets_test
