// The libraries' own unpacking gives the bytes back, however they were divided.
#include "converters/checkpoints/packer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/unpacker.h"
#include "tests/support/model_builder.h"

namespace kinglet::packer_test {
namespace {

std::string Packed(const char* form, const std::string& text, size_t piece) {
  const auto packer = Packer::For(form);
  std::string packed;
  for (size_t at = 0; at < text.size(); at += piece) {
    packer->Pack(std::string_view(text).substr(at, piece), false, packed);
  }
  packer->Pack("", true, packed);
  return packed;
}

std::string Unpacked(std::string_view packed) {
  const auto unpacker = Unpacker::For(packed);
  std::vector<char> out(1 << 16);
  std::string text;
  size_t made;
  do {
    const auto some = unpacker->Unpack(packed, out);
    EXPECT_TRUE(some.ok());
    made = *some;
    text.append(out.data(), made);
  } while (made > 0);
  EXPECT_TRUE(unpacker->at_end());
  return text;
}

TEST(Packer, UnpackedBytesAreThoseThatWerePacked) {
  TestRandom random(3);
  std::string noise, lines;
  for (int i = 0; i < 300000; ++i) noise += static_cast<char>(random.Below(256));
  for (int i = 0; i < 50000; ++i) lines += "word" + std::to_string(random.Below(9)) + "\n";
  for (const char* form : {"gz", "zst"}) {
    for (const std::string& text : {std::string(), std::string("a"), noise, lines}) {
      const std::string packed = Packed(form, text, 70000);
      EXPECT_EQ(Unpacked(packed), text);
      EXPECT_EQ(Packed(form, text, 70000), packed);
      EXPECT_EQ(Unpacked(Packed(form, text, 1000)), text);
    }
    EXPECT_LT(Packed(form, lines, 1000).size(), lines.size() / 5);
  }
}

}  // namespace
}  // namespace kinglet::packer_test
