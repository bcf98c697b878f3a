// Opening a model file: reading the bytes and running every check in order.
#include "format/model_file.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "format/digest.h"
#include "format/frame.h"
#include "format/header_reader.h"
#include "format/input_file.h"
#include "format/message_text.h"
#include "format/page_memory.h"
#include "format/validate.h"

namespace kinglet {
namespace {

Status OutOfMemory(const std::string& origin, const std::string& purpose) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, origin, "memory", "room for " + purpose,
                         "no free memory");
}

Status CheckLimit(const std::string& origin, uint64_t size, uint64_t limit) {
  if (size <= limit) return Status();
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, origin, "size",
                         "at most " + std::to_string(limit) + " bytes, the memory limit",
                         std::to_string(size));
}

// Every byte of the file, in order, with its owner.
Ledger MakeLedger(const FileFrame& frame, std::span<const StoredSegment> segments) {
  Ledger ledger;
  uint64_t position = 0;
  const auto add = [&](const std::string& owner, LedgerPart part, uint64_t end) {
    if (end > position) ledger.entries.push_back({owner, part, position, end - position});
    position = end;
  };
  add("", LedgerPart::kFrame, kFrameBytes);
  add("", LedgerPart::kHeader, kFrameBytes + frame.header_size);
  for (const StoredSegment& segment : segments) {
    add("", LedgerPart::kPadding, segment.offset);
    add(segment.owner, segment.part, segment.offset + segment.size);
  }
  return ledger;
}

// The rest of the limit on the memory of the file's bytes and its tables.
class TableMemory {
 public:
  TableMemory(const std::string& origin, uint64_t limit, uint64_t file_bytes)
      : origin_(origin), limit_(limit), taken_(file_bytes) {}

  const std::string& origin() const { return origin_; }
  uint64_t left() const { return limit_ - taken_; }
  Status Take(uint64_t bytes) {
    KINGLET_RETURN_IF_ERROR(CheckLimit(origin_, taken_ + bytes, limit_));
    taken_ += bytes;
    return {};
  }

 private:
  const std::string& origin_;
  uint64_t limit_, taken_;
};

Result<std::optional<Vocabulary>> OpenVocabulary(TableMemory& memory,
                                                 const std::optional<StoredVocabulary>& stored) {
  if (!stored) return std::optional<Vocabulary>();
  // FromSegments would refuse more words too: the shortest word takes two bytes.
  const uint64_t words = std::min<uint64_t>(stored->size, stored->words.size() / 2);
  KINGLET_RETURN_IF_ERROR(memory.Take(Vocabulary::HeldBytes(words)));
  Result<Vocabulary> vocabulary =
      Vocabulary::FromSegments(stored->size, stored->words, stored->ranks);
  if (!vocabulary.ok()) {
    const Status status = vocabulary.status();
    return Status(status.code(), memory.origin() + ": " + status.message());
  }
  return std::optional(std::move(vocabulary).value());
}

Result<std::optional<TextTables>> OpenTextTables(
    TableMemory& memory, const std::optional<std::span<const std::byte>>& stored) {
  if (!stored) return std::optional<TextTables>();
  Result<TextTables> tables = ReadTextTables(*stored, memory.left());
  if (!tables.ok()) {
    const Status status = tables.status();
    return Status(status.code(), memory.origin() + ": " + status.message());
  }
  KINGLET_RETURN_IF_ERROR(memory.Take(HeldBytes(*tables)));
  return std::optional(std::move(tables).value());
}

}  // namespace

struct ModelFile::Contents {
  PageMemory bytes;
  uint64_t size = 0;
  uint64_t released = 0;
  uint64_t table_bytes = 0;
  ModelDescription description;
  std::vector<TensorView> tensors;
  std::optional<Vocabulary> vocabulary, source_vocabulary;
  std::optional<std::span<const std::byte>> stored_tokenizer;
  std::optional<TextTables> text_tables;
  Ledger ledger;
  Digest128 digest_number;
  std::string digest;
};

