// Every option of a family's configuration, with another value: it is honoured with the numbers of
// the original framework (tests/data/option-flips, whose make_flips.py runs the frameworks), or
// refused by name, or changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/families/families.h"
#include "tests/converters/synthetic.h"

namespace kinglet::option_flips_test {
namespace {

namespace fs = std::filesystem;

// A configuration of a folder of tests/data, and which of its family's tables it must fit.
struct Configuration {
  const char* family;
  const char* folder;
  const char* file;     // relative to the folder
  const char* section;  // a part of the line above the options; empty: the top of the file
  size_t table;
  const char* checkpoint = "";  // in the folder; empty: the folder
};

constexpr Configuration kConfigurations[] = {
    {"neurips-micronet", "micronet-variants/four-bins-zip", "config.yaml", "", 0},
    {"neurips-micronet", "micronet-variants/10bit-search-file", "cache_step1_n30.yaml", "", 1},
    {"transformer-xl", "transformer-xl-variants/kimi-evaluated-longer", "eval.yaml", "", 0},
    {"transfo-xl-hf", "transformer-xl-variants/hf-published", "config.json", "", 0},
    {"pytorch-examples", "recurrent-variants/examples-tanh-state-dict", "config.yaml", "", 0},
    {"zaremba-tf", "recurrent-variants/zaremba-tutorial-2-forget", "config.yaml", "", 0},
    {"bert", "bert/mlm-tied", "config.json", "", 0},
    {"espnet-rnn-lm", "speech-lm-variants/espnet-rnn-tanh", "config.yaml", "lm_conf:", 0},
    {"espnet-rnn-lm", "speech-lm-variants/espnet-rnn-tanh", "config.yaml", "", 1},
    {"espnet-transformer-lm", "speech-lm-variants/espnet-transformer", "config.yaml",
     "lm_conf:", 0},
    {"espnet-transformer-lm", "speech-lm-variants/espnet-transformer", "config.yaml", "", 1},
    {"speechbrain-rnn-lm", "speech-lm-variants/speechbrain-rnn-gru-references", "hyperparams.yaml",
     "!new:", 0, "save/CKPT+2024"},
    {"speechbrain-transformer-lm", "speech-lm-variants/speechbrain-transformer-post",
     "hyperparams.yaml", "!new:", 0},
    {"gpt2", "gpt2/tied", "config.json", "", 0},
};

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string Data(const std::string& folder) { return std::string(KINGLET_TEST_DATA "/") + folder; }

// A YAML text with an option set: in the section whose first line has `section`, or at the top.
std::string WithYamlOption(const std::string& text, const std::string& section,
                           const std::string& name, const std::string& value) {
  const std::string indent = section.empty() ? "" : "    ", key = indent + name + ":";
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  size_t place = lines.size();
  if (!section.empty()) {
    place = static_cast<size_t>(
        std::find_if(lines.begin(), lines.end(),
                     [&](const auto& line) { return line.find(section) != std::string::npos; }) -
        lines.begin() + 1);
  }
  std::string changed, added = key + " " + value + "\n";
  bool inside = false;  // in the value of the option as it was
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == place) changed += added;
    const std::string& line = lines[i];
    const bool below = (section.empty() || i >= place) && line.starts_with(key);
    inside =
        below || (inside && (line.starts_with(indent + "-") || line.starts_with(indent + " ")));
    if (!inside) changed += line + "\n";
  }
  return place < lines.size() ? changed : changed + added;
}

// Like WithYamlOption, for either kind of file; a JSON file's value is JSON.
std::string WithOption(const Configuration& where, const std::string& text, const std::string& name,
                       const std::string& value) {
  if (!std::string(where.file).ends_with(".json")) {
    return WithYamlOption(text, where.section, name, value);
  }
  auto settings = nlohmann::json::parse(text);
  settings[name] = nlohmann::json::parse(value);
  return settings.dump();
}

// A copy of a configuration's folder.
class Copy {
 public:
  explicit Copy(const Configuration& where) : where_(where), text_(BytesOf(Path())) {
    fs::copy(Data(where.folder), folder_.Path("copy"), fs::copy_options::recursive);
  }
  const std::string& text() const { return text_; }
  // Converts with this text as the configuration.
  Result<ConvertSummary> Convert(const std::string& text, ConvertOptions options = {}) {
    const std::string copy = folder_.Path("copy") + "/";
    std::ofstream(copy + where_.file, std::ios::binary | std::ios::trunc) << text;
    options.checkpoint = copy + where_.checkpoint;
    if (where_.file == std::string("eval.yaml")) options.config = copy + where_.file;
    options.output = folder_.Path("m.kgl");
    fs::remove(options.output);
    return kinglet::Convert(options);
  }
  // The file that the last conversion wrote.
  std::string Output() const { return BytesOf(folder_.Path("m.kgl")); }
  std::string RefusalOf(const std::string& name, const std::string& value) {
    return Convert(WithOption(where_, text_, name, value)).status().message();
  }

