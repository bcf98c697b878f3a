// Every form of table before and after every context block (docs/ARCHITECTURE.md, "Three axes"):
// converted from tiny checkpoints in float32, in 9 bits with calibrated activations, and pruned.
// `ref` and `cpu` give the same bits. `ref64` gives the results of a counterpart whose tables are
// dense tables of the decoded rows. Prints the grid.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "converters/convert.h"
#include "format/model_file.h"
#include "runtime/session.h"
#include "tests/converters/converted_streams.h"
#include "tests/converters/dense_counterpart.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/table_forms.h"

namespace kinglet::table_grid_test {
namespace {

constexpr double kTolerance = 1e-6;

// --- streams ---

uint32_t WordAt(size_t t, uint32_t words) {
  return static_cast<uint32_t>((t * t * 7 + 3 * t) % words);
}

// All log-probabilities after each of some tokens, which are more than any window.
std::vector<std::vector<double>> Stream(const std::shared_ptr<const Model>& model) {
  constexpr size_t kTokens = 11;
  const auto session = *Session::Create(model);
  const ModelDescription& description = model->file().description();
  if (const uint32_t source = SourceVocabularySize(description); source > 0) {
    std::vector<uint32_t> sentence;
    for (size_t t = 0; t < 5; ++t) sentence.push_back(WordAt(t + 2, source));
    EXPECT_TRUE(session->Encode(sentence).ok());
  }
  std::vector<std::vector<double>> all;
  for (size_t t = 0; t < kTokens; ++t) {
    const uint32_t word = t == 0 && description.start_token ? *description.start_token
                                                            : WordAt(t, model->vocabulary_size());
    EXPECT_TRUE(session->StepToken(word).ok());
    all.emplace_back(model->vocabulary_size());
    EXPECT_TRUE(session->LogProbabilities(std::span<double>(all.back())).ok());
  }
  return all;
}

double LargestDifference(const std::vector<std::vector<double>>& a,
                         const std::vector<std::vector<double>>& b) {
  double largest = 0;
  for (size_t t = 0; t < a.size(); ++t) {
    for (size_t word = 0; word < a[t].size(); ++word) {
      largest = std::max(largest, std::fabs(a[t][word] - b[t][word]));
    }
  }
  return largest;
}

// --- the grid ---

enum class Mode : uint8_t { kFloat, kNineBits, kPruned };
constexpr std::array kModes = {Mode::kFloat, Mode::kNineBits, Mode::kPruned};

// Converts, compares, and returns the largest difference from the model with dense tables.
double Square(ConvertOptions options, Mode mode, const TemporaryFolder& folder,
              const std::string& vocabulary, const std::string& text) {
  options.output = folder.Path("model.kgl");
  if (mode == Mode::kNineBits) {
    options.bits = 9;
    options.vocabulary = vocabulary;
    options.calibration_text = text;
  }
  if (mode == Mode::kPruned) options.prune = 0.4;
  const auto summary = Convert(options);
  EXPECT_TRUE(summary.ok()) << summary.status().message();
  if (!summary.ok()) return NAN;
  const auto opened = [&](const char* backend) {
    return *Model::Open(options.output, {.backend = backend});
  };
  EXPECT_EQ(Stream(opened("ref")), Stream(opened("cpu")));
  const auto dense = Model::FromBytes(DenseCounterpart(options.output), {.backend = "ref64"});
  EXPECT_TRUE(dense.ok()) << dense.status().message();
  if (!dense.ok()) return NAN;
  return LargestDifference(Stream(opened("ref64")), Stream(*dense));
}

// "-9": the difference is below 10^-9.
std::string Magnitude(double difference) {
  if (std::isnan(difference)) return "?";
  if (difference == 0) return "0";
  return std::to_string(static_cast<int>(std::ceil(std::log10(difference))));
}

void PrintRow(const std::string& block, const std::vector<std::string>& cells) {
  std::string line = "| " + block + " |";
  for (const std::string& cell : cells) line += " " + cell + " |";
  std::puts(line.c_str());
}

// Prints a line of the grid for one network: for each form the three modes.
void Line(const std::string& block, const std::vector<TableForm>& forms,
          const std::function<ConvertOptions(const TableForm&)>& options, uint32_t words,
          const std::string& pairs, const TemporaryFolder& folder) {
  static bool first = true;
  if (std::exchange(first, false)) {
    std::vector<std::string> names, rule;
    for (const TableForm& form : forms) names.push_back(form.name);
    for (size_t i = 0; i < names.size(); ++i) rule.emplace_back("--");
    PrintRow("float32 / 9 bits calibrated / pruned", names);
    PrintRow("--", rule);
  }
  const std::string vocabulary = folder.Write("vocab.txt", NumberedVocabulary(words));
  std::vector<uint32_t> ids;
  for (size_t t = 0; t < 60; ++t) ids.push_back(WordAt(t, words));
  const std::string text = folder.Write("text", pairs.empty() ? NumberedText(ids) : pairs);
  std::vector<std::string> cells;
  for (const TableForm& form : forms) {
    std::string cell;
    for (const Mode mode : kModes) {
      SCOPED_TRACE(block + ", " + form.name + ", mode " + std::to_string(static_cast<int>(mode)));
      const double difference =
          Square(options(form), mode, folder, pairs.empty() ? vocabulary : "", text);
      EXPECT_LE(difference, kTolerance);
      cell += (cell.empty() ? "" : " / ") + Magnitude(difference);
    }
    cells.push_back(cell);
  }
  PrintRow(block, cells);
}

// --- context blocks by recipe ---

struct Context {
  const char* name;
  const char* json;   // members of the recipe
  const char* layer;  // the fields of its layers that not all have; nullptr: no transformer
};

constexpr uint64_t kWords = 22, kWidth = 8;

constexpr const char* kTransformer =
    R"("layout": "out_in", "qkv_rows": "parts", "width": 8, "heads": 2, "key_size": 4,
       "value_size": 4, "epsilon": 1e-5, "activation": "relu", "layers": {"count": 2, "each": {
       "attention_norm_gain": "{}.norm.gain", "attention_norm_bias": "{}.norm.offset",
       "inner_norm_gain": "{}.norm2.gain", "inner_norm_bias": "{}.norm2.offset",
       "inner_weight": "{}.inner", "inner_bias": "{}.inner_bias",
       "outer_weight": "{}.outer", "outer_bias": "{}.outer_bias",
       "out_weight": "{}.out",
       "qkv_weight": "{}.qkv")";
constexpr const char* kBiases =
    R"(, "qkv_bias": "{}.qkv_bias",
         "out_bias": "{}.out_bias")";
constexpr const char* kRelativeLayer = R"(, "positions": "{}.relative", "content_bias": "u",
       "position_bias": {"join": ["v"], "shape": [2, 4]})";

constexpr Context kContexts[] = {
    {"transformer-xl", R"("window": 4, "start": "masked", "norm_order": "post",
        "positions": {"kind": "relative_sinusoids", "frequencies": "frequencies", "clamp": 2})",
     kRelativeLayer},
    {"transformer-xl, norm first, zero memory", R"("window": 4, "start": "zeros",
        "norm_order": "pre", "positions": {"kind": "relative_sinusoids", "frequencies":
          {"join": [], "change": [{"transformer_xl_frequencies": 8}], "shape": [4]}})",
     R"(, "positions": "{}.relative", "content_bias": "u",
          "position_bias": {"join": ["v"], "shape": [2, 4]},
          "start": {"join": ["{}.qkv", "{}.norm.offset"],
                    "change": [{"zero_memory": [2, 4, 4, 0]}], "shape": [16]})"},
    {"sinusoids", R"("window": 20, "start": "masked", "norm_order": "pre",
        "positions": {"kind": "absolute_sinusoids", "first": 2, "frequencies":
          {"join": [], "change": [{"fairseq_frequencies": 8}], "shape": [4]}},
        "final_norm_gain": "final.gain", "final_norm_bias": "final.offset")",
     kBiases},
    {"position table", R"("window": 20, "start": "masked", "norm_order": "pre",
        "positions": {"kind": "table", "table": {"tensor": "positions", "rows": [0, 20]}})",
     kBiases},
    {"slots", R"("window": 4, "start": "zeros", "norm_order": "pre",
        "positions": {"kind": "slots"})",
     R"(, "qkv_bias": "{}.qkv_bias",
          "positions": "{}.slots")"},
    {"lstm", R"("recurrent": {"cell": "lstm", "torch": "lstm", "layers": 2})", nullptr},
    {"gru", R"("recurrent": {"cell": "gru", "torch": "gru", "layers": 2})", nullptr},
    {"rnn tanh", R"("recurrent": {"cell": "rnn_tanh", "torch": "rnn", "layers": 2})", nullptr},
    {"rnn relu", R"("recurrent": {"cell": "rnn_relu", "torch": "rnn", "layers": 2})", nullptr},
    {"qrnn", R"("recurrent": {"cell": "qrnn", "gates": "zfo", "weighs": "new",
        "layers": [{"input_weight": "qrnn.w", "input_bias": "qrnn.b",
                    "recurrent_weight": "qrnn.u"}]})",
     nullptr}};

