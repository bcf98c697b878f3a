#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/tools/run_command.h"

namespace kinglet::compress_test {
namespace {

class CompressTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.WriteModel("m.kgl", TinyMicronet({.quantised = true, .bits = 9, .cache_capacity = 5}));
    folder_.WriteModel("other.kgl", TinyMicronet({.quantised = true, .bits = 9, .seed = 2}));
    for (int i = 0; i < 200; ++i) text_ += "the w" + std::to_string(3 + i * i % 20) + " unheard\n";
    text_ += std::string("\0\xFF\r\n", 4);
    folder_.Write("text.txt", text_);
  }
  std::string Digest() const {
    return folder_.Run("inspect m.kgl --json").Json()[0]["digest"].get<std::string>();
  }
  void ExpectRefused(const std::string& arguments, int status, const std::string& part) const {
    const Outcome outcome = folder_.Run(arguments);
    EXPECT_EQ(outcome.exit_status, status) << arguments;
    EXPECT_TRUE(outcome.IsRefusal()) << arguments << ": " << outcome.error;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  }
  CommandFolder folder_;
  std::string text_;
};

TEST_F(CompressTest, FilesComeBackUnchanged) {
  const Outcome made = folder_.Run("compress m.kgl text.txt --json");
  ASSERT_EQ(made.exit_status, 0) << made.error;
  const std::string archive = folder_.Read("text.txt.kz");
  EXPECT_EQ(made.Json()[0]["size"], archive.size());
  EXPECT_EQ(made.Json()[0]["length"], text_.size());
  EXPECT_LT(archive.size(), text_.size() / 3);
  EXPECT_EQ(folder_.Run("decompress m.kgl text.txt.kz -o back.txt").exit_status, 0);
  EXPECT_EQ(folder_.Read("back.txt"), text_);
  EXPECT_EQ(folder_.Read("text.txt"), text_);
  const std::string fast = folder_.Run("compress m.kgl --fast", text_).out;
  EXPECT_NE(fast, archive);
  EXPECT_EQ(folder_.Run("decompress m.kgl", fast).out, text_);
  folder_.Write("copy.txt", text_);
  EXPECT_EQ(folder_.Run("compress m.kgl copy.txt text.txt --threads 2 --force").exit_status, 0);
  EXPECT_EQ(folder_.Read("copy.txt.kz"), archive);
  EXPECT_EQ(folder_.Run("decompress m.kgl copy.txt.kz text.txt.kz --force").exit_status, 0);
  EXPECT_EQ(folder_.Read("copy.txt"), text_);
}

TEST_F(CompressTest, PipesAndTheModelOfTheEnvironment) {
  const Outcome made = folder_.Run("compress m.kgl --block 1024", text_);
  ASSERT_EQ(made.exit_status, 0) << made.error;
  EXPECT_EQ(folder_.Run("decompress m.kgl --threads 3", made.out).out, text_);
  EXPECT_EQ(folder_.RunShell("KINGLET_MODEL=m.kgl kinglet decompress -", made.out).out, text_);
  EXPECT_EQ(folder_.Run("decompress --model m.kgl -o -", made.out).out, text_);
  EXPECT_EQ(folder_.RunShell("KINGLET_MODEL=m.kgl kinglet compress - --block 1024", text_).out,
            made.out);
  // With --model a model file is an input like any other.
  const Outcome model = folder_.Run("compress --model other.kgl m.kgl");
  EXPECT_EQ(model.exit_status, 0) << model.error;
  EXPECT_EQ(folder_.Run("decompress --model other.kgl m.kgl.kz -o -").out, folder_.Read("m.kgl"));
  ExpectRefused("compress text.txt", 1, "KINGLET_MODEL");
}

// What one instruction set compresses, another restores.
TEST_F(CompressTest, TheBytesAreTheSameWithoutVectors) {
  const std::string expected = folder_.Run("compress m.kgl", text_).out;
  EXPECT_EQ(folder_.RunShell("KINGLET_CPU=scalar kinglet compress m.kgl", text_).out, expected);
  EXPECT_EQ(folder_.RunShell("KINGLET_CPU=scalar kinglet decompress m.kgl", expected).out, text_);
}