 private:
  std::string Path() const { return Data(where_.folder) + "/" + where_.file; }

  const Configuration& where_;
  const std::string text_;
  const TemporaryFolder folder_;
};

const OptionTable& TableOf(const Configuration& where) {
  return FamilyNamed(where.family)->options()[where.table];
}

class OptionFlips : public testing::TestWithParam<Configuration> {};

TEST_P(OptionFlips, OtherValuesOfFixedOptionsAreRefused) {
  Copy copy(GetParam());
  for (const FixedOption& option : TableOf(GetParam()).fixed) {
    const std::string refusal = copy.RefusalOf(std::string(option.name), "\"another\"");
    EXPECT_NE(refusal.find(std::string(option.name) + ": expected "), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("found 'another'"), std::string::npos) << refusal;
    EXPECT_EQ(refusal.find('\n'), std::string::npos);
  }
}

TEST_P(OptionFlips, NoneIsRefusedWhereItIsNotTheDefault) {
  Copy copy(GetParam());
  for (const std::string_view name : OptionNames(TableOf(GetParam()).never_none)) {
    const std::string refusal = copy.RefusalOf(std::string(name), "null");
    EXPECT_NE(refusal.find(std::string(name) + ": expected a value, found None ("),
              std::string::npos)
        << refusal;
  }
}

TEST_P(OptionFlips, IgnoredOptionsChangeNothing) {
  Copy copy(GetParam());
  const auto first = copy.Convert(copy.text());
  ASSERT_TRUE(first.ok()) << first.status().message();
  const std::string before = copy.Output();
  std::string text = copy.text();
  for (const std::string_view pattern : OptionNames(TableOf(GetParam()).ignored)) {
    std::string name(pattern);
    if (name.ends_with('*')) name.back() = 'x';
    if (name.starts_with('*')) name.front() = 'x';
    text = WithOption(GetParam(), text, name, "\"another\"");
  }
  const auto changed = copy.Convert(text);
  ASSERT_TRUE(changed.ok()) << changed.status().message();
  EXPECT_TRUE(copy.Output() == before);
}

TEST_P(OptionFlips, InventedOptionsAreRefusedUnlessTheUserIgnoresThem) {
  Copy copy(GetParam());
  const std::string refusal = copy.RefusalOf("invented", "1");
  EXPECT_NE(refusal.find("invented: expected an option that kinglet knows, found 'invented' = 1 "
                         "(--ignore-option 'invented' if"),
            std::string::npos)
      << refusal;
  ConvertOptions options;
  options.ignored_options = {"invented"};
  const auto converted =
      copy.Convert(WithOption(GetParam(), copy.text(), "invented", "1"), options);
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  EXPECT_NE(copy.Output().find("ignored option invented"), std::string::npos);  // in its notes
}

INSTANTIATE_TEST_SUITE_P(All, OptionFlips, testing::ValuesIn(kConfigurations),
                         [](const testing::TestParamInfo<Configuration>& instance) {
                           std::string name = instance.param.family;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + "_" + std::to_string(instance.param.table);
                         });

// Every honoured option that the shapes of tensors do not tell, with the framework's numbers.
TEST(HonouredOptions, TheNumbersOfTheFramework) {
  std::ifstream flips(Data("option-flips/flips.txt"));
  size_t count = 0;
  std::string line;
  while (std::getline(flips, line)) {
    std::istringstream fields(line);
    std::string folder, file, option, value, golden;
    for (std::string* field : {&folder, &file, &option, &value, &golden}) {
      ASSERT_TRUE(std::getline(fields, *field, '\t')) << line;
    }
    const auto where = std::find_if(
        std::begin(kConfigurations), std::end(kConfigurations), [&](const Configuration& each) {
          const std::string section = each.section;
          const bool inside = option.starts_with("lm_conf.") ? !section.empty() : true;
          return each.folder == folder && each.file == file && inside;
        });
    ASSERT_NE(where, std::end(kConfigurations)) << line;
    Copy copy(*where);
    ConvertOptions options;
    options.golden = Data("option-flips/" + golden);
    options.ids = Data(folder + "/tokens.txt");
    options.tolerance = 1e-6;
    if (folder.starts_with("bert/")) {
      options.segments = Data(folder + "/segments.txt");
      options.vocabulary = Data(folder + "/vocab.txt");
    }
    EXPECT_FALSE(copy.Convert(copy.text(), options).ok()) << line << ": changes nothing";
    const std::string name = option.substr(option.find('.') + 1);
    const auto flipped = copy.Convert(WithOption(*where, copy.text(), name, value), options);
    EXPECT_TRUE(flipped.ok()) << line << ": " << flipped.status().message();
    ++count;
  }
  EXPECT_EQ(count, 28u);
}