void AddContexts(TinyTensors& tensors) {
  for (const std::string layer : {"0", "1"}) {
    for (const char* norm : {".norm", ".norm2"}) {
      tensors.Floats(layer + norm + ".gain", {kWidth}, 0.2, 1);
      tensors.Floats(layer + norm + ".offset", {kWidth}, 0.2);
    }
    tensors.Floats(layer + ".qkv", {3 * kWidth, kWidth});
    tensors.Floats(layer + ".qkv_bias", {3 * kWidth}, 0.1);
    tensors.Floats(layer + ".out", {kWidth, kWidth});
    tensors.Floats(layer + ".out_bias", {kWidth}, 0.1);
    tensors.Floats(layer + ".inner", {12, kWidth});
    tensors.Floats(layer + ".inner_bias", {12}, 0.1);
    tensors.Floats(layer + ".outer", {kWidth, 12});
    tensors.Floats(layer + ".outer_bias", {kWidth}, 0.1);
    tensors.Floats(layer + ".relative", {kWidth, kWidth});
    tensors.Floats(layer + ".slots", {kWidth / 2, 4});
    for (const auto& [name, gates] :
         {std::pair("lstm", 4), std::pair("gru", 3), std::pair("rnn", 1)}) {
      const std::string module = std::string(name) + ".";
      tensors.Floats(module + "weight_ih_l" + layer, {gates * kWidth, kWidth});
      tensors.Floats(module + "weight_hh_l" + layer, {gates * kWidth, kWidth}, 0.3);
      tensors.Floats(module + "bias_ih_l" + layer, {gates * kWidth}, 0.1);
      tensors.Floats(module + "bias_hh_l" + layer, {gates * kWidth}, 0.1);
    }
  }
  tensors.Floats("frequencies", {kWidth / 2}, 0.5, 0.5);
  tensors.Floats("u", {2, kWidth / 2}, 0.2);
  tensors.Floats("v", {2 * (kWidth / 2)}, 0.2);
  tensors.Floats("positions", {24, kWidth}, 0.2);
  tensors.Floats("final.gain", {kWidth}, 0.2, 1);
  tensors.Floats("final.offset", {kWidth}, 0.2);
  tensors.Floats("qrnn.w", {3 * kWidth, kWidth});
  tensors.Floats("qrnn.u", {3 * kWidth, kWidth});
  tensors.Floats("qrnn.b", {3 * kWidth}, 0.1);
}

