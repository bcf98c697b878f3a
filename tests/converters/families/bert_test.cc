// What the family bert refuses and omits. tests/converters/convert_bert_test.cc tests the values of
// its models.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "converters/convert.h"
#include "converters/families/families.h"
#include "converters/families/name_match.h"
#include "format/model_file.h"
#include "tests/converters/synthetic.h"

namespace kinglet::bert_test {
namespace {

using Json = nlohmann::json;
using Change = std::function<void(Json&)>;

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Changes the header of a safetensors file; its data stay.
std::string WithHeader(const std::string& bytes, const Change& change) {
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof(size));
  Json header = Json::parse(bytes.substr(sizeof(size), size));
  change(header);
  const std::string text = header.dump();
  std::string changed(sizeof(size), '\0');
  size = text.size();
  std::memcpy(changed.data(), &size, sizeof(size));
  std::memcpy(&size, bytes.data(), sizeof(size));
  return changed + text + bytes.substr(sizeof(size) + size);
}

void Unchanged(Json&) {}

// Converts a changed copy of a folder of tests/data/bert.
Result<ConvertSummary> ConvertChanged(const std::string& variant, const TemporaryFolder& folder,
                                      const Change& config, const Change& header = Unchanged) {
  const std::string original = KINGLET_TEST_DATA "/bert/" + variant;
  Json settings = Json::parse(BytesOf(original + "/config.json"));
  config(settings);
  folder.Write("config.json", settings.dump());
  folder.Write("model.safetensors", WithHeader(BytesOf(original + "/model.safetensors"), header));
  ConvertOptions options;
  options.checkpoint = folder.path();
  options.output = folder.Path("m.kgl");
  return Convert(options);
}

void ExpectRefused(const Result<ConvertSummary>& summary, const std::string& reason) {
  EXPECT_EQ(summary.status().code(), KINGLET_INVALID_CHECKPOINT) << reason;
  EXPECT_NE(summary.status().message().find(reason), std::string::npos)
      << summary.status().message();
}

TEST(Bert, RefusesOptionsThatItDoesNotHave) {
  const struct {
    const char* key;
    Json value;
    const char* reason;
  } cases[] = {
      {"hidden_act", "quick_gelu",
       "hidden_act: expected gelu, gelu_new, gelu_pytorch_tanh, relu, silu, swish, tanh or "
       "sigmoid, found"},
      {"hidden_act", "erf", "found 'erf'"},
      {"num_attention_heads", 5,
       "hidden_size: expected a multiple of num_attention_heads, 5, found 12"},
      {"num_attention_heads", 0, "num_attention_heads: expected 1 to"},
      {"num_hidden_layers", -1, "num_hidden_layers: expected 1 to"},
      {"vocab_size", 1e9, "vocab_size"},
      {"hidden_size", "12", "hidden_size"},
  };
  for (const auto& each : cases) {
    const TemporaryFolder folder;
    ExpectRefused(ConvertChanged("mlm-tied", folder,
                                 [&](Json& settings) { settings[each.key] = each.value; }),
                  each.reason);
  }
  const struct {
    const char* key;
    Json value;
    const char* reason;
  } others[] = {
      {"position_embedding_type", "relative_key",
       "position_embedding_type: expected 'absolute', found 'relative_key'"},
      // The library adds no positions then.
      {"position_embedding_type", nullptr, "position_embedding_type: expected a value, found None"},
      {"is_decoder", true, "is_decoder: expected False, found True"},
      {"pruned_heads", {{"0", {1}}}, "pruned_heads: expected {}, found a mapping"},
      {"model_type", "electra", "model_type: expected 'bert', found 'electra'"},
      {"model_type", nullptr, "model_type: expected a value, found None"},
      {"embedding_size", 12, "embedding_size: expected an option that kinglet knows"},
  };
  for (const auto& each : others) {
    const TemporaryFolder folder;
    const auto summary = ConvertChanged("mlm-tied", folder,
                                        [&](Json& settings) { settings[each.key] = each.value; });
    EXPECT_EQ(summary.status().code(), KINGLET_UNSUPPORTED) << each.reason;
    EXPECT_NE(summary.status().message().find(each.reason), std::string::npos)
        << summary.status().message();
  }
  // Files of 2019 only name the class.
  const TemporaryFolder without;
  const auto roberta = ConvertChanged("mlm-tied", without, [](Json& settings) {
    settings.erase("model_type");
    settings["architectures"] = {"RobertaForMaskedLM"};
  });
  EXPECT_NE(roberta.status().message().find(
                "architectures: expected classes of BERT, found 'RobertaForMaskedLM'"),
            std::string::npos)
      << roberta.status().message();
  // Which of two tables the library takes depends on its version.
  const TemporaryFolder untied;
  ExpectRefused(ConvertChanged("mlm-untied", untied,
                               [](Json& settings) { settings["tie_word_embeddings"] = true; }),
                "tensor cls.predictions.decoder.weight: expected the values of "
                "bert.embeddings.word_embeddings.weight, as tie_word_embeddings is true");
  for (const char* key : {"hidden_size", "hidden_act", "type_vocab_size"}) {
    const TemporaryFolder folder;
    ExpectRefused(ConvertChanged("mlm-tied", folder, [&](Json& settings) { settings.erase(key); }),
                  key);
  }
}

TEST(Bert, NeedsItsOwnDecoderWhereItIsNotTied) {
  const TemporaryFolder folder;
  ExpectRefused(ConvertChanged("mlm-tied", folder,
                               [](Json& settings) { settings["tie_word_embeddings"] = false; }),
                "cls.predictions.decoder.weight");
}

// Nothing in a text depends on the pooler of a model that scores spans.
TEST(Bert, OmitsThePoolerOfSpans) {
  const TemporaryFolder folder;
  const auto summary = ConvertChanged("question-answering-unused-pooler", folder, Unchanged);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  ASSERT_EQ(summary->notes.size(), 1U);
  EXPECT_EQ(summary->notes[0], "bert.pooler.dense is omitted: scores of spans do not use it");
  const auto file = *ModelFile::Open(folder.Path("m.kgl"));
  for (const TensorView& tensor : file->tensors()) {
    EXPECT_EQ(tensor.name.find("pooler"), std::string::npos) << tensor.name;
  }
}

// A score of each token is another task than one of the text.
TEST(Bert, RefusesScoresOfTextsWithoutAPooler) {
  const TemporaryFolder folder;
  const auto rename = [](Json& header) {
    for (const std::string part : {".weight", ".bias"}) {
      header["classifier" + part] = header["qa_outputs" + part];
      header.erase("qa_outputs" + part);
    }
  };
  ExpectRefused(ConvertChanged("question-answering", folder, Unchanged, rename),
                "expected bert.pooler.dense.weight, as scores of texts are of the pooled vector");
}

}  // namespace
}  // namespace kinglet::bert_test
