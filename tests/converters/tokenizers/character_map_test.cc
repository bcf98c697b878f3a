#include "converters/tokenizers/character_map.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace kinglet::character_map_test {
namespace {

// The double array of the keys "a" -> "A" and "ab" -> "", laid out by hand: the root's children are
// at unit 256, those of "a" at 512.
std::string Map() {
  std::vector<uint32_t> units(1024, 0);
  const auto offset = [](uint32_t places) { return places << 10; };
  units[0] = offset(256);
  units[256 ^ 'a'] = offset((256 ^ 'a') ^ 512) | 0x100 | 'a';
  units[512] = 0x80000000;  // the replacement at byte 0
  units[512 ^ 'b'] = offset((512 ^ 'b') ^ 768) | 0x100 | 'b';
  units[768] = 0x80000002;
  const auto bytes = static_cast<uint32_t>(4 * units.size());
  std::string map(4 + bytes, '\0');
  std::memcpy(map.data(), &bytes, 4);
  std::memcpy(map.data() + 4, units.data(), bytes);
  return map + std::string("A\0\0", 3);
}

TEST(CharacterMap, ListsItsRulesInOrder) {
  const auto rules = ReadCharacterMap(Map());
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  ASSERT_EQ(rules->size(), 2u);
  EXPECT_EQ((*rules)[0], (NormaliserTables::Rule{"a", "A"}));
  EXPECT_EQ((*rules)[1], (NormaliserTables::Rule{"ab", ""}));
  EXPECT_TRUE(ReadCharacterMap("")->empty());
}

// An offset of 2^21 or more is stored without its last 8 bits, which are then 0.
TEST(CharacterMap, ReadsOffsetsWithoutTheirLastByte) {
  std::string map = Map();
  const uint32_t root = 1U << 10 | 0x200;  // 256 places
  std::memcpy(map.data() + 4, &root, 4);
  EXPECT_EQ(*ReadCharacterMap(map), *ReadCharacterMap(Map()));
}

TEST(CharacterMap, ArraysThatLeadNowhereAreRefused) {
  const std::string original = Map();
  for (const size_t size :
       {size_t{1}, size_t{4}, size_t{100}, original.size() - 3, original.size() - 1}) {
    EXPECT_FALSE(ReadCharacterMap(original.substr(0, size)).ok()) << size;
  }
  const auto with = [&](size_t place, uint32_t unit) {
    std::string changed = original;
    std::memcpy(changed.data() + 4 + 4 * place, &unit, 4);
    return ReadCharacterMap(changed);
  };
  EXPECT_FALSE(with(0, 0x3FFFFF << 10).ok());       // the root's children outside
  EXPECT_FALSE(with(512, 0x80000000 | 5000).ok());  // a replacement outside
  // A child that is its own parent: deeper than any rule.
  EXPECT_FALSE(with(256 ^ 'a', 0x61 << 10 | 'a').ok());
}

// Branches that share their ends, as in SentencePiece's maps: level by level two labels lead to the
// same unit, so that few units contain 2^levels keys.
std::string SharedMap(int levels) {
  std::vector<uint32_t> units(1024, 0);
  const auto offset = [](uint32_t places) { return places << 10; };
  units[0] = offset(256);
  for (int level = 0; level < levels; ++level) {
    const auto place = static_cast<uint32_t>(256 + 16 * level);
    for (uint32_t label = 1; label < 3; ++label) {
      const bool last = level + 1 == levels;
      units[place ^ label] = offset((place ^ label) ^ (place + 16)) | (last ? 0x100U : 0U) | label;
    }
  }
  units[static_cast<size_t>(256 + 16 * levels)] = 0x80000000;
  const auto bytes = static_cast<uint32_t>(4 * units.size());
  std::string map(4 + bytes, '\0');
  std::memcpy(map.data(), &bytes, 4);
  std::memcpy(map.data() + 4, units.data(), bytes);
  return map + std::string("A\0", 2);
}

TEST(CharacterMap, SharedBranchesAreFollowedAsFarAsTheMapIsLarge) {
  const auto few = ReadCharacterMap(SharedMap(8));
  ASSERT_TRUE(few.ok()) << few.status().message();
  EXPECT_EQ(few->size(), 256u);
  for (const int levels : {16, 24, 40}) {
    const auto refused = ReadCharacterMap(SharedMap(levels));
    ASSERT_FALSE(refused.ok()) << levels;
    EXPECT_NE(refused.status().message().find("at most"), std::string::npos);
  }
}

}  // namespace
}  // namespace kinglet::character_map_test