struct ModelFileBuilder {
  // `bytes` are `size` bytes, `limit` or fewer.
  static Result<std::shared_ptr<ModelFile>> Build(const std::string& origin, PageMemory bytes,
                                                  uint64_t size, uint64_t limit) {
    const std::span<const std::byte> file = std::as_const(bytes).bytes().first(size);
    KINGLET_ASSIGN_OR_RETURN(const FileFrame frame, DecodeFrame(origin, file, size));
    const auto header_bytes = file.subspan(kFrameBytes, frame.header_size);
    const Digest128 digest = DigestOf(header_bytes);
    if (digest != frame.header_digest) {
      return Status::Refusal(KINGLET_CORRUPT, origin, "header, byte 64",
                             "digest " + HexText(frame.header_digest), HexText(digest));
    }
    KINGLET_ASSIGN_OR_RETURN(Header header, ReadHeader(origin, file, header_bytes));
    KINGLET_RETURN_IF_ERROR(ValidateTensors(origin, header.tensors));
    KINGLET_RETURN_IF_ERROR(ValidateDescription(origin, header.description, header.tensors));

    std::shared_ptr<ModelFile> model(new ModelFile);
    ModelFile::Contents& contents = *model->contents_;
    TableMemory memory(origin, limit, size);
    KINGLET_ASSIGN_OR_RETURN(contents.vocabulary, OpenVocabulary(memory, header.vocabulary));
    KINGLET_ASSIGN_OR_RETURN(contents.source_vocabulary,
                             OpenVocabulary(memory, header.source_vocabulary));
    KINGLET_ASSIGN_OR_RETURN(contents.text_tables, OpenTextTables(memory, header.tokenizer));
    contents.table_bytes = limit - size - memory.left();
    contents.stored_tokenizer = header.tokenizer;
    contents.ledger = MakeLedger(frame, header.segments);
    contents.digest_number = digest;
    contents.digest = HexText(digest);
    contents.description = std::move(header.description);
    contents.tensors = std::move(header.tensors);
    contents.size = size;
    contents.bytes = std::move(bytes);
    return model;
  }
};

ModelFile::ModelFile() : contents_(std::make_unique<Contents>()) {}
ModelFile::~ModelFile() = default;

Result<std::shared_ptr<ModelFile>> ModelFile::Open(const std::string& path, uint64_t limit) try {
  KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  const uint64_t size = file.size();
  // The frame is checked first, so that a large file of another kind is not read.
  std::byte start[kFrameBytes];
  const auto frame = std::span(start).first(std::min<uint64_t>(size, kFrameBytes));
  KINGLET_RETURN_IF_ERROR(file.ReadAt(0, frame));
  KINGLET_RETURN_IF_ERROR(DecodeFrame(path, frame, size).status());
  KINGLET_RETURN_IF_ERROR(CheckLimit(path, size, limit));
  PageMemory bytes(size);
  if (!bytes.valid()) return OutOfMemory(path, BytesText(size));
  KINGLET_RETURN_IF_ERROR(file.ReadAt(0, bytes.bytes()));
  return ModelFileBuilder::Build(path, std::move(bytes), size, limit);
} catch (const std::bad_alloc&) {
  return OutOfMemory(path, "the tables of the model");
}

Result<std::shared_ptr<ModelFile>> ModelFile::FromBytes(std::span<const std::byte> given,
                                                        uint64_t limit) try {
  const std::string origin = "model in memory";
  KINGLET_RETURN_IF_ERROR(DecodeFrame(origin, given, given.size()).status());
  KINGLET_RETURN_IF_ERROR(CheckLimit(origin, given.size(), limit));
  PageMemory bytes(given.size());
  if (!bytes.valid()) return OutOfMemory(origin, BytesText(given.size()));
  std::memcpy(bytes.bytes().data(), given.data(), given.size());
  return ModelFileBuilder::Build(origin, std::move(bytes), given.size(), limit);
} catch (const std::bad_alloc&) {
  return OutOfMemory("model in memory", "the tables of the model");
}

const ModelDescription& ModelFile::description() const { return contents_->description; }
std::span<const TensorView> ModelFile::tensors() const { return contents_->tensors; }
const Vocabulary* ModelFile::vocabulary() const {
  return contents_->vocabulary ? &*contents_->vocabulary : nullptr;
}
const Vocabulary* ModelFile::source_vocabulary() const {
  return contents_->source_vocabulary ? &*contents_->source_vocabulary : nullptr;
}
const TextTables* ModelFile::text_tables() const {
  return contents_->text_tables ? &*contents_->text_tables : nullptr;
}
std::optional<std::span<const std::byte>> ModelFile::stored_tokenizer() const {
  return contents_->stored_tokenizer;
}
const Ledger& ModelFile::ledger() const { return contents_->ledger; }
uint64_t ModelFile::file_size() const { return contents_->size; }
uint64_t ModelFile::table_bytes() const { return contents_->table_bytes; }
uint64_t ModelFile::held_bytes() const { return contents_->size - contents_->released; }
void ModelFile::Release(TensorId tensor, std::span<const std::byte> bytes) {
  MarkReleased(contents_->tensors[tensor]);
  // The last page counts completely, even if the file ends within it.
  contents_->released =
      std::min(contents_->size, contents_->released + contents_->bytes.Release(bytes));
}
const std::string& ModelFile::digest() const { return contents_->digest; }

const Digest128& ModelFile::digest_number() const { return contents_->digest_number; }

}  // namespace kinglet
