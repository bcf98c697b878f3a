#include "converters/checkpoints/config_file.h"

#include <gtest/gtest.h>

#include "tests/converters/files.h"

namespace kinglet::config_file_test {
namespace {

ConfigFile Config(const std::string& content) {
  const TemporaryFile file(content);
  Result<ConfigFile> config = ConfigFile::Read(file.path());
  if (config.ok()) return *config;
  ADD_FAILURE() << config.status().message();
  const TemporaryFile empty("");
  return *ConfigFile::Read(empty.path());
}

std::string ReadRefusal(const std::string& content) {
  const TemporaryFile file(content);
  const Result<ConfigFile> config = ConfigFile::Read(file.path());
  if (config.ok()) return "accepted";
  EXPECT_EQ(config.status().code(), KINGLET_INVALID_CHECKPOINT);
  return config.status().message().substr(file.path().size());
}

template <class T>
std::string Refusal(const ConfigFile& config, const Result<T>& value) {
  return value.ok() ? "accepted" : value.status().message().substr(config.path().size());
}

// As Python's yaml.dump writes a training configuration.
TEST(ConfigFile, ReadsATrainingConfiguration) {
  const ConfigFile config = Config(
      "bits: 9\ncache_theta: 0.02021162425847724\ncutoffs:\n- 3500\n- 25000\nlr: 1.0e-05\n"
      "model: quantize.Transformer\nn_embeds: [256, 64, 4]\nopt_level: O0\nuse_cache: true\n"
      "note: 'it''s'\nnothing: null\nempty: []\n");
  EXPECT_EQ(*config.Integer("bits"), 9);
  EXPECT_EQ(*config.Number("bits"), 9.0);
  EXPECT_EQ(*config.Number("cache_theta"), 0.02021162425847724);
  EXPECT_EQ(*config.Number("lr"), 1e-5);
  EXPECT_EQ(*config.Text("model"), "quantize.Transformer");
  EXPECT_EQ(*config.Text("note"), "it's");
  EXPECT_EQ(*config.Integers("cutoffs"), (std::vector<int64_t>{3500, 25000}));
  EXPECT_EQ(*config.Integers("n_embeds"), (std::vector<int64_t>{256, 64, 4}));
  EXPECT_EQ(*config.Integers("empty"), std::vector<int64_t>());
  EXPECT_TRUE(*config.Boolean("use_cache"));
  EXPECT_TRUE(config.Has("bits"));
  EXPECT_FALSE(config.Has("nothing"));
  EXPECT_FALSE(config.Has("absent"));
}

TEST(ConfigFile, ReadsNumbersAsPythonAndYamlWriteThem) {
  const ConfigFile config =
      Config("a: 1e-05\nb: +2\nc: -3\nd: .5\ne: 1.\nf: False\ng: YES\nh: off\n");
  EXPECT_EQ(*config.Number("a"), 1e-5);
  EXPECT_EQ(*config.Integer("b"), 2);
  EXPECT_EQ(*config.Integer("c"), -3);
  EXPECT_EQ(*config.Number("d"), 0.5);
  EXPECT_EQ(*config.Number("e"), 1.0);
  EXPECT_FALSE(*config.Boolean("f"));
  EXPECT_TRUE(*config.Boolean("g"));
  EXPECT_FALSE(*config.Boolean("h"));
}

TEST(ConfigFile, NamesKeyLineAndText) {
  const ConfigFile config = Config(
      "n_layers: many\nbits: '9'\nlr: nan\nnested:\n  a: 1\ncutoffs:\n- 1\n- two\nnothing:\n"
      "inf: .inf\nlarge: 9223372036854775808\nhuge: 1e999\n");
  EXPECT_EQ(Refusal(config, config.Integer("n_layers")),
            ": 'n_layers' at line 1: expected an integer of 64 bits, found 'many'");
  EXPECT_EQ(Refusal(config, config.Integer("bits")),
            ": 'bits' at line 2: expected an integer of 64 bits, found '9'");
  EXPECT_EQ(Refusal(config, config.Number("bits")),
            ": 'bits' at line 2: expected a finite number, found '9'");
  EXPECT_EQ(Refusal(config, config.Number("lr")),
            ": 'lr' at line 3: expected a finite number, found 'nan'");
  EXPECT_EQ(Refusal(config, config.Text("nested")),
            ": 'nested' at line 5: expected a text, found a nested value");
  EXPECT_EQ(Refusal(config, config.Boolean("n_layers")),
            ": 'n_layers' at line 1: expected true or false, found 'many'");
  EXPECT_EQ(Refusal(config, config.Integers("cutoffs")),
            ": 'cutoffs' at line 8: expected a list of integers of 64 bits, found 'two'");
  EXPECT_EQ(Refusal(config, config.Integers("n_layers")),
            ": 'n_layers' at line 1: expected a list of integers of 64 bits, found 'many'");
  EXPECT_EQ(Refusal(config, config.Integer("cutoffs")),
            ": 'cutoffs' at line 7: expected an integer of 64 bits, found a list");
  EXPECT_EQ(Refusal(config, config.Integer("absent")),
            ": 'absent': expected an integer of 64 bits, found no such key");
  EXPECT_NE(Refusal(config, config.Integer("nothing")).find("found no value"), std::string::npos);
  EXPECT_NE(Refusal(config, config.Integers("nothing")).find("found no value"), std::string::npos);
  for (const char* key : {"inf", "huge"}) EXPECT_FALSE(config.Number(key).ok()) << key;
  EXPECT_FALSE(config.Integer("large").ok());
  EXPECT_EQ(*config.Text("inf"), ".inf");
}

// As Python's json module writes them.
TEST(ConfigFile, ReadsJson) {
  const ConfigFile config = Config(
      "{\n  \"tie_projs\": [\n    false,\n    true\n  ],\n  \"none\": [],\n  \"eps\": 1e-05,\n"
      "  \"cutoffs\": [1, 2],\n  \"name\": \"transfo-xl\",\n  \"null\": null,\n"
      "  \"nested\": {\"a\": {\"b\": 1}},\n  \"quoted\": [\"true\"]\n}\n");
  EXPECT_EQ(*config.Booleans("tie_projs"), (std::vector<bool>{false, true}));
  EXPECT_EQ(*config.Booleans("none"), std::vector<bool>());
  EXPECT_EQ(*config.Number("eps"), 1e-5);
  EXPECT_EQ(*config.Integers("cutoffs"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*config.Text("name"), "transfo-xl");
  EXPECT_FALSE(config.Has("null"));
  EXPECT_TRUE(config.Has("nested"));
  EXPECT_EQ(Refusal(config, config.Booleans("cutoffs")),
            ": 'cutoffs' at line 8: expected a list of true and false, found '1'");
  EXPECT_FALSE(config.Booleans("quoted").ok());
  EXPECT_FALSE(config.Booleans("name").ok());
}

TEST(ConfigFile, SectionsTextsAndTags) {
  const ConfigFile config = Config(
      "lm_conf:\n    unit: 7\n    nhid: null\nempty: {}\ntokens:\n- <blank>\n- 'on'\n- on\n"
      "class: !name:torch.nn.GELU\nobject: &a !new:package.Class\n    n: !ref <m>\nm: 3\n"
      "again: *a\nplain: 'quoted'\n");
  EXPECT_EQ(*config.Section("lm_conf")->Integer("unit"), 7);
  EXPECT_FALSE(config.Section("lm_conf")->Has("nhid"));
  EXPECT_EQ(config.Section("lm_conf")->Keys(), (std::vector<std::string>{"nhid", "unit"}));
  EXPECT_TRUE(config.Section("empty")->Keys().empty());
  EXPECT_EQ(*config.Texts("tokens"), (std::vector<std::string>{"<blank>", "on", "on"}));
  EXPECT_EQ(config.Tag("class"), "!name:torch.nn.GELU");
  EXPECT_EQ(config.Tag("object"), "!new:package.Class");
  EXPECT_EQ(config.Tag("again"), "!new:package.Class");
  EXPECT_EQ(config.Tag("plain"), "");
  EXPECT_EQ(config.Tag("absent"), "");
  EXPECT_FALSE(config.Section("again")->Integer("n").ok());
  EXPECT_EQ(*config.Section("again")->WithReferences(config)->Integer("n"), 3);
  EXPECT_EQ(Refusal(config, config.Section("m")),
            ": 'm' at line 12: expected a mapping of names to values, found '3'");
  EXPECT_EQ(Refusal(config, config.Texts("lm_conf")),
            ": 'lm_conf' at line 2: expected a list of texts, found a nested value");
}

// Aliases of mappings that make an endless tree.
TEST(ConfigFile, AliasesOfMappingsAreCounted) {
  std::string laughs = "a0: &a0 {x: 1, y: 2}\n";
  for (int i = 1; i < 14; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " {p: " + before +
              ", q: " + before + ", r: " + before + ", s: " + before + "}\n";
  }
  EXPECT_NE(ReadRefusal(laughs).find("values, found more"), std::string::npos);
}

TEST(ConfigFile, RefusesWhatIsNoMapping) {
  EXPECT_FALSE(Config("").Has("a"));
  EXPECT_FALSE(Config("# only a comment\n").Has("a"));
  const std::string step = " (correct the file, or give another one with --config)";
  EXPECT_EQ(ReadRefusal("- 1\n- 2\n"),
            ": line 1: expected a mapping of names to values, found a list" + step);
  EXPECT_EQ(ReadRefusal("text"),
            ": line 1: expected a mapping of names to values, found a scalar" + step);
  EXPECT_EQ(ReadRefusal("a: 1\nb: 2\na: 3\n"),
            ": line 3: expected each name once, found 'a' again" + step);
  EXPECT_EQ(ReadRefusal("[a]: 1\n"), ": line 1: expected a name, found a list" + step);
  for (const char* bad :
       {"a: [1, 2\n", "a: *b\n", "a: 1\n b: 2\n", "a: !!", "{", "%YAML 9", "a: &", "a: }"}) {
    EXPECT_EQ(ReadRefusal(bad).substr(0, 2), ": ") << bad;
  }
  EXPECT_EQ(ConfigFile::Read("/nowhere").status().code(), KINGLET_NOT_FOUND);
  EXPECT_EQ(ConfigFile::Read(testing::TempDir()).status().code(), KINGLET_IO_ERROR);
}

TEST(ConfigFile, SurvivesHostileText) {
  EXPECT_NE(ReadRefusal(std::string(100000, '[')), "accepted");
  EXPECT_NE(ReadRefusal("a: " + std::string(100000, '{')), "accepted");
  EXPECT_NE(ReadRefusal(std::string((size_t{1} << 22) + 1, ' ')), "accepted");
  // Aliases of aliases: as a tree, they have 2^64 leaves.
  std::string laughs = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 64; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before +
              "]\n";
  }
  const ConfigFile config = Config(laughs);
  EXPECT_FALSE(config.Integers("a63").ok());
  const std::string content = "bits: 9\ncutoffs:\n- 800\n- 2200\nn: [1, {a: 'b'}]\n";
  for (size_t length = 0; length < content.size(); ++length) {
    const TemporaryFile file(std::string_view(content).substr(0, length));
    const Result<ConfigFile> read = ConfigFile::Read(file.path());
    EXPECT_TRUE(read.ok() || read.status().code() == KINGLET_INVALID_CHECKPOINT);
  }
  for (size_t at = 0; at < content.size(); ++at) {
    for (int change = 1; change < 256; change += 6) {
      std::string changed = content;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const TemporaryFile file(changed);
      const Result<ConfigFile> read = ConfigFile::Read(file.path());
      EXPECT_TRUE(read.ok() || read.status().code() == KINGLET_INVALID_CHECKPOINT);
    }
  }
}

}  // namespace
}  // namespace kinglet::config_file_test
