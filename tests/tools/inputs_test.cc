// Inputs of all commands: any file may be compressed, or a pipe, and text may have byte order marks
// and carriage returns. The answer is that of the plain file.
#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <string>

#include "tests/support/transformer_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::inputs_test {
namespace {

// The text with " F " replaced by another name.
std::string Naming(std::string command, const std::string& name) {
  const size_t at = command.find(" F");
  return command.replace(at + 1, 1, name);
}

class InputsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyMicronet({.cache_capacity = 8}));
    folder_.WriteModel("other.kgl", TinyMicronet({.cache_capacity = 8, .seed = 3}));
    folder_.Write("text.txt", "the w3 w5 qq\n\nw7 w8 the\n");
    folder_.Write("ids.txt", "0 3 5 2 1 7 8\n");
    folder_.Write("counts.txt", "the 9\nw3 4\nw5 3\n");
    folder_.Write("allowed.txt", "w3\nw5\n");
    folder_.Write("lists.txt", "u-1 the w3\nu-2 w5 w7\n");
    folder_.Write("scores.txt", "u-1 -2\nu-2 -3\n");
    folder_.Write("references.txt", "u\tthe w3\n");
  }
  CommandFolder folder_;
};

TEST_F(InputsTest, EveryFileMayBePackedOrAPipe) {
  for (const auto& [command, file] : std::initializer_list<std::pair<const char*, const char*>>{
           {"score m.kgl --json --text F", "text.txt"},
           {"score m.kgl --json --lines --text F", "text.txt"},
           {"score m.kgl --json --ids F", "ids.txt"},
           {"score m.kgl --json --lines --ids F", "ids.txt"},
           {"score m.kgl --json --by frequency --ids ids.txt --counts F", "counts.txt"},
           {"predict m.kgl --json --ids F", "ids.txt"},
           {"predict m.kgl --json --ids ids.txt --allowed F", "allowed.txt"},
           {"generate m.kgl --json --tokens 3 --ids F", "ids.txt"},
           {"tune-cache m.kgl --json -o t.kgl --text F", "text.txt"},
           {"filter m.kgl --max-ppl 1e9 --max-oov 1 --min-tokens 0 F", "text.txt"},
           {"filter m.kgl --percentile 50 text.txt --reference F", "text.txt"},
           {"rescore m.kgl --json --scores scores.txt F", "lists.txt"},
           {"rescore m.kgl --json lists.txt --scores F", "scores.txt"},
           {"rescore m.kgl --json lists.txt --references F", "references.txt"},
           {"tokenize m.kgl < F", "text.txt"},
           {"predict m.kgl --json < F", "text.txt"},
           {"filter m.kgl --max-ppl 1e9 < F", "text.txt"}}) {
    const std::string name = file;
    const Outcome plain = folder_.Run(Naming(command, name));
    EXPECT_EQ(plain.exit_status, 0) << command << plain.error;
    EXPECT_FALSE(plain.out.empty()) << command;
    folder_.RunShell("gzip -kf " + name + "; (printf '\\357\\273\\277'; sed 's/$/\\r/' " + name +
                     ") > marked");
    EXPECT_EQ(folder_.Run(Naming(command, name + ".gz")).out, plain.out) << command;
    const bool keeps_bytes = std::string(command).starts_with("filter");
    if (!keeps_bytes || std::string(command).find("reference") != std::string::npos) {
      EXPECT_EQ(folder_.Run(Naming(command, "marked")).out, plain.out) << command;
    }
    if (std::string(command).find('<') != std::string::npos) continue;
    EXPECT_EQ(
        folder_.RunShell("cat " + name + ".gz | kinglet " + Naming(command, "/dev/stdin")).out,
        plain.out)
        << command;
    // Half a file is no text.
    folder_.RunShell("head -c 25 " + name + ".gz > half");
    const Outcome half = folder_.Run(Naming(command, "half"));
    EXPECT_EQ(half.exit_status, 1) << command;
    EXPECT_NE(half.error.find("half: byte 25: expected more gzip data"), std::string::npos)
        << command << half.error;
  }
}

