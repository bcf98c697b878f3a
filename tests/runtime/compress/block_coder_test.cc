#include "runtime/compress/block_coder.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>

#include "format/digest.h"
#include "kernels/cpu/cpu.h"
#include "tests/runtime/compress/texts.h"
#include "tests/support/environment_variable.h"

namespace kinglet::compress::block_coder_test {
namespace {

std::vector<Bytes> CodeTogether(const Model& model, Session& session,
                                const std::vector<Bytes>& texts) {
  const SharedWords words(model);
  std::vector<BlockCoder> coders;
  for (const Bytes& text : texts)
    coders.push_back(BlockCoder::Compress(words, text, text.size() % 2 == 1));
  EXPECT_TRUE(RunCoders(session, coders, {}).ok());
  std::vector<Bytes> coded;
  for (BlockCoder& coder : coders) coded.push_back(coder.Take());
  return coded;
}

std::vector<Bytes> RestoreTogether(const Model& model, Session& session,
                                   const std::vector<Bytes>& coded,
                                   const std::vector<Bytes>& texts) {
  const SharedWords words(model);
  std::vector<BlockCoder> coders;
  for (size_t i = 0; i < coded.size(); ++i) {
    auto coder = BlockCoder::Restore(words, coded[i], texts[i].size());
    EXPECT_TRUE(coder.ok()) << coder.status().message();
    coders.push_back(std::move(*coder));
  }
  EXPECT_TRUE(RunCoders(session, coders, {}).ok());
  std::vector<Bytes> restored;
  for (BlockCoder& coder : coders) restored.push_back(coder.Take());
  return restored;
}

std::vector<Bytes> SomeTexts() {
  std::vector<Bytes> texts = {{}};
  for (uint64_t kind = 0; kind < kTextKinds; ++kind) {
    texts.push_back(MakeText(kind, 500 + 151 * kind, kind));
  }
  return texts;
}

// Blocks as lanes of one session have the bytes of blocks alone.
TEST(BlockCoder, LanesChangeNoByte) {
  const auto model = TinyWords();
  const std::vector<Bytes> texts = SomeTexts();
  const auto lanes = Start(model, {.lanes = static_cast<uint32_t>(texts.size())});
  const std::vector<Bytes> together = CodeTogether(*model, *lanes, texts);
  const auto alone = Start(model);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(CodeTogether(*model, *alone, {texts[i]})[0], together[i]) << i;
  }
  EXPECT_EQ(RestoreTogether(*model, *lanes, together, texts), texts);
}

// What one instruction set compresses, another restores, and the bytes are the same.
TEST(BlockCoder, TheBytesAreTheSameForEveryInstructionSet) {
  const std::vector<Bytes> texts = SomeTexts();
  const auto reference = TinyWords("ref");
  const auto session = Start(reference, {.lanes = static_cast<uint32_t>(texts.size())});
  const std::vector<Bytes> expected = CodeTogether(*reference, *session, texts);
  // Found on x86-64; AArch64, whose tests run in an emulator, must find it too.
  Bytes all;
  for (const Bytes& coded : expected) all.insert(all.end(), coded.begin(), coded.end());
  EXPECT_EQ(HexText(Digest64(std::as_bytes(std::span(all)))), "7bee8c26d5b99719");
  for (const cpu::Target target : cpu::SupportedTargets()) {
    const std::string name(cpu::TargetName(target));
    SetVariable("KINGLET_CPU", name.c_str());
    const auto model = TinyWords();
    SetVariable("KINGLET_CPU", "");
    const auto other = Start(model, {.lanes = static_cast<uint32_t>(texts.size())});
    EXPECT_EQ(CodeTogether(*model, *other, texts), expected) << name;
    EXPECT_EQ(RestoreTogether(*model, *other, expected, texts), texts) << name;
  }
}

TEST(BlockCoder, AnyBytesGiveSomeText) {
  const auto model = TinyWords();
  const SharedWords words(*model);
  const auto session = Start(model);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Bytes bytes = MakeText(0, 1 + seed * 3, seed);
    bytes[0] = static_cast<std::byte>(seed % 5);
    auto coder = BlockCoder::Restore(words, bytes, 700);
    if (!coder.ok()) {
      EXPECT_EQ(coder.status().code(), KINGLET_CORRUPT);
      continue;
    }
    EXPECT_TRUE(RunCoders(*session, {&*coder, 1}, {}).ok());
    EXPECT_EQ(coder->Take().size(), 700u);
  }
  EXPECT_FALSE(BlockCoder::Restore(words, {}, 3).ok());
}

TEST(BlockCoder, StopsWhenAsked) {
  const auto model = TinyWords();
  const SharedWords words(*model);
  const auto session = Start(model);
  const Bytes text = MakeText(1, 5000, 1);
  BlockCoder coder = BlockCoder::Compress(words, text, text.size() % 2 == 1);
  int asked = 0;
  EXPECT_EQ(RunCoders(*session, {&coder, 1}, [&] { return ++asked > 10; }).code(),
            KINGLET_CANCELLED);
}

}  // namespace
}  // namespace kinglet::compress::block_coder_test
