#include "converters/checkpoints/safetensors.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "converters/checkpoints/elements.h"
#include "converters/checkpoints/json_events.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "format/little_endian.h"

namespace kinglet {
namespace {

constexpr uint64_t kLengthBytes = 8;
// The limit of the reference implementation.
constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
// Dimensions of a shape: far more than any checkpoint's tensor has.
constexpr size_t kMaxListLength = 32;
constexpr std::string_view kMetadata = "__metadata__";

Status RefuseSafetensors(const std::string& where, const std::string& expected,
                         const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "safetensors", where, expected, found);
}

constexpr auto kSafetensorsTypes =
    std::to_array<NamedElementType>({{"F64", ElementType::kF64},
                                     {"F32", ElementType::kF32},
                                     {"F16", ElementType::kF16},
                                     {"BF16", ElementType::kBF16},
                                     {"I64", ElementType::kI64},
                                     {"I32", ElementType::kI32},
                                     {"I16", ElementType::kI16},
                                     {"I8", ElementType::kI8},
                                     {"U32", ElementType::kU32},
                                     {"U16", ElementType::kU16},
                                     {"U8", ElementType::kU8},
                                     {"BOOL", ElementType::kBool},
                                     {"U64", ElementType::kU64},
                                     {"F8_E4M3", ElementType::kF8E4M3},
                                     {"F8_E5M2", ElementType::kF8E5M2},
                                     {"F8_E4M3FNUZ", ElementType::kF8E4M3Fnuz},
                                     {"F8_E5M2FNUZ", ElementType::kF8E5M2Fnuz},
                                     {"F8_E8M0", ElementType::kF8E8M0}});

// A tensor as the header describes it.
struct Description {
  std::string name;
  std::optional<std::string> type;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> place;  // begin and end, from the first byte of data
};

// Reads the header, {name: {"dtype": text, "shape": [..], "data_offsets": [begin, end]}, ..} with
// at most one "__metadata__": {text: text, ..}. Refuses everything else at once, so that a hostile
// header cannot make the reader keep more.
class SafetensorsHeader final : public JsonEvents {
 public:
  bool BeginObject() override {
    if (list_ != nullptr || level_ == 2)
      return Fail("no object inside a tensor's entry", "an object");
    if (level_ == 1 && !metadata_) tensors_.push_back({key_, {}, {}, {}});
    ++level_;
    return true;
  }
  bool EndObject() override {
    if (--level_ == 1) {
      if (!metadata_) {
        const Description& tensor = tensors_.back();
        if (!tensor.type || !tensor.shape || !tensor.place) {
          return Fail("dtype, shape and data_offsets", "fewer");
        }
      }
      metadata_ = false;
    }
    return true;
  }
  bool Name(std::string& name) override {
    if (level_ == 1) {
      if (!names_.insert(name).second) return Fail("each name once", QuotedName(name) + " again");
      metadata_ = name == kMetadata;
    }
    (level_ == 1 ? key_ : field_) = std::move(name);
    return true;
  }
  bool Text(std::string& text) override {
    if (level_ == 2 && metadata_) {
      metadata_texts_.emplace_back(field_, std::move(text));
      return true;
    }
    if (level_ != 2 || list_ != nullptr || field_ != "dtype" || tensors_.back().type) {
      return Unexpected("a text");
    }
    tensors_.back().type = std::move(text);
    return true;
  }
  bool BeginList() override {
    if (level_ != 2 || metadata_ || list_ != nullptr) return Unexpected("a list");
    Description& tensor = tensors_.back();
    std::optional<std::vector<uint64_t>>* field = nullptr;
    if (field_ == "shape") field = &tensor.shape;
    if (field_ == "data_offsets") field = &tensor.place;
    if (field == nullptr || *field) return Unexpected("a list");
    list_ = &field->emplace();
    return true;
  }
  bool EndList() override {
    list_ = nullptr;
    return true;
  }
  bool Number(std::optional<uint64_t> number) override {
    if (list_ == nullptr) return Unexpected("a number");
    if (!number) return Unexpected("a number that is not an integer from 0 to 2^64 - 1");
    if (list_->size() == kMaxListLength) return Fail("at most 32 numbers in a list", "more");
    list_->push_back(*number);
    return true;
  }
  bool Boolean() override { return Unexpected("a bool"); }
  bool Null() override { return Unexpected("null"); }
  void Broken(size_t byte) override {
    status_ = RefuseSafetensors("byte " + std::to_string(kLengthBytes + byte), "JSON",
                                "another character");
  }

