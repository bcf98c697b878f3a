// The command on the backend `onednn`: goldens, lanes and threads, translations, and messages where
// the library is missing or has no memory.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "tests/support/translation_builder.h"
#include "tests/tools/run_command.h"

namespace kinglet::onednn_test {
namespace {

#ifndef KINGLET_PRETENDED_ONEDNN
#define KINGLET_PRETENDED_ONEDNN ""  // a build without the backend: all tests are skipped
#endif

constexpr double kTolerance = 1e-4;
const std::string kDemo = KINGLET_DEMO_DATA;

class OnednnTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto found = FindBackend("onednn"); !found.ok()) {
      GTEST_SKIP() << found.status().message();
    }
    folder_.WriteModel("m.kgl", TinyMicronet({.cache_capacity = 5,
                                              .vocabulary_size = 200,
                                              .width = 64,
                                              .heads = 4,
                                              .key_size = 16,
                                              .value_size = 16,
                                              .inner = 130}));
    std::string ids;
    for (int i = 0; i < 60; ++i) ids += std::to_string(i * i * 7 % 200) + " ";
    folder_.Write("ids.txt", ids);
  }
  // The tokens' lines of `score`, without the summary.
  std::vector<nlohmann::ordered_json> Tokens(const std::string& arguments,
                                             const std::string& environment = "") const {
    const Outcome outcome =
        folder_.RunShell(environment + " kinglet score " + arguments + " --json --hex");
    EXPECT_EQ(outcome.exit_status, 0) << arguments << ": " << outcome.error;
    auto lines = outcome.Json();
    if (!lines.empty()) lines.pop_back();
    return lines;
  }
  void ExpectNear(const std::vector<nlohmann::ordered_json>& found,
                  const std::vector<nlohmann::ordered_json>& expected,
                  const std::string& what) const {
    ASSERT_EQ(found.size(), expected.size()) << what;
    ASSERT_GT(found.size(), 4u) << what;
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i]["logprob"].get<double>(), expected[i]["logprob"].get<double>(),
                  kTolerance)
          << what << ", " << found[i].dump();
    }
  }
  CommandFolder folder_;
};

TEST_F(OnednnTest, TheDemoModelsGoldensWithLanes) {
  ASSERT_EQ(folder_.Run("convert " + kDemo + " -o demo.kgl").exit_status, 0);
  const auto tokens =
      Tokens("demo.kgl --backend onednn --replicas 8 --threads 2 --ids " + kDemo + "/tokens.txt");
  std::ifstream golden(kDemo + "/golden_f64.tsv");
  size_t position = 0, id = 0, values = 0;
  for (double expected = 0; golden >> position >> id >> expected; ++values) {
    ASSERT_LT(values, tokens.size());
    ASSERT_EQ(tokens[values]["pos"], position);
    ASSERT_EQ(tokens[values]["id"], id);
    ASSERT_NEAR(tokens[values]["logprob"].get<double>(), expected, kTolerance) << position;
  }
  EXPECT_EQ(values, tokens.size());
  EXPECT_GT(values, 1000u);
}

TEST_F(OnednnTest, LanesAndThreadsGiveTheSameBitsFromEightOnAndAreNearBelow) {
  const std::string score = "m.kgl --ids ids.txt --backend ";
  const auto eight = Tokens(score + "onednn --replicas 8");
  EXPECT_EQ(Tokens(score + "onednn --replicas 64"), eight);
  EXPECT_EQ(Tokens(score + "onednn --replicas 21 --threads 2"), eight);
  EXPECT_EQ(Tokens(score + "onednn --replicas 8", "ONEDNN_DEFAULT_FPMATH_MODE=BF16"), eight);
  const auto reference = Tokens(score + "ref");
  EXPECT_NE(eight, reference);
  ExpectNear(eight, reference, "8 lanes");
  EXPECT_EQ(Tokens(score + "onednn --replicas 7"), reference);
  EXPECT_EQ(Tokens(score + "cpu --replicas 64 --threads 2"), reference);
}

TEST_F(OnednnTest, TheProtocolSaysHowNearAndWhichLibrary) {
  const auto protocol = [&](const std::string& arguments) {
    return folder_.Run("score m.kgl --ids ids.txt --json " + arguments)
        .Json()
        .back()["protocol"]
        .get<std::string>();
  };
  EXPECT_NE(protocol("--backend onednn").find("; onednn, within 0.0001 of ref, oneDNN "),
            std::string::npos);
  EXPECT_EQ(protocol("--backend cpu").find("onednn"), std::string::npos);
}

