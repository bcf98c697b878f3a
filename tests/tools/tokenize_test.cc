#include <gtest/gtest.h>

#include <string>

#include "format/writer.h"
#include "tests/support/model_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::tokenize_test {
namespace {

TEST(Tokenize, CodesHavePiecesOnly) {
  const CommandFolder folder;
  folder.Write("codes", "#version: 0.2\na b\n");
  const Outcome tokenized = folder.Run("tokenize codes --jsonl", "\"abc\\n\"\n{\"hex\":\"ff\"}\n");
  EXPECT_EQ(tokenized.exit_status, 0) << tokenized.error;
  EXPECT_EQ(tokenized.out, "{\"pieces\":[\"ab@@\",\"c\"]}\n{\"pieces\":[\"\\u00ff\"]}\n");
  EXPECT_EQ(folder.Run("tokenize codes --decode", "{\"pieces\":[\"ab@@\",\"c\"]}\n").out,
            "{\"text\":\"abc\"}\n");
}

TEST(Tokenize, ModelsHaveIdsAndRanges) {
  const CommandFolder folder;
  ModelDraft draft = TinyMicronet();
  const auto write = [&] {
    const auto bytes = SerialiseModel(draft);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    folder.Write("m.kgl", {reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  };
  write();
  EXPECT_EQ(folder.Run("tokenize m.kgl", "the W3, qq").out,
            "{\"ids\":[0,2,2],\"pieces\":[\"the\",\"W3,\",\"qq\"],"
            "\"ranges\":[[0,3],[4,7],[8,10]]}\n");
  folder.WriteModel("ids.kgl", TinyMicronet({.vocabulary = false}));
  EXPECT_TRUE(folder.Run("tokenize ids.kgl", "the\n").IsRefusal());
  draft.tokenizer = TextTables{true, WordRule{WordRule::Rule::kWikiText}};
  write();
  EXPECT_EQ(folder.Run("tokenize m.kgl", "The W3, qq").out,
            "{\"ids\":[0,3,2,2],\"pieces\":[\"the\",\"w3\",\",\",\"qq\"],"
            "\"ranges\":[[0,3],[4,6],[6,7],[8,10]]}\n");
  EXPECT_EQ(folder.Run("tokenize m.kgl --decode", "0 3\n\n").out,
            "{\"text\":\"the w3\"}\n{\"text\":\"\"}\n");
  EXPECT_TRUE(folder.Run("tokenize m.kgl --decode", "0 99\n").IsRefusal());
  EXPECT_NE(folder.Run("inspect m.kgl --json").out.find("WikiText"), std::string::npos);
}

TEST(Tokenize, BadLinesAreRefusedWithTheirNumber) {
  const CommandFolder folder;
  for (const char* line : {"{}", "[1]", R"({"hex":"f"})", R"({"hex":"zz"})", R"("a" "b")", "1"}) {
    const Outcome run = folder.Run("tokenize spaces --jsonl", std::string("\"a\"\n") + line);
    EXPECT_EQ(run.exit_status, 1) << line;
    EXPECT_NE(run.error.find("line 2"), std::string::npos) << run.error;
  }
  for (const char* line : {"{}", R"({"ids":[-1]})", R"({"ids":["a"]})", R"({"text":[1]})", "x"}) {
    EXPECT_TRUE(folder.Run("tokenize spaces --decode", line).IsRefusal()) << line;
  }
}

}  // namespace
}  // namespace kinglet::tokenize_test
