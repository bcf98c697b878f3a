#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/tools/run_command.h"
#include "tools/sensitivity_file.h"
#include "tools/text_tokens.h"

namespace kinglet::sensitivity_command_test {
namespace {

const std::string kRun =
    "sensitivity c --vocab c/vocab.txt --ids c/tokens.txt --sparsities 0.3,0.6 --bits 3,5 "
    "--codes 2x8 --tensors layers.0.qkv.weight loss.layers.0.weight '*.fc.3.weight' -o ";

class SensitivityCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(KINGLET_TEST_DATA "/micronet-small-fp32", folder_.Path("c"),
                          std::filesystem::copy_options::recursive);
  }
  void ExpectRefused(const Outcome& outcome, const std::string& part) {
    EXPECT_NE(outcome.exit_status, 0);
    EXPECT_TRUE(outcome.IsRefusal()) << outcome.error << outcome.out;
    EXPECT_NE(outcome.error.find(part), std::string::npos) << outcome.error;
  }
  // The file of kRun.
  std::string Measured() {
    static std::string measured;  // for all tests
    if (measured.empty()) {
      EXPECT_EQ(folder_.Run(kRun + "measured.json").exit_status, 0);
      measured = folder_.Read("measured.json");
    }
    return measured;
  }
  CommandFolder folder_;
};

TEST_F(SensitivityCommandTest, ThreadsAndInterruptionsGiveTheSameBytes) {
  const std::string whole = Measured();
  ASSERT_EQ(folder_.Run(kRun + "two.json --threads 2").exit_status, 0);
  EXPECT_EQ(folder_.Read("two.json"), whole);
  // Killed while it writes: every beginning of the file can be continued.
  for (const size_t size :
       {size_t{1}, whole.find('\n'), whole.size() / 2, whole.size() - 1, whole.size()}) {
    folder_.Write("unfinished.json", whole.substr(0, size));
    ASSERT_EQ(folder_.Run(kRun + "unfinished.json").exit_status, 0) << size;
    EXPECT_EQ(folder_.Read("unfinished.json"), whole) << size;
  }
  // Killed by a signal.
  for (const char* seconds : {"0.02", "0.1", "0.3"}) {
    const std::string kill = std::string("timeout -s KILL ") + seconds + " kinglet " + kRun;
    folder_.RunShell("(" + kill + "killed.json) > /dev/null 2>&1");
  }
  ASSERT_EQ(folder_.Run(kRun + "killed.json --threads 2").exit_status, 0);
  EXPECT_EQ(folder_.Read("killed.json"), whole);
}

TEST_F(SensitivityCommandTest, IsWhatScoreSays) {
  folder_.Write("s.json", Measured());
  const auto file = ReadSensitivityFile(folder_.Path("s.json"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  folder_.Run("convert c --vocab c/vocab.txt -o m.kgl");
  const auto score = [&] {
    return folder_.Run("score m.kgl --ids c/tokens.txt --json").Json().back()["nll"].get<double>();
  };
  EXPECT_EQ(file->record.nll, score());
  for (const MeasuredChange& change : file->record.changes) {
    const auto* bits = std::get_if<BitsChange>(&change.change);
    if (bits == nullptr || change.group > 1) continue;
    folder_.Write("r.json", R"({"passes": [{"pass": "quantise", "tensors": [")" +
                                file->record.groups[change.group].name + R"("], "bits": )" +
                                std::to_string(bits->bits) + "}]}");
    folder_.Run("convert c --vocab c/vocab.txt --recipe r.json -o m.kgl");
    EXPECT_EQ(change.found.nll, score());
  }
}

TEST_F(SensitivityCommandTest, AnotherRunsFileIsRefused) {
  const std::string whole = Measured();
  folder_.Write("s.json", whole);
  ExpectRefused(folder_.Run(kRun + "s.json --cache 0"), "s.json, line 1: expected this run's");
  ExpectRefused(folder_.Run("sensitivity c --vocab c/vocab.txt --ids c/tokens.txt --bits 7 "
                            "--sparsities 0.3,0.6 -o s.json"),
                "expected this run's");
  // Another text of the same name, with as many tokens.
  folder_.RunShell("cp c/tokens.txt kept; sed 's/[1-9] [0-9]/1 2/' kept > c/tokens.txt");
  ExpectRefused(folder_.Run(kRun + "s.json"), "s.json, line 1: expected this run's");
  folder_.RunShell("cp kept c/tokens.txt; cp c/vocab.txt text.txt; cp c/vocab.txt other.txt");
  // A calibration text and a recipe, on which the loss in floats does not depend.
  folder_.Write("recipe.json", R"({"passes": []})");
  const std::string more = " --calibrate text.txt --recipe recipe.json";
  ASSERT_EQ(folder_.Run(kRun + "more.json" + more).exit_status, 0);
  folder_.Write("recipe.json", R"({ "passes": []})");
  ExpectRefused(folder_.Run(kRun + "more.json" + more), "more.json, line 1: expected this run's");
  EXPECT_EQ(folder_.Read("s.json"), whole);
  folder_.Write("mine.txt", "not a line of it");
  ExpectRefused(folder_.Run(kRun + "mine.txt"), "expected this run's");
  EXPECT_EQ(folder_.Read("mine.txt"), "not a line of it");
}