TEST_F(InputsTest, ConvertersReadPackedFiles) {
  std::filesystem::copy(KINGLET_TEST_DATA "/micronet-small-fp32", folder_.Path("c"),
                        std::filesystem::copy_options::recursive);
  folder_.Write("long.txt", "= The =\n the of and , . the of\n");
  folder_.RunShell("gzip -k c/vocab.txt c/golden_f64.tsv c/tokens.txt long.txt");
  const std::string plain =
      "convert c --json --bits 8 --vocab c/vocab.txt --calibrate long.txt -o ";
  ASSERT_EQ(folder_.Run(plain + "plain.kgl").exit_status, 0);
  const Outcome packed = folder_.Run(
      "convert c --json --bits 8 --vocab c/vocab.txt.gz --calibrate long.txt.gz -o packed.kgl");
  ASSERT_EQ(packed.exit_status, 0) << packed.error;
  EXPECT_TRUE(folder_.Read("plain.kgl") == folder_.Read("packed.kgl"));
  const Outcome golden =
      folder_.Run("convert c --json -o g.kgl --golden c/golden_f64.tsv.gz --ids c/tokens.txt.gz");
  EXPECT_EQ(golden.exit_status, 0) << golden.error;
  const std::string measured =
      "sensitivity c --vocab c/vocab.txt --sparsities 0.5 --bits 4 "
      "--tensors layers.0.qkv.weight ";
  ASSERT_EQ(folder_.Run(measured + "--text long.txt -o s.json").exit_status, 0);
  ASSERT_EQ(folder_.Run(measured + "--text long.txt.gz -o packed.json").exit_status, 0);
  // Both models are measured on a text that can be read once.
  const std::string plan = "plan s.json --sparsity 0.3 -o r.json --json --check ";
  const Outcome of_file = folder_.Run(plan + "long.txt");
  ASSERT_EQ(of_file.exit_status, 0) << of_file.error;
  EXPECT_EQ(folder_.RunShell("cat long.txt.gz | kinglet " + plan + "/dev/stdin").out, of_file.out);
  EXPECT_EQ(folder_.RunShell("cat long.txt | kinglet " + plan + "-").out, of_file.out);
}

// The second reading would find an empty text.
TEST_F(InputsTest, PipesThatWouldBeReadTwiceAreRefused) {
  for (const char* command : {"diff m.kgl other.kgl --text /dev/stdin",
                              "report m.kgl other.kgl -o r.html --text /dev/stdin",
                              "score m.kgl --by frequency --text /dev/stdin --counts /dev/stdin",
                              "rescore m.kgl /dev/stdin --references /dev/stdin"}) {
    const Outcome refused = folder_.RunShell("cat counts.txt | kinglet " + std::string(command));
    EXPECT_NE(refused.exit_status, 0) << command;
    EXPECT_TRUE(refused.IsRefusal()) << command << refused.error;
  }
  const Outcome diff =
      folder_.RunShell("cat text.txt | kinglet diff m.kgl other.kgl --text /dev/stdin");
  EXPECT_EQ(
      diff.error,
      "kinglet: diff: /dev/stdin: expected a file, as it is read twice, found a pipe (save it "
      "in a file first)\n");
  // A file by that name is read again from its beginning.
  EXPECT_EQ(
      folder_.RunShell("kinglet diff m.kgl other.kgl --json --text /dev/stdin < text.txt").out,
      folder_.Run("diff m.kgl other.kgl --json --text text.txt").out);
}

