#include "runtime/stream_text.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "format/utf8.h"
#include "tests/support/model_builder.h"

namespace kinglet::stream_text_test {
namespace {

using Tokens = std::vector<uint32_t>;

std::shared_ptr<const Model> ModelOf(const ModelDraft& draft) {
  const auto bytes = SerialiseModel(draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return *Model::FromBytes(*bytes, {});
}

// A model of these words; the rest of its 23 words have other names.
ModelDraft DraftOf(const std::vector<std::string>& words) {
  ModelDraft draft = TinyMicronet();
  for (size_t i = 0; i < draft.vocabulary.size(); ++i) {
    draft.vocabulary[i] = i < words.size() ? words[i] : "q" + std::to_string(i);
  }
  return draft;
}

std::shared_ptr<const Model> CharacterModel(const std::vector<std::string>& words) {
  ModelDraft draft = DraftOf(words);
  draft.tokenizer = TextTables{false, WordRule{WordRule::Rule::kCharacters}};
  return ModelOf(draft);
}

// The texts that Add returned, with | between them, and < where the text stopped.
std::string Text(const std::shared_ptr<const Model>& model, const Tokens& ids,
                 const std::string& stop = "", const Tokens& before = {}) {
  StreamText text(model, stop);
  for (const uint32_t id : before) text.Skip(id);
  std::string all;
  for (const uint32_t id : ids) {
    all += text.Add(id) + "|";
    if (text.stopped()) return all + text.Finish() + "<";
  }
  return all + text.Finish();
}

TEST(StreamText, WordsHaveSpacesBetweenThemAndLinesEnd) {
  const auto model = ModelOf(DraftOf({"the", "<eos>", "<unk>", "cat"}));
  EXPECT_EQ(Text(model, {0, 3, 2, 1, 0, 3}), "the| cat| <unk>|\n|the| cat|");
  EXPECT_EQ(Text(model, {3}, "", {0}), " cat|");
  EXPECT_EQ(Text(model, {3}, "", {0, 1}), "cat|");
  TinyOptions options;
  options.vocabulary = false;
  EXPECT_EQ(Text(ModelOf(TinyMicronet(options)), {3, 4}), "||");
}

TEST(StreamText, PiecesAreJoinedAsTheModelsTokenizerJoinsThem) {
  ModelDraft draft = DraftOf({"a@@", "b", "<eos>", "c"});
  draft.tokenizer = TextTables{false, MergeTables{}};
  const auto model = ModelOf(draft);
  EXPECT_EQ(Text(model, {0, 1, 3, 0, 2, 0, 1}), "a|b| c| a|\n|a|b|");
  EXPECT_EQ(Text(model, {1}, "", {0}), "b|");
}

TEST(StreamText, StopsInsideTokensToo) {
  const auto model = CharacterModel({"a", "b", "ab", "ba", "aab"});
  EXPECT_EQ(Text(model, {0, 1, 0}, "ab"), "||<");
  EXPECT_EQ(Text(model, {0, 0, 1, 0}, "ab"), "|a||<");
  EXPECT_EQ(Text(model, {1, 3, 1}, "bab"), "|b||<");
  EXPECT_EQ(Text(model, {1, 1, 0, 0}, "bab"), "|b||baa|");
  EXPECT_EQ(Text(model, {3, 4, 1}, "aa"), "b||<");  // the end of one token and part of the next
  EXPECT_EQ(Text(model, {3, 3}, "bab"), "||<");
  EXPECT_EQ(Text(model, {2, 2, 2, 0}, "ababaX"), "||ab||ababa");
  EXPECT_EQ(Text(model, {2, 2}, "a"), "|<");
  EXPECT_EQ(Text(model, {0, 0}, "b"), "a|a|");
  EXPECT_EQ(Text(model, {0, 0, 1}, "", {1}), "a|a|b|");
  EXPECT_EQ(Text(model, {1, 0}, "ab", {0}), "b||a");  // the prompt stops nothing
}

TEST(StreamText, ALineMayBeTheStop) {
  const auto model = ModelOf(DraftOf({"the", "<eos>", "cat"}));
  EXPECT_EQ(Text(model, {0, 2, 1, 0}, "\n"), "the| cat||<");
  EXPECT_EQ(Text(model, {0, 2, 0}, "t t"), "the| ca||<");
}

// Single bytes, as models of bytes have them.
TEST(StreamText, NothingEndsInsideACharacter) {
  const auto model = CharacterModel({"\xE2", "\x82", "\xAC", "a", "\xC3", "\xA9", "\xF0"});
  EXPECT_EQ(Text(model, {0, 1, 2, 3, 4, 5}), "||\xE2\x82\xAC|a||\xC3\xA9|");
  EXPECT_EQ(Text(model, {0, 1}), "||\xE2\x82");  // the stream ended inside one
  EXPECT_EQ(Text(model, {0, 3}),
            "|\xE2"
            "a|");  // no unfinished character
  EXPECT_EQ(Text(model, {1, 2, 2, 2}), "\x82|\xAC|\xAC|\xAC|");
  EXPECT_EQ(Text(model, {3, 4, 5, 3}, "\xC3\xA9"), "a|||<");
  EXPECT_EQ(Text(model, {4, 5, 0, 1, 2}, "\xA9\xE2\x82\xAC"), "|\xC3||||<");
}

TEST(StreamText, WhatWasPrintedIsTheTextBeforeTheStop) {
  const std::vector<std::string> words = {"a",    "b",    "ab",  "aab", "\xE2\x82\xAC",
                                          "\xE2", "\x82", "\xAC"};
  const auto model = CharacterModel(words);
  TestRandom random(5);
  for (int round = 0; round < 3000; ++round) {
    std::string stop, whole, printed;
    for (uint32_t i = random.Below(4) + 1; i > 0; --i) stop += words[random.Below(5)];
    StreamText text(model, stop);
    for (uint32_t i = 0; i < 20 && !text.stopped(); ++i) {
      const uint32_t id = random.Below(static_cast<uint32_t>(words.size()));
      whole += words[id];
      printed += text.Add(id);
      if (IsUtf8(whole)) {
        ASSERT_TRUE(IsUtf8(printed));
      }
    }
    ASSERT_EQ(text.stopped(), whole.find(stop) != std::string::npos);
    ASSERT_EQ(printed + text.Finish(), whole.substr(0, whole.find(stop)));
  }
}

}  // namespace
}  // namespace kinglet::stream_text_test
