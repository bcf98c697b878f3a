// Settings that no network of Hugging Face's library has, by the example of GPT-2.
#include "converters/families/hugging_face.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "converters/convert.h"
#include "tests/converters/synthetic.h"

namespace kinglet::hugging_face_test {
namespace {

TEST(HuggingFace, SettingsOutOfRangeAreRefused) {
  const std::string original = KINGLET_TEST_DATA "/gpt2/tied";
  const TemporaryFolder folder;
  std::filesystem::copy(original, folder.Path("copy"));
  std::ifstream file(original + "/config.json");
  const auto intact = nlohmann::json::parse(file);
  const struct {
    const char* name;
    nlohmann::json value;
    const char* says;
  } cases[] = {
      {"n_embd", 0, "n_embd: expected 1 to "},
      {"n_embd", "12", "n_embd"},
      {"n_head", 5, "n_embd: expected a multiple of n_head, 5, found 12"},
      {"n_layer", 100000, "n_layer: expected 1 to "},
      {"n_layer", 3, "transformer.h.2.attn.c_attn"},
      {"n_inner", -1, "n_inner: expected 1 to "},
      {"vocab_size", 36, "transformer.wte.weight"},
      {"activation_function", "quick_gelu", "activation_function: expected gelu, gelu_new, "},
      {"tie_word_embeddings", "yes", "tie_word_embeddings"},
      {"eos_token_id", "</s>", "eos_token_id"},
      {"bos_token_id", 37, "bos_token_id: expected an id below 37, found 37"},
  };
  for (const auto& [name, value, says] : cases) {
    auto changed = intact;
    changed[name] = value;
    folder.Write("copy/config.json", changed.dump());
    ConvertOptions options;
    options.checkpoint = folder.Path("copy");
    options.output = folder.Path("m.kgl");
    const auto summary = Convert(options);
    ASSERT_FALSE(summary.ok()) << name;
    EXPECT_NE(summary.status().message().find(says), std::string::npos)
        << summary.status().message();
  }
}

}  // namespace
}  // namespace kinglet::hugging_face_test