TEST_F(OnednnTest, TranslationsAreThoseOfTheReference) {
  TinyTranslationOptions options;
  options.encoder_width = options.decoder_width = 64;
  options.encoder_heads = options.decoder_heads = 4;
  options.key_size = options.value_size = 16;
  options.inner = 130;
  options.source_window = 90;
  folder_.WriteModel("t.kgl", TinyTranslation(options));
  std::string source, pairs;
  for (const int length : {1, 2, 9, 90}) {
    std::string ids;
    for (int i = 0; i < length; ++i) ids += std::to_string((i * i + length) % 13) + " ";
    source += ids + "\n";
    pairs += ids + "||| 2 5 9 4 11 3\n";
  }
  folder_.Write("source.txt", source);
  folder_.Write("pairs.txt", pairs);
  const auto reference = Tokens("t.kgl --pairs pairs.txt --backend ref");
  for (const std::string lanes : {"1", "2", "8 --threads 2"}) {
    const auto found = Tokens("t.kgl --pairs pairs.txt --backend onednn --lanes " + lanes);
    ExpectNear(found, reference, lanes + " lanes");
    EXPECT_NE(found, reference) << "the library took no part";
    EXPECT_EQ(Tokens("t.kgl --pairs pairs.txt --backend cpu --lanes " + lanes), reference);
  }
  const auto translate = [&](const std::string& backend) {
    return folder_.Run("translate t.kgl --ids source.txt --beam 3 --json --backend " + backend)
        .Json();
  };
  const auto expected = translate("ref"), found = translate("onednn");
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i]["target"], expected[i]["target"]);
    EXPECT_NEAR(found[i]["logprob"].get<double>(), expected[i]["logprob"].get<double>(),
                kTolerance);
  }
}

TEST_F(OnednnTest, AMissingLibraryIsOneLineAndNoOtherBackendsMatter) {
  const Outcome missing = folder_.RunShell(
      "KINGLET_ONEDNN=./none.so kinglet score m.kgl --ids ids.txt --backend onednn");
  EXPECT_EQ(missing.exit_status, 1);
  EXPECT_TRUE(missing.IsRefusal()) << missing.error;
  EXPECT_NE(missing.error.find("install libdnnl2"), std::string::npos) << missing.error;
  EXPECT_EQ(
      folder_.RunShell("KINGLET_ONEDNN=./none.so kinglet score m.kgl --ids ids.txt").exit_status,
      0);
  const Outcome version = folder_.RunShell("KINGLET_ONEDNN=./none.so kinglet --version");
  EXPECT_EQ(version.exit_status, 0);
  EXPECT_NE(version.out.find("library: onednn (not available: "), std::string::npos) << version.out;
  EXPECT_NE(folder_.Run("--version").out.find("library: onednn (oneDNN "), std::string::npos);
}

// A library that fails after N products: while the model is loaded, in a step, in a query.
TEST_F(OnednnTest, ALibraryWithoutMemoryIsOneLine) {
  const auto score = [&](int products) {
    return folder_.RunShell("KINGLET_PRODUCTS_LEFT=" + std::to_string(products) +
                            " KINGLET_ONEDNN='" KINGLET_PRETENDED_ONEDNN
                            "' kinglet score m.kgl --ids ids.txt --backend onednn --replicas 8");
  };
  const auto fails = [&](int products) {
    const Outcome outcome = score(products);
    if (outcome.exit_status == 0) return false;
    EXPECT_EQ(outcome.exit_status, 1) << products;
    EXPECT_TRUE(outcome.error.starts_with("kinglet: ")) << outcome.error;
    EXPECT_EQ(outcome.error.find('\n'), outcome.error.size() - 1) << outcome.error;
    EXPECT_NE(outcome.error.find("memory"), std::string::npos) << outcome.error;
    return true;
  };
  int least = 0, enough = 1;
  while (fails(enough)) {
    least = enough;
    enough *= 2;
    ASSERT_LT(enough, 1 << 20);
  }
  ASSERT_TRUE(fails(0));
  // The last product of all is in a query or a step.
  while (enough - least > 1) {
    const int middle = (least + enough) / 2;
    (fails(middle) ? least : enough) = middle;
  }
  EXPECT_NE(score(least).error.find("position"), std::string::npos);
}

// The float32 models of other people's frameworks, in the folder that the environment variable
// KINGLET_CHECKPOINTS names: near to ref64, which has their goldens.
TEST_F(OnednnTest, ModelsOfOtherFrameworksAreNear) {
  const char* place = std::getenv("KINGLET_CHECKPOINTS");
  if (place == nullptr) GTEST_SKIP() << "KINGLET_CHECKPOINTS names no folder of checkpoints";
  for (const std::string name :
       {"awd-lstm", "pytorch-examples", "transformer-xl", "fairseq-adaptive", "fairseq-char",
        "icefall-rnn-lm", "icefall-transformer-lm", "espnet-rnn-lm", "espnet-transformer-lm",
        "speechbrain-rnn-lm", "speechbrain-transformer-lm", "micronet-small-fp32",
        "micronet-wikitext2"}) {
    const std::string from = std::string(place) + "/" + name;
    ASSERT_EQ(folder_.Run("convert " + from + " -o other.kgl").exit_status, 0) << name;
    std::ifstream all(from + "/tokens.txt");
    std::string some;
    int count = 0;
    for (std::string id; count < 150 && all >> id; ++count) some += id + " ";
    folder_.Write("some.txt", some);
    ExpectNear(Tokens("other.kgl --ids some.txt --backend onednn --replicas 8"),
               Tokens("other.kgl --ids some.txt --backend ref64"), name);
  }
}

}  // namespace
}  // namespace kinglet::onednn_test
