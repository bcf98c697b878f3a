// Every change of a model file's bytes is found when the file is opened: each bit flipped, each
// tile of 64 bytes zeroed, exchanged with another, overwritten by another or repeated, bytes
// appended, and every truncation. Three files of different kinds, in memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "format/writer.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::every_change_test {
namespace {

constexpr size_t kBlock = 64;

// With KINGLET_EVERY_CHANGE in the environment all changes are tried, else a fifth of the pairs.
size_t StrideOfPairs() {
  constexpr size_t kSampled = 5;
  return std::getenv("KINGLET_EVERY_CHANGE") == nullptr ? kSampled : 1;
}
// With a sanitizer each open takes many times as long: every 7th bit, so that no bit of a byte is
// omitted, and every 5th length.
size_t Stride([[maybe_unused]] size_t sampled) {
#ifdef KINGLET_SANITIZED
  return std::getenv("KINGLET_EVERY_CHANGE") == nullptr ? sampled : 1;
#else
  return 1;
#endif
}

struct Kind {
  const char* name;
  ModelDraft (*draft)();
};

// NOLINTNEXTLINE(readability-identifier-naming): the name of a test's parameter
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

const Kind kKinds[] = {
    {"CodedTable",
     [] { return TinyClassifier({.vocabulary_size = 700, .width = 32, .positions = 4}); }},
    {"PrunedNineBits",
     [] {
       return TinyMicronet({.quantised = true, .bits = 9, .pruned = true, .cache_capacity = 4});
     }},
    {"EncoderDecoder", [] { return TinyTranslation({.bits = 9, .quantised = true}); }},
};

class EveryChange : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    original_ = *SerialiseModel(GetParam().draft());
    ASSERT_LE(original_.size(), 40'000U);
    ASSERT_GT(original_.size(), 5'000U);
    ASSERT_TRUE(ModelFile::FromBytes(original_).ok());
    blocks_ = original_.size() / kBlock;
    bytes_ = original_;
  }
  // The next change, if it changes anything.
  void ExpectRefused(const std::string& change) {
    if (bytes_ == original_) return;
    ++changes_;
    const Status status = ModelFile::FromBytes(bytes_).status();
    if (status.code() != KINGLET_CORRUPT) {
      ADD_FAILURE() << change << ": expected a refusal, found code " << status.code() << " "
                    << status.message();
    }
  }
  std::byte* Block(size_t index) { return bytes_.data() + index * kBlock; }
  const std::byte* OriginalBlock(size_t index) const { return original_.data() + index * kBlock; }
  void Report(const char* what) const {
    std::printf("%s, %zu bytes, %s: %zu changes refused\n", GetParam().name, original_.size(), what,
                changes_);
  }

  std::vector<std::byte> original_, bytes_;
  size_t blocks_ = 0, changes_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Files, EveryChange, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(EveryChange, OfABit) {
  for (size_t bit = 0; bit < 8 * original_.size() && !HasFailure(); bit += Stride(7)) {
    const auto mask = static_cast<std::byte>(1 << (bit % 8));
    bytes_[bit / 8] ^= mask;
    ++changes_;
    if (ModelFile::FromBytes(bytes_).status().code() != KINGLET_CORRUPT) {
      ADD_FAILURE() << "bit " << bit;
    }
    bytes_[bit / 8] ^= mask;
  }
  Report("bits flipped");
}

TEST_P(EveryChange, OfABlock) {
  for (size_t i = 0; i < blocks_ && !HasFailure(); ++i) {
    std::memset(Block(i), 0, kBlock);
    ExpectRefused("zeroed block " + std::to_string(i));
    std::memcpy(Block(i), OriginalBlock(i), kBlock);
    // Repeated: all bytes after the tile move.
    bytes_.insert(bytes_.begin() + static_cast<std::ptrdiff_t>(i * kBlock), OriginalBlock(i),
                  OriginalBlock(i) + kBlock);
    ExpectRefused("repeated block " + std::to_string(i));
    bytes_ = original_;
    bytes_.erase(bytes_.begin() + static_cast<std::ptrdiff_t>(i * kBlock),
                 bytes_.begin() + static_cast<std::ptrdiff_t>((i + 1) * kBlock));
    ExpectRefused("missing block " + std::to_string(i));
    bytes_ = original_;
  }
  Report("blocks zeroed, repeated, omitted");
}

TEST_P(EveryChange, OfTwoBlocks) {
  size_t pair = 0;
  for (size_t i = 0; i < blocks_ && !HasFailure(); ++i) {
    for (size_t j = i + 1; j < blocks_; ++j) {
      if (++pair % StrideOfPairs() != 0) continue;
      std::memcpy(Block(i), OriginalBlock(j), kBlock);
      ExpectRefused("a block written over another");
      std::memcpy(Block(j), OriginalBlock(i), kBlock);
      ExpectRefused("two blocks exchanged");
      std::memcpy(Block(i), OriginalBlock(i), kBlock);
      std::memcpy(Block(j), OriginalBlock(j), kBlock);
    }
  }
  Report("blocks exchanged and overwritten");
}

TEST_P(EveryChange, OfTheLength) {
  for (size_t size = 0; size < original_.size() && !HasFailure(); size += Stride(5)) {
    // A vector of exactly that size, so that a sanitizer notices reads beyond it.
    bytes_ = std::vector<std::byte>(original_.begin(),
                                    original_.begin() + static_cast<std::ptrdiff_t>(size));
    ExpectRefused("truncated to " + std::to_string(size));
  }
  for (const std::byte filling : {std::byte{0}, std::byte{0xFF}, original_.back()}) {
    bytes_ = original_;
    for (size_t more = 1; more <= 3 * kBlock + 1; ++more) {
      bytes_.push_back(filling);
      ExpectRefused(std::to_string(more) + " more bytes");
    }
  }
  Report("truncations and bytes appended");
}

}  // namespace
}  // namespace kinglet::every_change_test
