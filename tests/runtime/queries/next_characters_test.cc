#include "runtime/queries/next_characters.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/vocabulary.h"

namespace kinglet::next_characters_test {
namespace {

TEST(NextCharacters, AreCodePointsOrBytesThatBeginNoCharacter) {
  const std::vector<std::string> tokens = {
      "the",         "t", "th\xC3\xA9", "th\xC3",         "th\xC3z",
      "th\xC3\xA9z", "a", "th\xFF",     "th\xE2\x80\x99", "tho"};
  const auto segments = Vocabulary::Pack(tokens);
  ASSERT_TRUE(segments.ok());
  const auto vocabulary = Vocabulary::FromSegments(static_cast<uint32_t>(tokens.size()),
                                                   segments->words, segments->ranks);
  ASSERT_TRUE(vocabulary.ok());
  const auto texts = [&](const std::string& prefix) {
    std::vector<std::string> found;
    for (const NextCharacter& next : SplitByNextCharacter(*vocabulary, prefix).characters) {
      found.push_back(next.text);
    }
    return found;
  };
  EXPECT_EQ(texts(""), (std::vector<std::string>{"a", "t"}));
  EXPECT_EQ(texts("t"), (std::vector<std::string>{"", "h"}));
  EXPECT_EQ(texts("th"),
            (std::vector<std::string>{"e", "o", "\xC3", "\xC3\xA9", "\xE2\x80\x99", "\xFF"}));
  // In the middle of a character: the bytes that follow begin none.
  EXPECT_EQ(texts("th\xC3"), (std::vector<std::string>{"", "z", "\xA9"}));
  EXPECT_EQ(texts("the"), std::vector<std::string>{""});
  EXPECT_EQ(texts("x"), std::vector<std::string>());

  const PrefixParts parts = SplitByNextCharacter(*vocabulary, "th");
  const auto part = [&](uint32_t id) { return parts.characters[parts.part_of[id]].text; };
  // The byte, although tokens of a character that begins with it are between its tokens.
  EXPECT_EQ(part(3), "\xC3");
  EXPECT_EQ(part(4), "\xC3");
  EXPECT_EQ(part(5), "\xC3\xA9");
}

}  // namespace
}  // namespace kinglet::next_characters_test