  const Status& status() const { return status_; }
  std::vector<Description>& tensors() { return tensors_; }
  // The names and texts of the metadata.
  std::vector<std::pair<std::string, std::string>>& metadata() { return metadata_texts_; }

 private:
  bool Fail(const std::string& expected, const std::string& found) {
    status_ = RefuseSafetensors("header entry " + QuotedName(key_), expected, found);
    return false;
  }
  bool Unexpected(const std::string& found) {
    return Fail("an object of dtype (text), shape and data_offsets (lists of sizes), each once",
                found + (level_ == 2 ? " as " + QuotedName(field_) : ""));
  }

  std::vector<Description> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_texts_;
  std::unordered_set<std::string> names_;
  std::string key_, field_;
  int level_ = 0;
  bool metadata_ = false;                  // the current entry is the metadata
  std::vector<uint64_t>* list_ = nullptr;  // being filled
  Status status_;
};

// Where a checked tensor's bytes are.
struct Place {
  std::optional<ElementType> type;  // nullopt: a type that is not read
  uint64_t begin, end;              // from the first byte of data
};

Result<Place> CheckTensor(const Description& tensor, uint64_t data_bytes) {
  const std::string where = "tensor " + QuotedName(tensor.name);
  const std::optional<ElementType> type = FindElementType(kSafetensorsTypes, *tensor.type);
  const std::vector<uint64_t>& place = *tensor.place;
  if (place.size() != 2 || place[0] > place[1] || place[1] > data_bytes) {
    return RefuseSafetensors(
        where, "data_offsets inside the " + std::to_string(data_bytes) + " bytes of data",
        place.size() != 2
            ? std::to_string(place.size()) + " numbers"
            : "[" + std::to_string(place[0]) + ", " + std::to_string(place[1]) + "]" + kCopyAgain);
  }
  uint64_t bytes = 0;
  if (!type) return Place{type, place[0], place[1]};
  if (__builtin_mul_overflow(CountEntries(*tensor.shape), ElementBytes(*type), &bytes) ||
      bytes != place[1] - place[0]) {
    return RefuseSafetensors(where, "data_offsets of the bytes that its shape takes",
                             std::to_string(place[1] - place[0]) + " bytes");
  }
  return Place{type, place[0], place[1]};
}

// Checks that every byte of data belongs to exactly one tensor.
Status CheckCover(std::vector<std::pair<Place, std::string_view>> places, uint64_t data_bytes) {
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.begin, a.first.end) < std::pair(b.first.begin, b.first.end);
  });
  uint64_t covered = 0;
  for (const auto& [place, name] : places) {
    if (place.begin != covered) {
      return RefuseSafetensors(
          "tensor " + QuotedName(name),
          "data from byte " + std::to_string(covered) + ", where the previous one ends",
          "from byte " + std::to_string(place.begin));
    }
    covered = place.end;
  }
  if (covered == data_bytes) return {};
  return RefuseSafetensors("data", std::to_string(covered) + " bytes, as in the header",
                           std::to_string(data_bytes) + kCopyAgain);
}

Result<SafetensorsHeader> ReadHeader(const InputFile& file, uint64_t bytes) {
  std::string text(bytes, '\0');
  KINGLET_RETURN_IF_ERROR(file.ReadAt(kLengthBytes, std::as_writable_bytes(std::span<char>(text))));
  SafetensorsHeader header;
  ReadJson(text, header);
  KINGLET_RETURN_IF_ERROR(header.status());
  return header;
}