TEST_F(CompressTest, NothingIsReplacedWithoutForce) {
  ASSERT_EQ(folder_.Run("compress m.kgl text.txt").exit_status, 0);
  ExpectRefused("compress m.kgl text.txt", 1, "--force");
  ExpectRefused("decompress m.kgl text.txt.kz", 1, "--force");
  EXPECT_EQ(folder_.Run("compress m.kgl text.txt --force").exit_status, 0);
  ExpectRefused("decompress m.kgl text.txt -o x", 1, "first bytes");
  ExpectRefused("decompress m.kgl text.txt", 1, "-o");
  ExpectRefused("compress m.kgl text.txt text.txt -o x", 2, "-o");
  ExpectRefused("compress m.kgl missing.txt", 1, "missing.txt");
  ExpectRefused("compress missing.kgl text.txt", 1, "missing.kgl");
  ExpectRefused("decompress m.kgl x.kz --test --list", 2, "--salvage");
  // Nothing half-written stays.
  for (const auto& entry : std::filesystem::directory_iterator(folder_.Path(""))) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".kinglet")) << entry.path();
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("x")));
}

TEST_F(CompressTest, AnotherModelIsRefusedByName) {
  ASSERT_EQ(folder_.Run("compress m.kgl text.txt").exit_status, 0);
  ExpectRefused("decompress other.kgl text.txt.kz -o x", 1, Digest());
  ExpectRefused("decompress other.kgl text.txt.kz -o x", 1, "in other.kgl");
}

TEST_F(CompressTest, DamageIsNamedAndTheOtherBlocksAreSalvaged) {
  std::string archive = folder_.Run("compress m.kgl --block 1024", text_).out;
  folder_.Write("a.kz", archive);
  const auto listed = folder_.Run("decompress --list a.kz --json").Json()[0];
  EXPECT_EQ(listed["length"], text_.size());
  EXPECT_EQ(listed["blocks"], (text_.size() + 1023) / 1024);
  EXPECT_EQ(listed["model"], Digest());
  EXPECT_EQ(folder_.Run("decompress m.kgl --test a.kz").exit_status, 0);
  archive[60] ^= 1;  // in the first block
  folder_.Write("a.kz", archive);
  ExpectRefused("decompress m.kgl a.kz", 1, "block 1 ");
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("a")));
  const Outcome tested = folder_.Run("decompress m.kgl --test a.kz");
  EXPECT_EQ(tested.exit_status, 1);
  EXPECT_NE(tested.error.find("block 1 "), std::string::npos) << tested.error;
  EXPECT_EQ(folder_.Run("decompress m.kgl --salvage a.kz").exit_status, 1);
  EXPECT_EQ(folder_.Read("a"), text_.substr(1024));
}

TEST_F(CompressTest, TextsAboveTheLimitAreRefused) {
  folder_.Write("zeros", std::string(200000, '\0'));
  ASSERT_EQ(folder_.Run("compress m.kgl zeros").exit_status, 0);
  EXPECT_LT(folder_.Read("zeros.kz").size(), 300u);
  ExpectRefused("decompress m.kgl zeros.kz -o x --limit 199999", 1, "limit");
  EXPECT_EQ(folder_.Run("decompress m.kgl zeros.kz -o x --limit 200000").exit_status, 0);
  EXPECT_EQ(folder_.Read("x"), std::string(200000, '\0'));
}

// Without words the network would take no part, and no one would know.
TEST_F(CompressTest, AModelWithoutWordsIsRefused) {
  folder_.WriteModel("ids.kgl", TinyMicronet({.vocabulary = false}));
  ExpectRefused("compress ids.kgl text.txt", 1,
                "found ids alone (convert the checkpoint with --vocab)");
}

}  // namespace
}  // namespace kinglet::compress_test
