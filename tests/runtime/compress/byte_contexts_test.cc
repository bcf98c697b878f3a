#include "runtime/compress/byte_contexts.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/runtime/compress/texts.h"

namespace kinglet::compress::byte_contexts_test {
namespace {

ByteContexts After(const std::string& text) {
  const Bytes bytes = BytesOfText(text);
  ByteContexts contexts;
  for (size_t i = 1; i <= bytes.size(); ++i) contexts.Add(std::span(bytes).first(i));
  return contexts;
}

TEST(ByteContexts, KnowTheLastBytes) {
  const ByteContexts contexts = After("abcdefghij");
  EXPECT_EQ(contexts.last(), 'j');
  EXPECT_EQ(contexts.last_eight(), 0x636465666768696Au);
}

TEST(ByteContexts, EachForgetsWhatItDoesNotLookAt) {
  const auto same = [](const std::string& a, const std::string& b) {
    std::set<size_t> equal;
    const auto first = After(a).hashes(), second = After(b).hashes();
    for (size_t i = 0; i < ByteContexts::kCount; ++i) {
      if (first[i] == second[i]) equal.insert(i);
    }
    return equal;
  };
  EXPECT_EQ(same("some text", "some text").size(), ByteContexts::kCount);
  // Orders 1 to 4 see the same four bytes, orders 5, 6 and 8 do not.
  const auto equal = same("xx abcd", "yy-abcd");
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(equal.count(i), 1u) << i;
  for (size_t i = 4; i < 7; ++i) EXPECT_EQ(equal.count(i), 0u) << i;
  // The word is the same in capitals.
  EXPECT_EQ(same("one Wren", "two wren").count(7), 1u);
  EXPECT_EQ(same("one wren", "two wren").count(8), 0u);
  // No two contexts of one text share a hash.
  const auto hashes = After("abc").hashes();
  EXPECT_EQ(std::set<uint64_t>(hashes.begin(), hashes.end()).size(), ByteContexts::kCount);
}

}  // namespace
}  // namespace kinglet::compress::byte_contexts_test
