// From the bundled checkpoint to numbers on standard output, against the original framework's.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/run_command.h"

namespace kinglet::convert_test {
namespace {

constexpr size_t kTokens = 150;

// Fields of each line of a tab-separated file.
std::vector<std::vector<double>> ReadTable(const std::string& path) {
  std::vector<std::vector<double>> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    rows.emplace_back();
    for (double field = 0; fields >> field;) rows.back().push_back(field);
  }
  return rows;
}

class ConvertTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream tokens(KINGLET_DEMO_DATA "/tokens.txt");
    std::string ids;
    for (uint32_t id = 0; ids_.size() < kTokens && tokens >> id;) ids_.push_back(id);
    ASSERT_EQ(ids_.size(), kTokens);
    folder_.Write("ids.txt", IdText(ids_));
    std::ifstream golden(KINGLET_DEMO_DATA "/golden_f64.tsv");
    std::string rows;
    for (std::string line; std::getline(golden, line);) {
      if (std::stoul(line) < kTokens) rows += line + "\n";
    }
    folder_.Write("golden.tsv", rows);
  }
  // Converts the bundled model to m.kgl.
  Outcome ConvertDemo(const std::string& options) const {
    return folder_.Run("convert " KINGLET_DEMO_DATA " -o m.kgl --vocab " KINGLET_DEMO_DATA
                       "/vocab.txt " +
                       options);
  }
  CommandFolder folder_;
  std::vector<uint32_t> ids_;
};

// A recipe sets for tensors the options that the command line sets for all: the weights are equal.
TEST_F(ConvertTest, ARecipeRoundsByFeedbackAsTheOptionsDo) {
  folder_.Write("text.txt", "= The =\nthe of and , . the of\n");
  const auto recipe = [&](const std::string& name, const std::string& rounding) {
    folder_.Write(name, R"({"passes": [{"pass": "quantise", "bits": 3, "scale_by": "mse")" +
                            rounding +
                            R"(}, {"pass": "calibrate", "bits": 9, "range_by": "percentile", )"
                            R"("text": "text.txt"}]})");
  };
  const auto score = [&](const std::string& options) {
    const Outcome converted = folder_.Run("convert " KINGLET_TEST_DATA
                                          "/micronet-small-fp32 -o m.kgl --vocab " KINGLET_TEST_DATA
                                          "/micronet-small-fp32/vocab.txt " +
                                          options);
    EXPECT_EQ(converted.exit_status, 0) << converted.error;
    const std::string ids = KINGLET_TEST_DATA "/micronet-small-fp32/tokens.txt";
    return folder_.Run("score m.kgl --json --ids " + ids).Json().back()["nll"].get<double>();
  };
  const double by_options = score(
      "--bits 3 --activation-bits 9 --scale-by mse --round-by feedback --calibrate-by "
      "percentile --calibrate text.txt");
  recipe("r.json", R"(, "round_by": "feedback")");
  EXPECT_EQ(score("--recipe r.json"), by_options);
  recipe("near.json", "");
  EXPECT_NE(score("--recipe near.json"), by_options);
}

TEST_F(ConvertTest, TheOriginalsNumbersComeOut) {
  const Outcome converted =
      ConvertDemo("--golden golden.tsv --ids ids.txt --tolerance 1e-6 --json --progress json");
  ASSERT_EQ(converted.exit_status, 0) << converted.error;
  std::istringstream reports(converted.error);
  size_t reported = 0;
  for (std::string line; std::getline(reports, line); ++reported) {
    const auto report = nlohmann::json::parse(line, nullptr, false);
    EXPECT_TRUE(report.is_object() && report["progress"].is_string()) << line;
  }
  EXPECT_GT(reported, 5u);
  const auto summary = converted.Json().at(0);
  EXPECT_EQ(summary["family"], "neurips-micronet");
  EXPECT_EQ(summary["golden_values"], kTokens - 1);
  EXPECT_LT(summary["largest_difference"].get<double>(), 1e-6);
  const uint64_t size = std::filesystem::file_size(folder_.Path("m.kgl"));
  EXPECT_EQ(summary["file_size"], size);
  uint64_t parts = 0;
  for (const auto& [part, bytes] : summary["bytes"].items()) parts += bytes.get<uint64_t>();
  EXPECT_EQ(parts, size);

  const auto scores = folder_.Run("score m.kgl --ids ids.txt --backend ref64 --json").Json();
  ASSERT_EQ(scores.size(), kTokens);
  for (const auto& row : ReadTable(folder_.Path("golden.tsv"))) {
    const auto& line = scores.at(static_cast<size_t>(row.at(0)) - 1);
    EXPECT_EQ(line["pos"], static_cast<uint64_t>(row.at(0)));
    EXPECT_EQ(line["id"], static_cast<uint64_t>(row.at(1)));
    EXPECT_NEAR(line["logprob"].get<double>(), row.at(2), 1e-6);
  }

  const auto predictions =
      folder_.Run("predict m.kgl --ids ids.txt --backend ref64 --top 5 --json").Json();
  ASSERT_EQ(predictions.size(), kTokens);
  size_t compared = 0;
  for (const auto& row : ReadTable(KINGLET_DEMO_DATA "/golden_topk.tsv")) {
    const auto position = static_cast<size_t>(row.at(0));
    const auto rank = static_cast<size_t>(row.at(1));
    if (position > kTokens || rank >= 5) continue;
    const auto& entry = predictions[position - 1]["top"].at(rank);
    EXPECT_EQ(entry["id"], static_cast<uint64_t>(row.at(2))) << position << " " << rank;
    EXPECT_NEAR(entry["logprob"].get<double>(), row.at(3), 1e-6);
    ++compared;
  }
  EXPECT_GT(compared, 0u);

  const Outcome verified = folder_.Run("verify m.kgl --json");
  EXPECT_EQ(verified.exit_status, 0) << verified.error;
  EXPECT_GT(verified.Json().at(0)["golden_values"], 0);
}

TEST_F(ConvertTest, PeopleGetASummary) {
  const Outcome outcome = ConvertDemo("--bits 8 --cache 0");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("codes"), std::string::npos) << outcome.out;
  const auto report = folder_.Run("inspect m.kgl --json").Json().at(0);
  EXPECT_EQ(report["blocks"].size(), 3u);
}

TEST_F(ConvertTest, AFailedConversionLeavesNothing) {
  folder_.Write("wrong.tsv", "1\t10\t-0.25\n");
  folder_.Write("junk.pth", "not a checkpoint");
  EXPECT_EQ(ConvertDemo("--golden wrong.tsv --ids ids.txt").exit_status, 1);
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("m.kgl")));
  for (const char* checkpoint : {"missing.pth", "junk.pth", "/dev/null", "."}) {
    const Outcome outcome = folder_.Run(std::string("convert ") + checkpoint + " -o m.kgl");
    EXPECT_EQ(outcome.exit_status, 1) << checkpoint;
    EXPECT_TRUE(outcome.IsRefusal()) << checkpoint << "\n" << outcome.error << outcome.out;
    EXPECT_FALSE(std::filesystem::exists(folder_.Path("m.kgl")));
  }
}

}  // namespace
}  // namespace kinglet::convert_test
