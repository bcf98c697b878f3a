// docs/COMMAND.md: its commands are run unchanged, and the keys of their output are those of its
// tables.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "runtime/typing/user_words_file.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/define_builder.h"
#include "tests/support/masked_builder.h"
#include "tests/support/translation_builder.h"
#include "tests/tools/run_command.h"
#include "tools/program.h"

namespace kinglet::command_page_test {
namespace {

const std::string kPage = KINGLET_TEST_DATA "/../../docs/COMMAND.md";

struct Section {
  std::vector<std::string> commands;  // lines of its code blocks that begin with "kinglet "
  std::set<std::string> keys;         // first column of its tables
};

// Sections "## `kinglet NAME`" by NAME.
std::map<std::string, Section> ReadPage() {
  std::map<std::string, Section> sections;
  std::ifstream page(kPage);
  EXPECT_TRUE(page.good());
  std::string name;
  for (std::string line; std::getline(page, line);) {
    constexpr std::string_view kHeading = "## `kinglet ";
    if (line.starts_with("## ")) name.clear();
    if (line.starts_with(kHeading)) {
      name = line.substr(kHeading.size(), line.rfind('`') - kHeading.size());
      sections[name];
    }
    if (name.empty()) continue;
    if (line.starts_with("kinglet ")) sections[name].commands.push_back(line);
    if (!line.starts_with("| `")) continue;
    const std::string cell = line.substr(2, line.find(" |", 2) - 2);
    for (size_t begin = cell.find('`'); begin != cell.npos;) {
      const size_t end = cell.find('`', begin + 1);
      sections[name].keys.insert(cell.substr(begin + 1, end - begin - 1));
      begin = cell.find('`', end + 1);
    }
  }
  return sections;
}

// The files that the page's commands name.
void WriteFiles(const CommandFolder& folder) {
  folder.WriteModel("model.kgl", TinyMicronet({.cache_capacity = 8}));
  ModelDraft pieces = TinyMicronet();
  pieces.tokenizer = TextTables{false, MergeTables{}};
  folder.WriteModel("pieces.kgl", pieces);
  folder.WriteModel("translation.kgl", TinyTranslation());
  folder.WriteModel("vectors.kgl", TinyClassifier({.classes = 0}));
  folder.WriteModel("units.kgl", TinyDefine());
  folder.WriteModel("classifier.kgl", TinyClassifier({}));
  folder.WriteModel("masked.kgl", TinyMasked({.scores = 3}));
  folder.WriteModel("next.kgl", TinyMasked({.scores = 2, .scored = ScoredPart::kNextSentence}));
  folder.WriteModel(
      "spans.kgl",
      TinyMasked({.words = false, .pooler = false, .scores = 2, .scored = ScoredPart::kSpans}));
  ModelDraft characters = TinyMicronet();
  characters.vocabulary[1] = "\n";
  characters.tokenizer = TextTables{false, WordRule{WordRule::Rule::kCharacters}};
  folder.WriteModel("characters.kgl", characters);
  folder.Write("texts.txt", "2 9 4 13 3 6 3\n2 5 3\n");
  folder.Write("segments.txt", "0 0 0 0 0 1 1\n0 0 0\n");
  folder.Write("ids.txt", "0 1 2 3 4 5 6\n");
  folder.Write("text.txt", "the w3 w4 unheard\nw5 the w7 w9\n");
  folder.Write("counts.txt", "the 12\nw3 4\nw5 1\n");
  EXPECT_EQ(folder.Run("compress model.kgl text.txt -o archive.kz").exit_status, 0);
  folder.Write("documents.jsonl", "{\"text\":\"the w3\\nw4\"}\n");
  folder.Write("models.json", R"({"en":"model.kgl"})");
  folder.Write("source.txt", "s4 s5 s6\n");
  folder.Write("source_ids.txt", "4 5 6\n");
  folder.Write("target.txt", "t4 t5 t6\n");
  folder.Write("pairs.txt", "1 12 0 ||| 2 5 16 3\n7 ||| 2 3\n");
  folder.Write("lattices.txt", "u\n0 1 the 1,2,3\n0 1 w3 1,3,4\n1\n\n");
  folder.Write("nbest.tsv", "u\t-1\tthe w3\nu\t-2\tthe w4\nv\t-1\tw5\n");
  folder.Write("references.tsv", "u\tthe w4\nv\tw5\n");
  folder.Write("names.txt", "the w4\n");
  folder.Write("model.arpa",
               "\\data\\\nngram 1=4\nngram 2=1\n\n\\1-grams:\n-1\t<s>\t-0.5\n-1\t</s>\n-1\t<unk>\n"
               "-1\tthe\n\n\\2-grams:\n-0.5\t<s> the\n\n\\end\\\n");
  folder.Write("lists.txt", "3 9 3\n5\n0 1\n");
  folder.Write("words.txt", "w3 w9 w3\nw5\n");
  folder.Write("labels.txt", "0\n3\n");
  typing::UserWords words;
  auto words_file = typing::UserWordsFile::Open(folder.Path("words"), words);
  EXPECT_TRUE(words_file.ok() && words_file->Append({"the", "wren", 1, 1}).ok());
  const std::string damaged = folder.Read("model.kgl");
  folder.Write("damaged.kgl", damaged.substr(0, damaged.size() - 1));
  std::filesystem::copy(KINGLET_TEST_DATA "/micronet-small-fp32", folder.Path("checkpoint"),
                        std::filesystem::copy_options::recursive);
  // A family's tensors without the configuration that the family needs.
  std::filesystem::copy(KINGLET_TEST_DATA "/transformer-xl-variants/hf-published/pytorch_model.bin",
                        folder.Path("weights.bin"));
}

void AddKeys(const nlohmann::ordered_json& value, const std::string& path,
             std::set<std::string>& keys) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      AddKeys(inner, path.empty() ? key : path + "." + key, keys);
    }
  } else if (value.is_array() && !value.empty() && value[0].is_object()) {
    for (const auto& inner : value) AddKeys(inner, path + "[]", keys);
  } else {
    keys.insert(path);
  }
}

