#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/compress/archive_reader.h"
#include "tests/fuzz/archive_model.h"
#include "tests/fuzz/targets.h"
#include "tests/support/model_builder.h"

namespace kinglet::fuzz {
namespace {

constexpr uint64_t kMostText = uint64_t{1} << 14;

struct RestoredArchive {
  bool ok = false;
  std::vector<std::byte> text;
};

RestoredArchive RestoreArchive(Input input, bool salvage, size_t piece) {
  compress::ArchiveReader::Options options;
  options.limit = kMostText;
  options.salvage = salvage;
  auto reader = compress::ArchiveReader::Create(ArchiveModel(), options);
  Expect(reader.ok(), "expected a reader");
  RestoredArchive restored;
  const auto take = [&] {
    for (size_t before = SIZE_MAX; restored.text.size() != before;) {
      before = restored.text.size();
      const Status status = reader->Next(restored.text);
      ExpectOneLine(status);
      if (!status.ok()) return false;
    }
    return true;
  };
  for (size_t at = 0; at < input.size(); at += piece) {
    reader->Add(input.subspan(at, std::min(piece, input.size() - at)));
    if (!take()) return restored;
  }
  reader->EndOfInput();
  restored.ok = take() && reader->damages().empty();
  for (const std::string& damage : reader->damages()) {
    ExpectOneLine(Status(KINGLET_CORRUPT, damage));
  }
  return restored;
}

}  // namespace

const std::shared_ptr<const Model>& ArchiveModel() {
  static const std::shared_ptr<const Model> kModel = [] {
    const auto bytes =
        SerialiseModel(TinyMicronet({.quantised = true, .bits = 5, .cache_capacity = 4}));
    Expect(bytes.ok(), "expected a model");
    return *Model::FromBytes(*bytes, {});
  }();
  return kModel;
}

void RunArchive(Input input) {
  const RestoredArchive all = RestoreArchive(input, false, SIZE_MAX);
  Expect(all.text.size() <= kMostText, "expected a text within the limit");
  const RestoredArchive pieces = RestoreArchive(input, false, 7);
  Expect(all.ok == pieces.ok && all.text == pieces.text, "expected the same text from pieces");
  const RestoredArchive salvaged = RestoreArchive(input, true, SIZE_MAX);
  Expect(salvaged.text.size() <= kMostText, "expected a text within the limit");
  Expect(!all.ok || (salvaged.ok && salvaged.text == all.text), "expected the undamaged text");
}

// Makes the bytes an archive of the target's model, and the checks of its blocks right.
void RepairArchive(std::span<std::byte> input) {
  using compress::ArchiveHeader;
  using compress::BlockHeader;
  if (input.size() < ArchiveHeader::kBytes) return;
  ArchiveHeader header;
  header.model = ArchiveModel()->file().digest_number();
  if (const auto read = ArchiveHeader::Of(input); read.ok()) header.block_size = read->block_size;
  std::ranges::copy(header.Bytes(), input.begin());
  input = input.subspan(ArchiveHeader::kBytes);
  for (uint64_t number = 0; input.size() >= BlockHeader::kBytes; ++number) {
    const BlockHeader block = compress::FieldsOf(input);
    std::ranges::copy(block.Bytes(header, number), input.begin());
    if (input.size() - BlockHeader::kBytes < block.size) return;
    input = input.subspan(BlockHeader::kBytes + block.size);
    if (input.size() == compress::ArchiveEnd::kBytes) return;
  }
}

}  // namespace kinglet::fuzz
