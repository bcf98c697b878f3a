#include "format/file_layout.h"

#include <array>
#include <cstdint>

#include "format/digest.h"
#include "format/frame.h"
#include "format/header_writer.h"
#include "format/message_text.h"
#include "format/overloaded.h"
#include "format/validate.h"

namespace kinglet {
namespace {

// Gives each part of a file its segment.
class SegmentList {
 public:
  PlacedTensor Place(const TensorView& view) {
    PlacedTensor placed;
    placed.view = view;
    if (view.mask) placed.mask = Add(view.mask->bytes);
    std::visit(Overloaded{
                   [&](const DenseView& dense) { placed.values = Add(dense.bytes); },
                   [&](const PackedView& packed) {
                     placed.values = Add(packed.codes);
                     placed.scales = Add(packed.scales.bytes);
                   },
                   [&](const CodedView& coded) {
                     if (!coded.seed) placed.values = Add(coded.codes);
                   },
               },
               view.values);
    return placed;
  }

  std::optional<PlacedVocabulary> Place(const std::optional<StoredVocabulary>& stored) {
    if (!stored) return std::nullopt;
    PlacedVocabulary placed;
    placed.words = Add(stored->words);
    placed.ranks = Add(stored->ranks);
    return placed;
  }

  std::optional<uint32_t> Place(const std::optional<std::span<const std::byte>>& bytes) {
    return bytes ? std::optional(Add(*bytes)) : std::nullopt;
  }

  std::vector<std::span<const std::byte>>& segments() { return segments_; }

 private:
  uint32_t Add(std::span<const std::byte> bytes) {
    segments_.push_back(bytes);
    return static_cast<uint32_t>(segments_.size() - 1);
  }

  std::vector<std::span<const std::byte>> segments_;
};

Status CheckMeaning(const std::string& origin, const FileContents& contents) {
  Status status = ValidateTensors(origin, contents.tensors);
  if (status.ok()) status = ValidateDescription(origin, contents.description, contents.tensors);
  return status.ok() ? status : Status(KINGLET_INVALID_ARGUMENT, status.message());
}

}  // namespace

Result<FileLayout> LayOutFile(const std::string& origin, const FileContents& contents) {
  KINGLET_RETURN_IF_ERROR(CheckMeaning(origin, contents));
  SegmentList list;
  std::vector<PlacedTensor> tensors;
  for (const TensorView& view : contents.tensors) tensors.push_back(list.Place(view));
  PlacedVocabularies vocabularies;
  vocabularies.target = list.Place(contents.vocabulary);
  vocabularies.source = list.Place(contents.source_vocabulary);
  vocabularies.tokenizer = list.Place(contents.tokenizer);
  FileLayout layout;
  layout.segments = std::move(list.segments());
  const uint64_t estimate = HeaderEstimate(contents.description, tensors, layout.segments.size());
  if (estimate > kMaxHeaderBytes) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, origin, "header",
                           "at most " + BytesText(kMaxHeaderBytes), BytesText(estimate));
  }

  std::vector<PlacedSegment> placed;
  for (const std::span<const std::byte> segment : layout.segments) {
    placed.push_back({0, segment.size(), Digest64(segment)});
  }
  const auto header = [&] {
    return BuildHeader(contents.description, tensors, vocabularies, placed);
  };
  // The offsets depend on the header's size, but its size does not depend on them: build it twice.
  const uint64_t header_size = header().size();
  uint64_t position = kFrameBytes + header_size;
  for (PlacedSegment& segment : placed) {
    segment.offset = NextSegmentOffset(position);
    position = segment.offset + segment.size;
  }
  const std::vector<std::byte> bytes = header();
  if (bytes.size() != header_size) {
    return Status::Refusal(KINGLET_INTERNAL, origin, "header", BytesText(header_size),
                           BytesText(bytes.size()));
  }
  const auto frame = EncodeFrame({position, header_size, DigestOf(bytes)});
  layout.head.assign(frame.begin(), frame.end());
  layout.head.insert(layout.head.end(), bytes.begin(), bytes.end());
  return layout;
}

Result<FileLayout> LayOutAgain(const ModelFile& file, const ModelDescription& description) {
  const auto stored = [](const Vocabulary* vocabulary) {
    return vocabulary == nullptr ? std::nullopt : std::optional(vocabulary->stored());
  };
  for (const TensorView& view : file.tensors()) RequireHeld(view);
  return LayOutFile("model file " + file.digest(),
                    {description, file.tensors(), stored(file.vocabulary()),
                     stored(file.source_vocabulary()), file.stored_tokenizer()});
}

std::vector<std::span<const std::byte>> FileLayout::Pieces() const {
  static constexpr std::array<std::byte, kSegmentAlignment> kZeros{};
  std::vector<std::span<const std::byte>> pieces = {head};
  uint64_t position = head.size();
  for (const std::span<const std::byte> segment : segments) {
    const uint64_t offset = NextSegmentOffset(position);
    pieces.push_back(std::span(kZeros).first(offset - position));
    pieces.push_back(segment);
    position = offset + segment.size();
  }
  return pieces;
}

std::vector<std::byte> FileLayout::Bytes() const {
  const std::vector<std::span<const std::byte>> pieces = Pieces();
  uint64_t size = 0;
  for (const std::span<const std::byte> piece : pieces) size += piece.size();
  std::vector<std::byte> bytes;
  bytes.reserve(size);
  for (const std::span<const std::byte> piece : pieces) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  return bytes;
}

}  // namespace kinglet
