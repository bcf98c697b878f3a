// Equality with the original libraries' segmentations: those of tests/data/segmentations, of the
// folder "text" next to the one that KINGLET_CHECKPOINTS names, and of its bert-* folders.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converters/tokenizers/tokenizer_file.h"
#include "runtime/text/tokenizer.h"

namespace kinglet::golden_segmentations_test {
namespace {

using Json = nlohmann::json;

std::vector<std::string> TextLines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

std::string InputOf(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.contains("input")) return value["input"].get<std::string>();
  const auto digits = value["hex"].get<std::string>();
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoul(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::shared_ptr<const Tokenizer> Open(const TokenizerChoice& choice) {
  auto tables = ReadTokenizer(choice);
  EXPECT_TRUE(tables.ok()) << tables.status().message();
  // Through the bytes of a model file.
  tables = ReadTextTables(*PackTextTables(*tables));
  EXPECT_TRUE(tables.ok()) << tables.status().message();
  return *Tokenizer::Create(*tables);
}

Json IdsOf(const TokenizedText& tokenized) {
  Json ids = Json::array();
  for (const TokenizedText::Token& token : tokenized.tokens) ids.push_back(token.id);
  return ids;
}

Json PiecesOf(const TokenizedText& tokenized) {
  Json pieces = Json::array();
  for (const TokenizedText::Token& token : tokenized.tokens)
    pieces.push_back(std::string(tokenized.Piece(token)));
  return pieces;
}

Json RangesOf(const TokenizedText& tokenized) {
  Json ranges = Json::array();
  for (const TokenizedText::Token& token : tokenized.tokens)
    ranges.push_back({token.begin, token.end});
  return ranges;
}

template <class Token>
std::string Joined(const Tokenizer& tokenizer, const Json& tokens) {
  TextDecoder decoder(tokenizer);
  std::string text;
  for (const Json& token : tokens) {
    text += decoder.Add(token.get<Token>());
    EXPECT_NO_THROW((void)Json(text).dump());  // always complete characters
  }
  return text + decoder.Finish();
}

namespace fs = std::filesystem;

class GoldenSegmentations : public testing::TestWithParam<std::string> {
 protected:
  const std::string text_ = GetParam();
};

std::vector<std::string> Folders() {
  std::vector<std::string> folders = {KINGLET_TEST_DATA "/segmentations/"};
  if (const char* place = std::getenv("KINGLET_CHECKPOINTS")) {
    const fs::path text = fs::path(place).lexically_normal() / ".." / "text/";
    if (fs::exists(text)) folders.push_back(text.string());
  }
  return folders;
}

TEST_P(GoldenSegmentations, SentencePiece) {
  for (const auto& entry : fs::directory_iterator(text_)) {
    if (entry.path().extension() != ".model") continue;
    const std::string model = entry.path().stem().string();
    const auto tokenizer = Open({text_ + model + ".model", false, {}, 0});
    const auto spans = TextLines(text_ + model + "_spans.jsonl");
    for (const std::string part : {"", "_invalid"}) {
      if (!fs::exists(text_ + model + part + ".jsonl")) continue;
      const auto inputs = TextLines(text_ + (part.empty() ? "input.jsonl" : "invalid.jsonl"));
      const auto golden = TextLines(text_ + model + part + ".jsonl");
      ASSERT_EQ(inputs.size(), golden.size());
      for (size_t i = 0; i < inputs.size(); ++i) {
        const Json wanted = Json::parse(golden[i]);
        const auto tokenized = tokenizer->Encode(InputOf(Json::parse(inputs[i])));
        ASSERT_TRUE(tokenized.ok());
        ASSERT_EQ(IdsOf(*tokenized), wanted["ids"]) << model << part << " line " << i + 1;
        ASSERT_EQ(PiecesOf(*tokenized), wanted["pieces"]) << model << part << " line " << i + 1;
        if (part.empty() && i < spans.size()) {
          ASSERT_EQ(RangesOf(*tokenized), Json::parse(spans[i])) << model << " line " << i + 1;
        }
        ASSERT_EQ(Joined<uint32_t>(*tokenizer, wanted["ids"]), wanted["text"]);
        ASSERT_EQ(Joined<std::string>(*tokenizer, wanted["pieces"]),
                  wanted.value("text_from_pieces", wanted["text"].get<std::string>()));
      }
    }
    for (const std::string& line : TextLines(text_ + model + "_decode.jsonl")) {
      const Json wanted = Json::parse(line);
      ASSERT_EQ(Joined<uint32_t>(*tokenizer, wanted["ids"]), wanted["text"]);
    }
  }
  if (!fs::exists(text_ + "unigram500_ties.jsonl")) return;
  const auto unigram = Open({text_ + "unigram500.model", false, {}, 0});
  for (const std::string& line : TextLines(text_ + "unigram500_ties.jsonl")) {
    const Json wanted = Json::parse(line);
    ASSERT_EQ(IdsOf(*unigram->Encode(InputOf(wanted))), wanted["ids"]);
  }
}

TEST_P(GoldenSegmentations, BytePairCodes) {
  const auto plain = Open({text_ + "codes.bpe", false, {}, 0});
  const auto known = Open({text_ + "codes.bpe", false, text_ + "codes.bpe.vocab", 50});
  const auto inputs = TextLines(text_ + "input.jsonl"), golden = TextLines(text_ + "codes.jsonl");
  ASSERT_EQ(inputs.size(), golden.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Json wanted = Json::parse(golden[i]);
    const std::string text = InputOf(Json::parse(inputs[i]));
    ASSERT_EQ(PiecesOf(*plain->Encode(text)), wanted["tokens"]) << "line " << i + 1;
    ASSERT_EQ(PiecesOf(*known->Encode(text)), wanted["tokens_vocab"]) << "line " << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, GoldenSegmentations, testing::ValuesIn(Folders()),
                         [](const auto& tested) {
                           return tested.index == 0 ? "TestData" : "Text";
                         });

// Ids, pieces and ranges of tokenizers 0.23.
TEST(GoldenBytePieces, Original) {
  const std::string folder = KINGLET_TEST_DATA "/gpt2/with-tokenizer/";
  const auto tokenizer = Open({folder + "tokenizer.json", false, {}, 0});
  const auto inputs = TextLines(KINGLET_TEST_DATA "/segmentations/input.jsonl");
  const auto golden = TextLines(folder + "segmentations.jsonl");
  ASSERT_EQ(inputs.size(), golden.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Json wanted = Json::parse(golden[i]);
    const std::string text = InputOf(Json::parse(inputs[i]));
    const auto tokenized = tokenizer->Encode(text);
    ASSERT_TRUE(tokenized.ok());
    ASSERT_EQ(IdsOf(*tokenized), wanted["ids"]) << "line " << i + 1;
    ASSERT_EQ(PiecesOf(*tokenized), wanted["pieces"]) << "line " << i + 1;
    ASSERT_EQ(Joined<uint32_t>(*tokenizer, wanted["ids"]), text);
    for (const TokenizedText::Token& token : tokenized->tokens) {
      EXPECT_EQ(tokenizer->Spell(token.id).text, text.substr(token.begin, token.end - token.begin));
    }
  }
}

TEST(GoldenWordPieces, Original) {
  const char* place = std::getenv("KINGLET_CHECKPOINTS");
  if (place == nullptr) GTEST_SKIP() << "KINGLET_CHECKPOINTS names no folder of checkpoints";
  const auto numbers = [](const auto& values) {
    std::string text;
    for (const uint32_t value : values) text += (text.empty() ? "" : " ") + std::to_string(value);
    return text;
  };
  for (const std::string name : {"bert-mlm", "bert-classifier"}) {
    const std::string folder = std::string(place) + "/" + name + "/";
    const auto tokenizer = Open({folder + "vocab.txt", false, {}, 0});
    const auto texts = TextLines(folder + "text.txt"), tokens = TextLines(folder + "tokens.txt"),
               segments = TextLines(folder + "segments.txt");
    ASSERT_EQ(texts.size(), tokens.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      if (texts[i] == "-") continue;
      const auto tokenized = tokenizer->Encode(texts[i]);
      ASSERT_TRUE(tokenized.ok());
      std::vector<uint32_t> ids;
      for (const TokenizedText::Token& token : tokenized->tokens) ids.push_back(token.id);
      ASSERT_EQ(numbers(ids), tokens[i]) << name << " line " << i + 1;
      ASSERT_EQ(numbers(tokenized->segments), segments[i]) << name << " line " << i + 1;
    }
  }
}

}  // namespace
}  // namespace kinglet::golden_segmentations_test