TEST_F(SensitivityCommandTest, HardTextsGetALineOrTheRightAnswer) {
  folder_.Write("none.txt", "");
  folder_.Write("one.txt", "3");
  folder_.Write("unknown.txt", "qqq qqq qqq qqq qqq\n");
  const std::string options = " --tensors '*.qkv.weight' --bits 4 --sparsities 0.5 -o s.json";
  const std::string run = "sensitivity c --vocab c/vocab.txt";
  ExpectRefused(folder_.Run(run + " --text none.txt" + options), "expected two tokens or more");
  ExpectRefused(folder_.Run(run + " --ids one.txt" + options), "expected two tokens or more");
  EXPECT_EQ(folder_.Run(run + " --text unknown.txt" + options).exit_status, 0);
  EXPECT_EQ(folder_
                .Run(run + " --cache 0 --ids c/tokens.txt --bits 4 --sparsities 0.5 "
                           "--tensors '*.qkv.weight' -o t.json")
                .exit_status,
            0);
  ExpectRefused(folder_.Run(run + " --text absent.txt" + options), "absent.txt");
  ExpectRefused(folder_.Run(run + " --ids one.txt -o /dev/full"), "no regular file");
}

TEST_F(SensitivityCommandTest, AFullDiskIsOneLineAndTheHalfLineIsNotTakenForAWholeOne) {
  const std::string path = folder_.Path("full.json");
  const std::string line = "{\"checkpoint\":\"" + std::string(200, 'x') + "\"}\n";
  std::vector<std::string> lines;
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  {
    auto writer = LineWriter::Open(path, kSensitivityBegin, lines);
    ASSERT_TRUE(writer.ok());
    const struct rlimit full = {300, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
    const Status first = writer->Append(line), second = writer->Append(line);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_TRUE(first.ok());
    EXPECT_EQ(second.code(), KINGLET_IO_ERROR);
    EXPECT_EQ(second.message().find('\n'), std::string::npos);
  }
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(std::filesystem::file_size(path), 300U);
  ASSERT_TRUE(LineWriter::Open(path, kSensitivityBegin, lines).ok());
  EXPECT_EQ(lines.size(), 1U);
  EXPECT_EQ(std::filesystem::file_size(path), line.size());
}

TEST_F(SensitivityCommandTest, ALongTextIsReadAgainForEachRun) {
  folder_.WriteModel("m.kgl", TinyMicronet());
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "the w3 w4 w5\n";
  folder_.Write("long.txt", text);
  const std::shared_ptr<const ModelFile> file = *ModelFile::Open(folder_.Path("m.kgl"));
  const auto ids_of = [&](uint64_t kept) {
    const auto source = OpenTextTokens(folder_.Path("long.txt"), "", file, kept);
    EXPECT_TRUE(source.ok());
    std::vector<uint32_t> ids;
    size_t pieces = 0;
    for (int run = 0; run < 2; ++run) {
      ids.clear();
      pieces = 0;
      const Status status = (*source)([&](std::span<const uint32_t> piece) -> Status {
        ids.insert(ids.end(), piece.begin(), piece.end());
        ++pieces;
        return {};
      });
      EXPECT_TRUE(status.ok());
    }
    return std::pair(ids, pieces);
  };
  const auto [kept, one_piece] = ids_of(kKeptTokens);
  const auto [streamed, pieces] = ids_of(100);
  EXPECT_EQ(one_piece, 1U);
  EXPECT_GT(pieces, 2U);
  EXPECT_EQ(kept, streamed);
  EXPECT_EQ(kept.size(), 100000U);
}

}  // namespace
}  // namespace kinglet::sensitivity_command_test
