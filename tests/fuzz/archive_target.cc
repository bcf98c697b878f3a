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
  for (size_t at = 0; at < input.size(); at += piece) {
    const Status status =
        reader->Add(input.subspan(at, std::min(piece, input.size() - at)), restored.text);
    ExpectOneLine(status);
    if (!status.ok()) return restored;
  }
  const Status status = reader->Finish(restored.text);
  ExpectOneLine(status);
  for (const std::string& damage : reader->damages()) {
    ExpectOneLine(Status(KINGLET_CORRUPT, damage));
  }
  restored.ok = status.ok() && reader->damages().empty();
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
  header.SetModel(ArchiveModel()->file().digest());
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