// A documented "bytes.*" stands for every key that begins with "bytes.".
std::string DocumentedAs(const std::string& key, const std::set<std::string>& documented) {
  if (documented.count(key) > 0) return key;
  for (const std::string& pattern : documented) {
    if (pattern.ends_with("*") && key.starts_with(pattern.substr(0, pattern.size() - 1))) {
      return pattern;
    }
  }
  return "";
}

class CommandPage : public testing::Test {
 protected:
  void SetUp() override { WriteFiles(folder_); }
  CommandFolder folder_;
};

TEST_F(CommandPage, HasEverySubcommand) {
  const Program program;
  const auto sections = ReadPage();
  for (const std::string& name : CommandNames(program)) {
    EXPECT_EQ(sections.count(name), 1u) << name;
  }
  EXPECT_EQ(sections.size(), program.commands.size());
}

TEST_F(CommandPage, HasEveryKeyAndNoOther) {
  for (const auto& [name, section] : ReadPage()) {
    std::set<std::string> printed, used;
    EXPECT_FALSE(section.commands.empty()) << name;
    for (const std::string& command : section.commands) {
      const Outcome outcome = folder_.RunShell(command);
      EXPECT_EQ(outcome.exit_status, command.starts_with("kinglet verify damaged") ? 1 : 0)
          << command << "\n"
          << outcome.error;
      for (const nlohmann::ordered_json& line : outcome.Json()) AddKeys(line, "", printed);
    }
    std::string unlisted, unseen;
    for (const std::string& key : printed) {
      const std::string documented = DocumentedAs(key, section.keys);
      if (documented.empty()) unlisted += " " + key;
      used.insert(documented);
    }
    for (const std::string& key : section.keys) {
      if (used.count(key) == 0) unseen += " " + key;
    }
    EXPECT_EQ(unlisted, "") << "printed by kinglet " << name << ", not in docs/COMMAND.md";
    EXPECT_EQ(unseen, "") << "in docs/COMMAND.md, not printed by its commands of kinglet " << name;
  }
}

}  // namespace
}  // namespace kinglet::command_page_test
