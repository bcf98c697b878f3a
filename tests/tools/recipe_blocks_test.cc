// Models of families, converted again by recipes of "blocks" that are made of what `inspect --json`
// prints: encoders, recurrent encoders and masked models have the tensors of the family's model.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "format/block_fields.h"
#include "format/model_file.h"
#include "tests/tools/run_command.h"

namespace kinglet::tools_recipe_blocks_test {
namespace {

using Json = nlohmann::ordered_json;

// Fields whose texts are not tensors.
bool IsText(const std::string& key) {
  static const std::set<std::string> kTexts = {
      "block",      "name", "kind",       "start",  "place",         "norm_order", "cell",
      "activation", "norm", "tail_input", "scored", "normalisation", "score",      "input"};
  return kTexts.contains(key);
}

class Writer {
 public:
  explicit Writer(std::set<std::string> names) : names_(std::move(names)) {}

  Json Changed(const Json& value, const Json& heads = {}) const {
    if (value.is_array()) {
      Json list = Json::array();
      for (const Json& item : value) list.push_back(Changed(item, heads));
      return list;
    }
    if (!value.is_object()) return value;
    const Json& own = value.contains("heads") ? value["heads"] : heads;
    Json object;
    for (const auto& [key, member] : value.items()) {
      if (key == "quantisers") continue;
      object[key] =
          member.is_string() && !IsText(key) ? Reference(member, own) : Changed(member, own);
    }
    return object;
  }

 private:
  // "..self_attn.qkv.weight" is made of the checkpoint's projections.
  Json Reference(const std::string& name, const Json& heads) const {
    if (names_.contains(name)) return name;
    const size_t end = name.rfind('.'), begin = name.rfind('.', end - 1) + 1;
    const bool all = name.substr(begin, end - begin) == "qkv";
    Json join = Json::array();
    for (const auto& parts : {std::vector{"linear_query", "linear_keys", "linear_values"},
                              std::vector{"query", "key", "value"}}) {
      for (size_t i = all ? 0 : 1; i < 3; ++i) {
        const std::string part = name.substr(0, begin) + parts[i] + name.substr(end);
        if (names_.contains(part)) join.push_back(part);
      }
    }
    return {{"join", join}, {"heads", heads}};
  }

  std::set<std::string> names_;
};

std::vector<std::vector<float>> Values(const std::string& path) {
  const auto file = *ModelFile::Open(path);
  std::vector<std::vector<float>> values;
  for (const Block& block : file->description().blocks) {
    std::visit(
        [&](const auto& part) {
          ForEachTensor(part,
                        [&](TensorId id) { values.push_back(DecodedValues(file->tensors()[id])); });
        },
        block);
  }
  return values;
}

TEST(RecipeBlocks, EncodersAndMaskedModels) {
  const CommandFolder folder;
  const std::string data = KINGLET_TEST_DATA "/";
  for (const std::string name :
       {"opennmt/plain/model_step_7.pt", "opennmt-recurrent/brnn-lstm-mlp-bridge/model_step_7.pt",
        "bert/mlm-untied/model.safetensors", "bert/question-answering/model.safetensors"}) {
    const std::string checkpoint = data + name;
    ASSERT_EQ(folder.Run("convert " + checkpoint + " -o family.kgl").exit_status, 0) << name;
    std::set<std::string> names;
    const Json listed = folder.Run("inspect " + checkpoint + " --json").Json().at(0);
    for (const Json& tensor : listed["tensors"]) {
      names.insert(tensor["name"].get<std::string>());
    }
    const Json inspected = folder.Run("inspect family.kgl --json").Json().at(0);
    Json recipe = {{"layout", "out_in"},
                   {"blocks", Writer(names).Changed(inspected["blocks"])},
                   {"unused", {"decoder.*.pe.pe", "*position_ids", "*.mask", "*.decoder.bias"}}};
    if (inspected.contains("start_token")) recipe["start_token"] = inspected["start_token"];
    folder.Write("blocks.json", recipe.dump());
    const Outcome outcome =
        folder.Run("convert " + checkpoint + " --recipe blocks.json -o recipe.kgl");
    ASSERT_EQ(outcome.exit_status, 0) << name << "\n" << outcome.error;
    EXPECT_EQ(Values(folder.Path("recipe.kgl")), Values(folder.Path("family.kgl"))) << name;
  }
}

}  // namespace
}  // namespace kinglet::tools_recipe_blocks_test