TEST_F(InputsTest, WhatIsNoTextIsRefused) {
  folder_.RunShell(
      "printf '\\3757zXZ\\0abc' > a.xz; printf '\\377\\376t\\0h\\0' > a.txt; printf '%%PDF-1.7\\n' "
      "> "
      "a.pdf; printf 'PK\\3\\4' > a.zip; printf '\\1\\2\\3\\4\\5\\6\\7\\10abc' > a.bin");
  for (const auto& [name, next] : std::initializer_list<std::pair<const char*, const char*>>{
           {"a.xz", "`xz -dc a.xz > text.txt`"},
           {"a.txt", "`iconv -f UTF-16 -t UTF-8 a.txt > text.txt`"},
           {"a.pdf", "`pdftotext a.pdf text.txt`"},
           {"a.zip", "`unzip -p a.zip > text.txt`"},
           {"a.bin", ""},
           {"m.kgl", "`kinglet inspect`"}}) {
    for (const char* command :
         {"score m.kgl --text F", "score m.kgl --lines --text F", "score m.kgl --ids F",
          "filter m.kgl --annotate F", "rescore m.kgl F", "tune-cache m.kgl -o t.kgl --text F",
          "report m.kgl -o r.html --text F", "diff m.kgl other.kgl --text F",
          "predict m.kgl --ids ids.txt --allowed F"}) {
      const Outcome refused = folder_.Run(Naming(command, name));
      EXPECT_EQ(refused.exit_status, 1) << command << name;
      EXPECT_TRUE(refused.IsRefusal()) << command << refused.error;
      EXPECT_NE(refused.error.find(next), std::string::npos) << command << refused.error;
    }
  }
}

// Tokens are those that `score` reads, with or without a tokenizer in the model.
TEST_F(InputsTest, TokenizeShowsWhatScoreReads) {
  ModelDraft draft = TinyMicronet();
  for (const bool stated : {false, true}) {
    if (stated) draft.tokenizer = TextTables{false, WordRule{WordRule::Rule::kCharacters}};
    folder_.WriteModel("t.kgl", draft);
    const std::string text = "\xEF\xBB\xBFthe w3\r\n\xEF\xBB\xBFw5 qq\r\n";
    folder_.Write("marked.txt", text);
    std::string ids;
    for (const auto& line : folder_.Run("tokenize t.kgl", text).Json()) {
      for (const auto& id : line["ids"]) ids += id.dump() + " ";
      ids += "1 ";  // <eos>
    }
    folder_.Write("t.txt", ids);
    const auto read = folder_.Run("score t.kgl --text marked.txt --json").Json();
    const auto shown = folder_.Run("score t.kgl --ids t.txt --json").Json();
    ASSERT_EQ(read.size(), shown.size());
    for (size_t i = 0; i + 1 < read.size(); ++i) EXPECT_EQ(read[i]["id"], shown[i]["id"]);
    EXPECT_EQ(read.back()["nll"], shown.back()["nll"]);
  }
}

// The characters of a file's name on the command line have no special meaning.
TEST_F(InputsTest, NamesAreNotInterpreted) {
  folder_.RunShell("mkdir run; cp text.txt a; cp text.txt b");
  for (const char* name :
       {"[run]", "[a,b]", "[a]", "{}", "%%", "++", "@a", "?", "[ab]", "$a", "~"}) {
    for (const char* command :
         {"filter m.kgl --annotate 'F'", "convert 'F' -o x.kgl", "score m.kgl --text='F'"}) {
      std::string line = command;
      const Outcome refused = folder_.Run(line.replace(line.find("'F'") + 1, 1, name));
      EXPECT_EQ(refused.exit_status, 1) << line;
      EXPECT_TRUE(refused.IsRefusal()) << refused.error;
      EXPECT_NE(refused.error.find(name), std::string::npos) << line << refused.error;
    }
    folder_.RunShell("cp text.txt '" + std::string(name) + "'");
    EXPECT_EQ(folder_.Run("filter m.kgl --annotate '" + std::string(name) + "'").Json().size(), 3u)
        << name;
  }
  EXPECT_EQ(folder_.Run("generate m.kgl --tokens 1 --json --prompt '[the]'").Json()[0]["text"],
            folder_.Run("generate m.kgl --tokens 1 --json --prompt qq").Json()[0]["text"]);
}

}  // namespace
}  // namespace kinglet::inputs_test
