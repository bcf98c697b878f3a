#include "format/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/model_builder.h"

namespace kinglet::vocabulary_test {
namespace {

Result<Vocabulary> Open(const std::vector<std::string>& words, const VocabularySegments& segments) {
  return Vocabulary::FromSegments(static_cast<uint32_t>(words.size()), segments.words,
                                  segments.ranks);
}

void ExpectRoundTrip(const std::vector<std::string>& words) {
  const Result<VocabularySegments> segments = Vocabulary::Pack(words);
  ASSERT_TRUE(segments.ok()) << segments.status().message();
  const Result<Vocabulary> vocabulary = Open(words, *segments);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  ASSERT_EQ(vocabulary->size(), words.size());
  for (uint32_t id = 0; id < words.size(); ++id) {
    ASSERT_EQ(vocabulary->Word(id), words[id]);
    ASSERT_EQ(vocabulary->Find(words[id]), id) << words[id];
  }
}

std::vector<std::string> RandomWords(uint64_t seed, size_t count, uint32_t letters,
                                     uint32_t longest) {
  TestRandom random(seed);
  std::set<std::string> seen;
  std::vector<std::string> words;
  while (words.size() < count) {
    std::string word;
    const uint32_t length = 1 + random.Below(longest);
    for (uint32_t i = 0; i < length; ++i) {
      // From the top of the byte range down: signed comparison would sort these wrong.
      word += static_cast<char>(255 - random.Below(letters) * 37);
    }
    if (seen.insert(word).second) words.push_back(word);
  }
  return words;
}

TEST(VocabularyTest, FindsEveryWordBothWays) {
  ExpectRoundTrip({"one"});
  ExpectRoundTrip({"b", "a"});
  ExpectRoundTrip(
      {"the", "<eos>", "<unk>", "then", "th", "t", "naïve", "日本", std::string(1, '\0')});
  for (size_t count : {31, 32, 33, 64, 65, 1000}) ExpectRoundTrip(RandomWords(count, count, 3, 9));
  ExpectRoundTrip(RandomWords(7, 200, 2, 40));
}

TEST(VocabularyTest, LongWordsAndLongPrefixes) {
  std::vector<std::string> words;
  // Lengths around those at which the stored form changes.
  for (size_t length : {1, 14, 15, 16, 17, 30, 31, 142, 143, 144, 16398, 16399, 16400, 65535}) {
    words.push_back(std::string(length, 'x'));
    if (length > 1) words.push_back(std::string(length - 1, 'x') + "y");
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  ExpectRoundTrip(words);
}

// The memory to decode all words is proportional to the file.
TEST(VocabularyTest, AllWordsAreAtMost32TimesTheirSegment) {
  std::vector<std::string> words;
  for (int i = 0; i < 200; ++i) words.push_back(std::string(60000, 'x') + std::to_string(1000 + i));
  const auto packed = *Vocabulary::Pack(words);
  const auto read = Vocabulary::FromSegments(200, packed.words, packed.ranks);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->word_bytes(), 200 * 60004u);
  EXPECT_LE(read->word_bytes(), 32 * packed.words.size());
}

TEST(VocabularyTest, FindsTheWordsWithAPrefix) {
  for (const size_t count : {1, 31, 32, 33, 64, 300}) {
    std::vector<std::string> words = RandomWords(count, count, 3, 5);
    if (count > 1) words.back() = std::string(6, '\xFF');  // nothing is above its prefixes
    const Result<VocabularySegments> segments = Vocabulary::Pack(words);
    const Result<Vocabulary> vocabulary = Open(words, *segments);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
    std::vector<std::string> prefixes = {
        "", "\xFF", "\xFF\xFF", "\xFF\xFF\xFF", "a", std::string(1, '\0')};
    for (const std::string& word : words) {
      for (const size_t length : {size_t{1}, size_t{2}, word.size()}) {
        prefixes.push_back(word.substr(0, length));
      }
      prefixes.push_back(word + '\0');
    }
    for (const std::string& prefix : prefixes) {
      std::map<std::string, uint32_t> expected;
      for (uint32_t id = 0; id < words.size(); ++id) {
        if (words[id].starts_with(prefix)) expected[words[id]] = id;
      }
      const auto ids = vocabulary->WithPrefix(prefix);
      ASSERT_TRUE(std::equal(ids.begin(), ids.end(), expected.begin(), expected.end(),
                             [](uint32_t id, const auto& word) { return id == word.second; }));
      std::map<std::string, uint32_t> read;
      vocabulary->ForEachWithPrefix(
          prefix, [&read](uint32_t id, std::string_view word) { read[std::string(word)] = id; });
      ASSERT_EQ(read, expected);
    }
  }
}

TEST(VocabularyTest, WordsThatAreNotThereAreNotFound) {
  const std::vector<std::string> words = RandomWords(11, 500, 3, 6);
  const Result<VocabularySegments> segments = Vocabulary::Pack(words);
  const Result<Vocabulary> vocabulary = Open(words, *segments);
  ASSERT_TRUE(vocabulary.ok());
  std::map<std::string, uint32_t> expected;
  for (uint32_t id = 0; id < words.size(); ++id) expected[words[id]] = id;
  for (const std::string& query : RandomWords(12, 700, 4, 6)) {
    const auto known = expected.find(query);
    const std::optional<uint32_t> found = vocabulary->Find(query);
    EXPECT_EQ(found.has_value(), known != expected.end());
    if (found.has_value() && known != expected.end()) {
      EXPECT_EQ(*found, known->second);
    }
  }
  EXPECT_FALSE(vocabulary->Find("").has_value());
  EXPECT_FALSE(vocabulary->Find(std::string(100000, 'z')).has_value());
}

TEST(VocabularyTest, StoresTheDocumentedBytes) {
  // Sorted: "car" (id 1), "cart" (id 2), "dog" (id 0).
  const Result<VocabularySegments> segments =
      Vocabulary::Pack(std::vector<std::string>{"dog", "car", "cart"});
  ASSERT_TRUE(segments.ok());
  const std::string expected = {0x02, 'c', 'a', 'r', 0x30, 't', 0x02, 'd', 'o', 'g'};
  ASSERT_EQ(segments->words.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(static_cast<char>(segments->words[i]), expected[i]) << i;
  }
  // Ranks 2, 0, 1 in two bits each: 01 00 10.
  ASSERT_EQ(segments->ranks.size(), 1u);
  EXPECT_EQ(static_cast<int>(segments->ranks[0]), 0b010010);
}

TEST(VocabularyTest, PackNamesWhatItRefuses) {
  const auto refusal = [](const std::vector<std::string>& words) {
    return Vocabulary::Pack(words).status().message();
  };
  EXPECT_EQ(refusal({"a", "b", "a"}),
            "vocabulary: word 2: expected a word of its own, found \"a\" again, as in word 0");
  EXPECT_EQ(refusal({"a", ""}), "vocabulary: word 1: expected 1 to 65535 bytes, found 0 bytes");
  EXPECT_EQ(refusal({std::string(65536, 'a')}),
            "vocabulary: word 0: expected 1 to 65535 bytes, found 65536 bytes");
}

std::vector<std::byte> Bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(VocabularyTest, RefusesHostileWords) {
  const std::vector<std::byte> ranks = {std::byte{0b10}};  // 0, 1
  const auto message = [&](const std::string& words) {
    const auto bytes = Bytes(words);
    return Vocabulary::FromSegments(2, bytes, ranks).status().message();
  };
  const auto text = [](std::initializer_list<int> values) {
    std::string out;
    for (int value : values) out += static_cast<char>(value);
    return out;
  };
  EXPECT_EQ(message(text({0x00, 'a', 0x00, 'b'})), "");
  // Words that are not sorted, repeated, or stored with a shared prefix that is not the longest.
  EXPECT_NE(message(text({0x00, 'b', 0x00, 'a'})), "");
  EXPECT_NE(message(text({0x00, 'a', 0x00, 'a'})), "");
  EXPECT_NE(message(text({0x00, 'a', 0x01, 'a', 'b'})), "");
  // 0x80 sorts above 'a' although it is negative as a signed char.
  EXPECT_EQ(message(text({0x00, 'a', 0x00, 0x80})), "");
  EXPECT_NE(message(text({0x00, 0x80, 0x00, 'a'})), "");
  // A prefix longer than the word before; a prefix at the start of a bucket.
  EXPECT_NE(message(text({0x00, 'a', 0x20, 'b'})), "");
  EXPECT_NE(message(text({0x10, 'a', 0x00, 'b'})), "");
  // Bytes missing, bytes left over, a word missing.
  EXPECT_NE(message(text({0x00, 'a', 0x01, 'b'})), "");
  EXPECT_NE(message(text({0x00, 'a', 0x00, 'b', 'c'})), "");
  EXPECT_NE(message(text({0x02, 'a', 'b', 'c'})), "");
  // A length that does not end, is too long, or is not in its shortest form.
  EXPECT_NE(message(text({0x00, 'a', 0x0F, 0x80, 0x80, 0x80, 0x80})), "");
  EXPECT_NE(message(text({0x00, 'a', 0x0F, 0xFF, 0xFF, 0x03})), "");
  EXPECT_NE(message(text({0x00, 'a', 0x0F, 0x80, 0x00}) + std::string(16, 'b')), "");
  EXPECT_EQ(message(text({0x00, 'a', 0x0F, 0x00}) + std::string(16, 'b')), "");
  EXPECT_NE(message(text({0x00, 'a', 0xF0, 0x80})), "");
}

TEST(VocabularyTest, RefusesHostileRanksAndSizes) {
  const auto words = Bytes({0, 'a', 0, 'b', 0, 'c'});
  const auto status = [&](uint32_t size, std::vector<int> rank_bytes) {
    std::vector<std::byte> ranks;
    for (int byte : rank_bytes) ranks.push_back(static_cast<std::byte>(byte));
    return Vocabulary::FromSegments(size, words, ranks).status();
  };
  EXPECT_TRUE(status(3, {0b100100}).ok());
  EXPECT_EQ(status(3, {0b100101}).message(),
            "vocabulary: ranks, id 1: expected a rank below 3 of its own, found 1");
  EXPECT_EQ(status(3, {0b110100}).message(),
            "vocabulary: ranks, id 2: expected a rank below 3 of its own, found 3");
  EXPECT_FALSE(status(3, {0b1100100}).ok()) << "bits after the last rank";
  EXPECT_FALSE(status(3, {}).ok());
  EXPECT_FALSE(status(3, {0b100100, 0}).ok());
  EXPECT_FALSE(status(2, {0b10}).ok()) << "a word too many";
  EXPECT_FALSE(status(0, {}).ok());
  // Refused before anything of that size is allocated.
  EXPECT_EQ(status(0xFFFFFFFF, {0}).code(), KINGLET_INVALID_MODEL);
  EXPECT_EQ(status(4, {0}).message(),
            "vocabulary: size: expected 1 to 3 words in 6 bytes, found 4");
}

TEST(VocabularyTest, SurvivesRandomBytes) {
  const std::vector<std::string> words = RandomWords(21, 100, 3, 8);
  const Result<VocabularySegments> segments = Vocabulary::Pack(words);
  ASSERT_TRUE(segments.ok());
  TestRandom random(22);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    VocabularySegments changed = *segments;
    for (uint32_t edits = 1 + random.Below(3); edits > 0; --edits) {
      auto& part = random.Below(4) == 0 ? changed.ranks : changed.words;
      part[random.Below(part.size())] = static_cast<std::byte>(random.Next());
    }
    if (random.Below(4) == 0) changed.words.resize(random.Below(changed.words.size() + 1));
    changed.words.shrink_to_fit();
    const Result<Vocabulary> vocabulary = Open(words, changed);
    if (!vocabulary.ok()) continue;
    ++accepted;
    for (uint32_t id = 0; id < vocabulary->size(); ++id) {
      ASSERT_EQ(vocabulary->Find(vocabulary->Word(id)), id);
    }
  }
  EXPECT_GT(accepted, 0) << "a changed letter may still be in order";
}

}  // namespace
}  // namespace kinglet::vocabulary_test
