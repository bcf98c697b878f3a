#include "runtime/compress/archive_reader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <string>

#include "tests/runtime/compress/texts.h"

namespace kinglet::compress::archive_reader_test {
namespace {

// KINGLET_ROUND_TRIPS gives the number of texts of up to 2 kB; every bit is then flipped, not one
// of each byte.
const char* const kWantedTrips = std::getenv("KINGLET_ROUND_TRIPS");

uint64_t RoundTrips() {
  return kWantedTrips == nullptr ? 60 : std::strtoull(kWantedTrips, nullptr, 10);
}

TEST(ArchiveReader, RestoresTextsOfEveryKind) {
  const auto model = TinyWords();
  for (uint64_t i = 0; i < RoundTrips(); ++i) {
    TestRandom random(i);
    const Bytes text = MakeText(i, random.Below(2048), i);
    const Bytes archive = CompressAll(model, text);
    const RestoredText restored = RestoreAll(model, archive);
    ASSERT_TRUE(restored.status.ok()) << i << restored.status.message();
    ASSERT_EQ(restored.text, text) << i;
    ASSERT_LE(archive.size(), text.size() + 64) << i;
  }
}

// KINGLET_ROUND_TRIPS: 50 texts of up to 1 MB, else two of up to 40 kB.
TEST(ArchiveReader, RestoresLongTextsOfEveryKind) {
  const auto model = TinyWords();
  for (uint64_t i = 0; i < (kWantedTrips == nullptr ? 2 : 50); ++i) {
    TestRandom random(i);
    const Bytes text = MakeText(i + 1, random.Below(kWantedTrips == nullptr ? 40000 : 1000000), i);
    const Bytes archive = CompressAll(model, text, {.block_size = 20000, .threads = 2});
    const RestoredText restored = RestoreAll(model, archive);
    ASSERT_TRUE(restored.status.ok()) << i << restored.status.message();
    ASSERT_EQ(restored.text, text) << i;
    ASSERT_LE(archive.size(), text.size() + text.size() / 50 + 64) << i;
  }
}

TEST(ArchiveReader, PiecesAndThreadsChangeNoByte) {
  const auto model = TinyWords();
  const Bytes text = MakeText(1, 7000, 4);
  const Bytes archive = CompressAll(model, text, {.block_size = 1024});
  for (const size_t piece : {size_t{1}, size_t{23}, size_t{3000}}) {
    for (const uint32_t threads : {1u, 3u}) {
      const RestoredText restored = RestoreAll(model, archive, {.threads = threads}, piece);
      EXPECT_TRUE(restored.status.ok()) << restored.status.message();
      EXPECT_EQ(restored.text, text);
    }
  }
}

// However much was added: small archives of long texts take little memory.
TEST(ArchiveReader, GivesABlockForEachThreadAtATime) {
  const auto model = TinyWords();
  const Bytes archive = CompressAll(model, Bytes(10 * 1024), {.block_size = 1024});
  auto reader = ArchiveReader::Create(model, {.threads = 2});
  reader->Add(archive);
  reader->EndOfInput();
  for (const size_t size : {2048, 2048, 2048, 2048, 2048, 0}) {
    Bytes out;
    ASSERT_TRUE(reader->Next(out).ok());
    EXPECT_EQ(out.size(), size);
  }
}

// Whether the bytes are the text without some of its blocks.
bool IsTextWithoutBlocks(const Bytes& bytes, const Bytes& text, size_t block, size_t missing) {
  size_t at = 0, omitted = 0;
  for (size_t begin = 0; begin < text.size(); begin += block) {
    const size_t length = std::min(block, text.size() - begin);
    if (at + length <= bytes.size() &&
        std::equal(text.begin() + begin, text.begin() + begin + length, bytes.begin() + at)) {
      at += length;
    } else {
      ++omitted;
    }
  }
  return at == bytes.size() && omitted <= missing;
}

struct Text {
  const char* name;
  Bytes bytes;
  bool fast = false;
};
void PrintTo(const Text& text, std::ostream* out) { *out << text.name; }

class Damaged : public testing::TestWithParam<Text> {
 protected:
  const std::shared_ptr<const Model> model_ = TinyWords();
  const Bytes& text_ = GetParam().bytes;
  const Bytes archive_ = CompressAll(model_, text_, {.block_size = 1024, .fast = GetParam().fast});
};

INSTANTIATE_TEST_SUITE_P(ArchiveReader, Damaged,
                         testing::Values(Text{"ThreeBlocks", MakeText(2, 2500, 5)},
                                         Text{"Raw", MakeText(0, 1100, 6)},
                                         Text{"TwoFastBlocks", MakeText(1, 1300, 7), true}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(Damaged, EveryFlippedBitIsRefusedOrCostsItsBlockAlone) {
  for (size_t bit = 0; bit < 8 * archive_.size(); bit += kWantedTrips == nullptr ? 9 : 1) {
    Bytes damaged = archive_;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const RestoredText refused = RestoreAll(model_, damaged);
    ASSERT_FALSE(refused.status.ok()) << bit;
    const RestoredText salvaged = RestoreAll(model_, damaged, {.salvage = true});
    if (bit < 8 * ArchiveHeader::kBytes) continue;
    ASSERT_TRUE(salvaged.status.ok()) << bit << salvaged.status.message();
    ASSERT_FALSE(salvaged.damages.empty()) << bit;
    ASSERT_TRUE(IsTextWithoutBlocks(salvaged.text, text_, 1024, 1)) << bit;
  }
}

TEST_P(Damaged, EveryTruncationIsRefusedOrCostsWhatIsMissing) {
  for (size_t size = 0; size < archive_.size(); ++size) {
    const Bytes damaged(archive_.begin(), archive_.begin() + size);
    ASSERT_FALSE(RestoreAll(model_, damaged).status.ok()) << size;
    const RestoredText salvaged = RestoreAll(model_, damaged, {.salvage = true});
    if (size < ArchiveHeader::kBytes) continue;
    ASSERT_TRUE(salvaged.status.ok()) << size << salvaged.status.message();
    ASSERT_FALSE(salvaged.damages.empty()) << size;
    ASSERT_TRUE(IsTextWithoutBlocks(salvaged.text, text_, 1024, 3)) << size;
  }
}

TEST_P(Damaged, NamesTheBlock) {
  Bytes damaged = archive_;
  damaged[ArchiveHeader::kBytes + BlockHeader::kBytes + 9] ^= std::byte{1};
  const Status status = RestoreAll(model_, damaged).status;
  EXPECT_EQ(status.code(), KINGLET_CORRUPT);
  EXPECT_NE(status.message().find("block 1 (bytes of the text from 0)"), std::string::npos)
      << status.message();
}

TEST_P(Damaged, RefusesTextsAboveTheLimitAndOtherModels) {
  const uint64_t length = text_.size();
  EXPECT_EQ(RestoreAll(model_, archive_, {.limit = length - 1}).status.code(),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_TRUE(RestoreAll(model_, archive_, {.limit = length}).status.ok());
  const auto other = Open(TinyMicronet({.quantised = true, .bits = 9, .seed = 2}), "cpu");
  const Status status = RestoreAll(other, archive_).status;
  EXPECT_EQ(status.code(), KINGLET_MISMATCH);
  EXPECT_NE(status.message().find(model_->file().digest()), std::string::npos);
}

// Every kind of model that predicts a next token, and with a tokenizer of each kind of spaces.
TEST(ArchiveReader, WorksWithModelsOfEveryKind) {
  std::vector<ModelDraft> drafts = {TinyMicronet()};
  drafts.push_back(TinyMicronet());
  drafts.back().tokenizer = TextTables{false, MergeTables{}};
  for (const WordRule::Rule rule :
       {WordRule::Rule::kSpaces, WordRule::Rule::kWikiText, WordRule::Rule::kCharacters}) {
    drafts.push_back(TinyMicronet());
    drafts.back().tokenizer = TextTables{true, WordRule{rule}};
  }
  for (size_t i = 0; i < drafts.size(); ++i) {
    const auto model = Open(drafts[i], "cpu");
    for (uint64_t kind = 0; kind < kTextKinds; ++kind) {
      const Bytes text = MakeText(kind, 400, i);
      EXPECT_EQ(RestoreAll(model, CompressAll(model, text)).text, text) << i << " " << kind;
    }
  }
}

}  // namespace
}  // namespace kinglet::compress::archive_reader_test
