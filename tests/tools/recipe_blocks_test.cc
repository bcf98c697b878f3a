// Models of families, converted again by the recipe that `inspect --recipe-skeleton` prints: every
// tensor and every token of the network is the family's, also with passes.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "format/block_fields.h"
#include "format/model_file.h"
#include "tests/tools/run_command.h"

namespace kinglet::tools_recipe_blocks_test {
namespace {

struct Contents {
  std::vector<std::vector<float>> values;  // in the order of the blocks' fields
  std::vector<bool> derived;
  std::optional<uint32_t> start_token, end_token;

  bool operator==(const Contents&) const = default;
};

Contents Of(const std::string& path) {
  const auto file = *ModelFile::Open(path);
  const ModelDescription& description = file->description();
  Contents contents{{}, {}, description.start_token, description.end_token};
  for (const Block& block : description.blocks) {
    std::visit(
        [&](const auto& part) {
          ForEachTensor(part, [&](TensorId id) {
            contents.values.push_back(DecodedValues(file->tensors()[id]));
            contents.derived.push_back(file->tensors()[id].derived);
          });
        },
        block);
  }
  return contents;
}

TEST(RecipeBlocks, EveryFamilysNetworkAsARecipe) {
  const CommandFolder folder;
  const std::string data = KINGLET_TEST_DATA "/";
  std::set<std::string> families;
  for (const char* kind :
       {"bert", "fairseq-variants", "micronet-variants", "opennmt", "opennmt-recurrent",
        "recurrent-variants", "speech-lm-variants", "transformer-xl-variants"}) {
    std::set<std::string> checkpoints;
    for (const auto& entry : std::filesystem::directory_iterator(data + kind)) {
      if (entry.is_directory()) checkpoints.insert(entry.path().string());
    }
    for (const std::string& checkpoint : checkpoints) {
      SCOPED_TRACE(checkpoint);
      // Checkpoints that are refused, or quantised already, have no such recipe.
      const std::string convert = "convert " + checkpoint + " --bits 9 --prune 0.3 ";
      if (folder.Run(convert + "-o family.kgl").exit_status != 0) continue;
      const std::string recipe = folder.Run("inspect " + checkpoint + " --recipe-skeleton").out;
      if (recipe.find("\"blocks\"") == recipe.npos) continue;
      folder.Write("blocks.json", recipe);
      const Outcome outcome = folder.Run(convert + "--recipe blocks.json -o recipe.kgl");
      ASSERT_EQ(outcome.exit_status, 0) << outcome.error;
      EXPECT_TRUE(Of(folder.Path("recipe.kgl")) == Of(folder.Path("family.kgl")));
      const auto file = *ModelFile::Open(folder.Path("family.kgl"));
      families.insert(file->description().provenance.family);
    }
  }
  EXPECT_EQ(families, (std::set<std::string>{
                          "awd-lstm", "bert", "espnet-rnn-lm", "espnet-transformer-lm", "fairseq",
                          "icefall-rnn-lm", "icefall-transformer-lm", "neurips-micronet", "opennmt",
                          "pytorch-examples", "speechbrain-rnn-lm", "speechbrain-transformer-lm",
                          "transfo-xl-hf", "transformer-xl"}));
}

}  // namespace
}  // namespace kinglet::tools_recipe_blocks_test
