#include "tools/json_lines.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace kinglet::json_lines_test {
namespace {

TEST(JsonLines, KeepsTheOrderAndNestsAsTold) {
  JsonLine line;
  line.Key("pos").Integer(1).Key("top").BeginArray();
  line.BeginObject().Key("id").Integer(8).EndObject();
  line.BeginObject().EndObject().BeginArray().EndArray().Null().Boolean(false).EndArray();
  line.Key("end").Text("{[:");
  EXPECT_EQ(line.Finish(), "{\"pos\":1,\"top\":[{\"id\":8},{},[],null,false],\"end\":\"{[:\"}\n");
  EXPECT_EQ(line.Finish(), "{}\n");
}

TEST(JsonLines, LossesHaveTheirPerplexity) {
  JsonLine line;
  EXPECT_EQ(line.Loss(0).Finish(), "{\"nll\":0,\"ppl\":1}\n");
  EXPECT_EQ(line.Loss(std::numeric_limits<double>::infinity()).Finish(),
            "{\"nll\":null,\"ppl\":null,\"impossible\":true}\n");
  EXPECT_EQ(line.Loss(std::numeric_limits<double>::quiet_NaN()).Finish(),
            "{\"nll\":null,\"ppl\":null}\n");
}

// The examples of the command's contract.
TEST(JsonLines, HasNineDigits) {
  JsonLine line;
  line.Key("logprob").Number(-3.251034180125).Key("nll").Number(3.9033718912);
  EXPECT_EQ(line.Finish(), "{\"logprob\":-3.25103418,\"nll\":3.90337189}\n");
}

TEST(JsonLines, NumbersComeBackExactly) {
  uint64_t random = 1;
  for (int i = 0; i < 2000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const double number = std::bit_cast<double>(random);
    const float small = std::bit_cast<float>(static_cast<uint32_t>(random >> 32));
    if (!std::isfinite(number) || !std::isfinite(small)) continue;
    JsonLine exact(17), nine(9);
    exact.Key("x").Number(number);
    nine.Key("x").Number(small);
    EXPECT_EQ(nlohmann::json::parse(exact.Finish())["x"].get<double>(), number);
    EXPECT_EQ(static_cast<float>(nlohmann::json::parse(nine.Finish())["x"].get<double>()), small);
  }
}

TEST(JsonLines, WritesNumbersThatJsonHas) {
  JsonLine line;
  line.Key("a").Number(std::numeric_limits<double>::infinity());
  line.Key("b").Number(std::numeric_limits<double>::quiet_NaN());
  line.Key("c").Number(-0.0).Key("d").Number(1e-300);
  line.Key("e").Integer(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(line.Finish(),
            "{\"a\":null,\"b\":null,\"c\":0,\"d\":1e-300,\"e\":18446744073709551615}\n");
}

TEST(JsonLines, AnImpossibleWordIsNullAndSaysSo) {
  JsonLine line;
  line.LogProbability(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(line.Finish(), "{\"logprob\":null,\"impossible\":true}\n");
  line.LogProbability(-1.5);
  EXPECT_EQ(line.Finish(), "{\"logprob\":-1.5}\n");
}

TEST(JsonLines, EscapesWhatJsonForbids) {
  JsonLine line;
  const std::string text("quote\" slash\\ tab\t null\0 newline\n", 33);
  line.Key("text").Text(text);
  EXPECT_EQ(nlohmann::json::parse(line.Finish())["text"].get<std::string>(), text);
}

TEST(JsonLines, Utf8TokensStayThemselves) {
  JsonLine line;
  line.Token("caf\xC3\xA9");
  EXPECT_EQ(line.Finish(), "{\"token\":\"caf\xC3\xA9\"}\n");
}

TEST(JsonLines, OtherTokensAreEscapedBytewise) {
  JsonLine line;
  line.Token("caf\xE9 \xC3\xA9");
  EXPECT_EQ(line.Finish(), "{\"token\":\"caf\\u00e9 \\u00c3\\u00a9\",\"bytes\":true}\n");
}

TEST(JsonLines, UnknownWordsKeepTheirSpelling) {
  EXPECT_EQ(JsonLine().Token("<unk>", "Kinglet").Finish(),
            "{\"token\":\"<unk>\",\"text\":\"Kinglet\"}\n");
  EXPECT_EQ(JsonLine().Token("<unk>", "\xFF").Finish(),
            "{\"token\":\"<unk>\",\"text\":\"\\u00ff\",\"bytes\":true}\n");
}

}  // namespace
}  // namespace kinglet::json_lines_test
