#include "runtime/compress/archive_scanner.h"

#include <gtest/gtest.h>

#include "tests/runtime/compress/texts.h"

namespace kinglet::compress::archive_scanner_test {
namespace {

// The parts that are found: H, block numbers, gaps (first-end), E; "!" for an error.
std::string Scan(const Bytes& archive, size_t piece) {
  ArchiveScanner scanner;
  std::string found;
  const auto take = [&] {
    while (true) {
      const auto part = scanner.Next();
      if (!part.ok()) {
        found += "!";
        return false;
      }
      if (!part->has_value()) return true;
      if (std::holds_alternative<ArchiveHeader>(**part)) found += "H ";
      if (std::holds_alternative<ArchiveEnd>(**part)) found += "E ";
      if (const auto* block = std::get_if<ScannedBlock>(&**part)) {
        found += std::to_string(block->number) + " ";
      }
      if (const auto* gap = std::get_if<ScannedGap>(&**part)) {
        found += "(" + std::to_string(gap->first) + "-" +
                 (gap->end ? std::to_string(*gap->end) : "") + ") ";
      }
    }
  };
  for (size_t at = 0; at < archive.size(); at += std::min(piece, archive.size() - at)) {
    scanner.Add(std::span(archive).subspan(at, std::min(piece, archive.size() - at)));
    if (!take()) return found;
  }
  scanner.EndOfInput();
  take();
  return found;
}

TEST(ArchiveScanner, FindsBlocksAgainAfterDamage) {
  const Bytes archive =
      CompressAll(TinyWords(), MakeText(0, 3500, 1), {.block_size = 1024});  // four raw blocks
  const size_t second = ArchiveHeader::kBytes + BlockHeader::kBytes + 1024;
  Bytes damaged = archive;
  damaged[second + 5] ^= std::byte{1};
  Bytes two = damaged;
  two[second + BlockHeader::kBytes + 1024 + 6] ^= std::byte{4};
  Bytes missing = archive;
  missing.erase(missing.begin() + second, missing.begin() + second + 1500);
  Bytes longer = archive;
  longer.push_back(std::byte{0});
  Bytes no_end(archive.begin(), archive.end() - 3);
  Bytes last = archive;
  last[archive.size() - ArchiveEnd::kBytes - 428 - BlockHeader::kBytes + 2] ^= std::byte{1};
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1000}, SIZE_MAX}) {
    EXPECT_EQ(Scan(archive, piece), "H 0 1 2 3 E ");
    EXPECT_EQ(Scan(damaged, piece), "H 0 (1-2) 2 3 E ");
    EXPECT_EQ(Scan(two, piece), "H 0 (1-3) 3 E ");
    EXPECT_EQ(Scan(missing, piece), "H 0 (1-3) 3 E ");
    EXPECT_EQ(Scan(longer, piece), "H 0 1 2 3 E !");
    EXPECT_EQ(Scan(no_end, piece), "H 0 1 2 3 (4-) ");
    EXPECT_EQ(Scan(last, piece), "H 0 1 2 (3-4) E ");
  }
  EXPECT_EQ(Scan({}, 1), "!");
  EXPECT_EQ(Scan(Bytes(20), 1), "!");
}

}  // namespace
}  // namespace kinglet::compress::archive_scanner_test