class TableGrid : public testing::TestWithParam<Context> {};

TEST_P(TableGrid, EveryFormInAndOut) {
  const Context& context = GetParam();
  const TemporaryFolder folder;
  TinyTensors tensors;
  AddContexts(tensors);
  const auto forms = AddTableForms("table.", "", kWords, kWidth, tensors);
  const std::string checkpoint = folder.Write("model.safetensors", tensors.Safetensors());
  std::string block = context.json;
  if (context.layer != nullptr) {
    block = "\"transformer\": {" + block + ", " + kTransformer + context.layer + "}}}";
  }
  Line(
      context.name, forms,
      [&](const TableForm& form) {
        ConvertOptions options;
        options.checkpoint = checkpoint;
        options.recipe = folder.Write(
            "recipe.json", "{\"embedding\": {\"scale\": 1.5, " + form.input + "}, " + block +
                               ", \"softmax\": {" + form.output + R"(}, "unused": ["*"]})");
        return options;
      },
      kWords, "", folder);
}

std::string ContextTestName(const testing::TestParamInfo<Context>& instance) {
  std::string name;
  for (const char* at = instance.param.name; *at != '\0'; ++at) {
    if (std::isalnum(static_cast<unsigned char>(*at)) != 0) name += *at;
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, TableGrid, testing::ValuesIn(kContexts), ContextTestName);

// --- networks of families whose tables a recipe replaces ---

struct FamilyNetwork {
  const char* name;
  const char* checkpoint;  // in tests/data
  const char* family;
  const char* input;   // the module
  const char* output;  // a tensor of the softmax that is a table of all words, or nullptr
};

constexpr FamilyNetwork kNetworks[] = {
    {"family transformer-xl", "transformer-xl-variants/kimi-base", "transformer-xl", "word_emb",
     nullptr},
    {"family transfo-xl-hf", "transformer-xl-variants/hf-published", "transfo-xl-hf",
     "transformer.word_emb", nullptr},
    {"family fairseq", "fairseq-variants/args-tied-legacy", "fairseq", "decoder.embed_tokens",
     nullptr},
    {"family neurips-micronet", "micronet-small-fp32", "neurips-micronet", "embed", nullptr},
    {"family awd-lstm", "recurrent-variants/awd-qrnn", "awd-lstm", "encoder", "decoder.weight"},
    {"family pytorch-examples", "recurrent-variants/examples-lstm-untied", "pytorch-examples",
     "encoder", "decoder.weight"},
    {"family zaremba-tf", "recurrent-variants/zaremba-block-2", "zaremba-tf",
     "Model/full_emb/embedding", nullptr},
    {"family opennmt, source", "opennmt/plain", "opennmt",
     "encoder.embeddings.make_embedding.emb_luts.0", "generator.0.weight"},
    {"family opennmt, target", "opennmt/plain", "opennmt",
     "decoder.embeddings.make_embedding.emb_luts.0", "generator.0.weight"},
    {"family opennmt, recurrent, source", "opennmt-recurrent/brnn-lstm-general", "opennmt",
     "encoder.embeddings.make_embedding.emb_luts.0", "generator.0.weight"},
    {"family opennmt, recurrent, target", "opennmt-recurrent/rnn-lstm-dot", "opennmt",
     "decoder.embeddings.make_embedding.emb_luts.0", "generator.0.weight"}};

class FamilyGrid : public testing::TestWithParam<FamilyNetwork> {};

TEST_P(FamilyGrid, EveryFormInPlaceOfTheFamilysTables) {
  const FamilyNetwork& network = GetParam();
  const TemporaryFolder folder;
  // Recipes find sources in the checkpoint's folder.
  std::filesystem::copy(std::string(KINGLET_TEST_DATA "/") + network.checkpoint, folder.path(),
                        std::filesystem::copy_options::recursive);
  ConvertOptions plain;
  plain.checkpoint = folder.path();
  for (const std::string& name : folder.Names()) {
    if (name.ends_with(".pt") || name.ends_with(".npz")) plain.checkpoint = folder.Path(name);
  }
  plain.output = folder.Path("plain.kgl");
  const auto converted = Convert(plain);
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  const auto plain_file = *ModelFile::Open(plain.output);
  const ModelDescription& description = plain_file->description();
  const auto encoder = FindSource(description);
  const bool source = encoder && std::string(network.input).starts_with("encoder.");
  const uint32_t words = description.vocabulary_size;
  const uint32_t input_words = source ? encoder->vocabulary_size : words;
  const uint32_t width =
      (source ? *encoder->embedding : *FindBlock<AdaptiveEmbedding>(description)).width;
  const uint32_t hidden = FindBlock<AdaptiveSoftmax>(description)->width;

  TinyTensors tensors;
  const auto forms = AddTableForms("in.", "t.", input_words, width, tensors);
  const auto outputs = AddTableForms("out.", "t.", words, hidden, tensors);
  const bool below = std::filesystem::exists(folder.Path("models"));
  folder.Write(below ? "models/tables" : "tables", tensors.Safetensors());
  std::string pairs;
  for (size_t line = 0; encoder && line < 4; ++line) {
    for (size_t t = 0; t < 4; ++t) {
      pairs += std::to_string(WordAt(t + line, encoder->vocabulary_size)) + " ";
    }
    pairs += "|||";
    pairs += " " + std::to_string(*description.start_token);
    for (size_t t = 0; t < 3; ++t) pairs += " " + std::to_string(WordAt(t + line, words));
    pairs += "\n";
  }
  Line(
      network.name, forms,
      [&](const TableForm& form) {
        const TableForm& output = outputs[static_cast<size_t>(&form - forms.data())];
        std::string tables = std::string("\"") + network.input + "\": {" + form.input + "}";
        if (network.output != nullptr && !output.alone.empty()) {
          tables += std::string(", \"") + network.output + "\": " + output.alone;
        }
        ConvertOptions options = plain;
        options.recipe =
            folder.Write("recipe.json", std::string("{\"family\": \"") + network.family +
                                            R"(", "sources": {"t": "tables"}, "unused": ["t.*"],
                                   "tables": {)" +
                                            tables + "}}");
        return options;
      },
      words, pairs, folder);
}

std::string NetworkTestName(const testing::TestParamInfo<FamilyNetwork>& instance) {
  std::string name;
  for (const char* at = instance.param.name; *at != '\0'; ++at) {
    if (std::isalnum(static_cast<unsigned char>(*at)) != 0) name += *at;
  }
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, FamilyGrid, testing::ValuesIn(kNetworks), NetworkTestName);

}  // namespace
}  // namespace kinglet::table_grid_test