// The search's values count unless the configuration has others, as in the framework.
TEST(HonouredOptions, TheSearchForCacheParameters) {
  constexpr Configuration kSearched = {"neurips-micronet", "micronet-variants/10bit-search-file",
                                       "config.yaml", "", 0};
  Copy with(kSearched), without(kSearched);
  const std::string text = with.text();
  ASSERT_TRUE(with.Convert(text).ok());
  const std::string searched = with.Output();
  ASSERT_TRUE(with.Convert(WithOption(kSearched, text, "use_cache_search", "false")).ok());
  const std::string unsearched = with.Output();
  EXPECT_TRUE(searched != unsearched);
  ASSERT_TRUE(without.Convert(WithOption(kSearched, text, "n_cache", "29")).ok());
  const std::string other = without.Output();  // no search for 29 pairs
  EXPECT_TRUE(other != unsearched);
  ASSERT_TRUE(with.Convert(WithOption(kSearched, WithOption(kSearched, text, "n_cache", "29"),
                                      "use_cache_search", "false"))
                  .ok());
  EXPECT_TRUE(with.Output() == other);
}

// Options that the shapes of tensors tell too.
TEST(HonouredOptions, WhatTheTensorsContradict) {
  const struct {
    size_t configuration;
    const char *option, *value, *sign;
  } cases[] = {
      {0, "n_inner", "17", "fc.0"},
      {3, "d_inner", "23", "CoreNet"},
      {3, "tie_projs", "[true, true, true]", "as tie_projs is true"},
      {3, "untie_r", "false", "as untie_r is false"},
      {4, "emsize", "5", "emsize: expected 8"},
      {4, "nhid", "7", "nhid: expected 10, as the checkpoint has, found 7"},
      {4, "nlayers", "2", "nlayers: expected 1"},
      {4, "tied", "true", "as tied is true"},
      {5, "hidden_size", "13", "hidden_size: expected 12, as the checkpoint has, found 13"},
      {5, "num_layers", "1", "num_layers: expected 2"},
      {5, "vocab_size", "44", "vocab_size: expected 43"},
      {6, "intermediate_size", "21", "intermediate.dense"},
      {6, "model_type", "\"roberta\"", "model_type: expected 'bert', found 'roberta'"},
      {7, "unit", "7", "lm_conf, unit: expected 6"},
      {7, "nhid", "7", "lm_conf, nhid: expected 6"},
      {7, "nlayers", "1", "lm_conf, nlayers: expected 2"},
      {7, "tie_weights", "true", "as tie_weights is true"},
      {7, "rnn_type", "qrnn", "found 'qrnn'"},
      {9, "pos_enc", "rotary", "pos_enc"},
      {9, "head", "3", "head"},
      {9, "head", "0", "head"},
      {9, "layer", "-1", "layer"},
      {9, "layer", "5000", "layer"},
      {9, "unit", "many", "unit"},
      {9, "att_unit", "16", "lm.encoder.embed.0"},
      {9, "layer", "3", "lm.encoder.encoders.2."},
      {9, "layer", "1", "lm.encoder.encoders.1."},
      {11, "embedding_dim", "7", "embedding_dim: expected 6"},
      {11, "rnn_layers", "3", "rnn_layers: expected 2"},
      {11, "rnn_neurons", "9", "rnn_neurons: expected 8"},
      {11, "dnn_neurons", "9", "dnn_neurons: expected 10"},
      {11, "output_neurons", "14", "output_neurons: expected 13"},
      {11, "rnn_class", "!name:speechbrain.nnet.RNN.LiGRU", "rnn_class"},
      {11, "dnn_blocks", "3", "dnn."},
      {11, "dnn_blocks", "-1", "dnn_blocks"},
      {11, "dnn_blocks", "100000", "dnn_blocks"},
      {11, "activation", "3", "activation"},
      {12, "vocab", "14", "'vocab': expected 13"},
      {12, "d_model", "6", "'d_model': expected 8"},
      {12, "d_ffn", "9", "'d_ffn': expected 10"},
      {12, "num_encoder_layers", "1", "'num_encoder_layers': expected 2"},
      {12, "d_embedding", "6", "'d_embedding': expected 8"},
      {12, "max_length", "59", "'max_length': expected 60"},
  };
  for (const auto& each : cases) {
    Copy copy(kConfigurations[each.configuration]);
    const std::string refusal = copy.RefusalOf(each.option, each.value);
    EXPECT_NE(refusal.find(each.sign), std::string::npos) << each.option << ": " << refusal;
  }
}

}  // namespace
}  // namespace kinglet::option_flips_test