// A tensor next to the network may have any type; only reading its values is refused.
CheckpointTensor UnreadTensor(const InputFile& file, const Description& tensor) {
  const Status status = InFile(
      file.path(), RefuseSafetensors("tensor " + QuotedName(tensor.name),
                                     "dtype " + ListNames(kSafetensorsTypes),
                                     QuotedName(*tensor.type) + " (save the tensor in float32)"));
  return {tensor.name, *tensor.shape, [status]() -> Result<std::vector<float>> { return status; },
          [status]() -> Result<std::vector<int64_t>> { return status; }};
}

// save_model of the library stores a tied tensor once, and in the metadata under its other name the
// name of the stored one.
void AddTies(const std::vector<std::pair<std::string, std::string>>& metadata,
             CheckpointTensors& tensors) {
  for (const auto& [name, stored] : metadata) {
    const auto find = [&](const std::string& wanted) {
      return std::find_if(tensors.begin(), tensors.end(),
                          [&](const CheckpointTensor& tensor) { return tensor.name == wanted; });
    };
    const auto original = find(stored);
    if (original == tensors.end() || find(name) != tensors.end()) continue;
    original->place = "tie of " + stored;
    CheckpointTensor copy = *original;
    copy.name = name;
    tensors.push_back(std::move(copy));
  }
}

}  // namespace

bool LooksLikeSafetensors(const InputFile& file) {
  std::array<std::byte, kLengthBytes + 1> head{};
  if (file.size() < head.size() || !file.ReadAt(0, head).ok()) return false;
  return LoadLittle<uint64_t>(head.data()) <= kMaxSafetensorsHeaderBytes &&
         head.back() == std::byte{'{'};
}

Result<CheckpointTensors> SafetensorsTensors(const std::shared_ptr<const InputFile>& file) {
  std::array<std::byte, kLengthBytes> word{};
  KINGLET_RETURN_IF_ERROR(file->ReadAt(0, word));
  const auto header_bytes = LoadLittle<uint64_t>(word.data());
  const uint64_t remaining = file->size() - kLengthBytes;
  if (header_bytes > std::min(kMaxSafetensorsHeaderBytes, remaining)) {
    return RefuseSafetensors("byte 0",
                             "a header of at most " +
                                 std::to_string(std::min(kMaxSafetensorsHeaderBytes, remaining)) +
                                 " bytes",
                             std::to_string(header_bytes) + kCopyAgain);
  }
  const uint64_t data_begin = kLengthBytes + header_bytes;
  const uint64_t data_bytes = file->size() - data_begin;
  KINGLET_ASSIGN_OR_RETURN(SafetensorsHeader header, ReadHeader(*file, header_bytes));
  CheckpointTensors weights;
  std::vector<std::pair<Place, std::string_view>> places;
  for (const Description& tensor : header.tensors()) {
    KINGLET_ASSIGN_OR_RETURN(const Place place, CheckTensor(tensor, data_bytes));
    places.emplace_back(place, tensor.name);
    if (!place.type) {
      weights.push_back(UnreadTensor(*file, tensor));
      continue;
    }
    const StoredElements elements = {file->path(), "tensor " + QuotedName(tensor.name), *place.type,
                                     CountEntries(*tensor.shape),
                                     [file, begin = data_begin + place.begin](
                                         uint64_t offset, uint64_t bytes, const ByteSink& sink) {
                                       return file->ReadInPieces(begin + offset, bytes, sink);
                                     }};
    weights.push_back(StoredTensor(tensor.name, elements, WholeView(*tensor.shape)));
  }
  KINGLET_RETURN_IF_ERROR(CheckCover(std::move(places), data_bytes));
  AddTies(header.metadata(), weights);
  return weights;
}

}  // namespace kinglet
