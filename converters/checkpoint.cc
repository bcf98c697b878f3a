#include "converters/checkpoint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "converters/input_file.h"
#include "converters/quoted.h"
#include "converters/torch_legacy.h"
#include "converters/torch_zip.h"
#include "format/digest.h"
#include "format/encoding.h"
#include "format/little_endian.h"

namespace kinglet {
namespace {

Result<std::string> FileDigest(const InputFile& file) {
  DigestStream digest;
  KINGLET_RETURN_IF_ERROR(file.ReadInPieces(
      0, file.size(), [&digest](std::span<const std::byte> piece) { digest.Add(piece); }));
  return HexText(digest.Finish());
}

// The first bytes of a file that is neither container, for the message.
std::string Head(const InputFile& file) {
  constexpr std::array<char, 17> kHex = {"0123456789abcdef"};
  std::array<std::byte, 8> bytes{};
  const std::span<std::byte> head(bytes.data(), std::min<uint64_t>(bytes.size(), file.size()));
  if (head.empty()) return "an empty file";
  if (!file.ReadAt(0, head).ok()) return "unreadable bytes";
  std::string text = "bytes";
  for (const std::byte byte : head) {
    text += ' ';
    text += kHex[static_cast<uint8_t>(byte) >> 4];
    text += kHex[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

// Elements of `Stored` at `bytes`, which may be misaligned, as float32.
template <class Stored, class Convert>
void ConvertAll(std::span<const std::byte> bytes, std::span<float> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = convert(LoadLittle<Stored>(bytes.data() + i * sizeof(Stored)));
  }
}

// `out.size()` contiguous elements of a storage. Integers above 2^24 and doubles are rounded to
// nearest even by the conversion.
void ToFloats(StorageType type, std::span<const std::byte> bytes, std::span<float> out) {
  const auto cast = [](auto value) { return static_cast<float>(value); };
  switch (type) {
    case StorageType::kF64:
      return ConvertAll<double>(bytes, out, cast);
    case StorageType::kF32:
      return ConvertAll<float>(bytes, out, cast);
    case StorageType::kF16:
      return ConvertAll<uint16_t>(bytes, out, HalfToFloat);
    case StorageType::kBF16:
      return ConvertAll<uint16_t>(
          bytes, out, [](uint16_t word) { return std::bit_cast<float>(uint32_t{word} << 16); });
    case StorageType::kI64:
      return ConvertAll<int64_t>(bytes, out, cast);
    case StorageType::kI32:
      return ConvertAll<int32_t>(bytes, out, cast);
    case StorageType::kI16:
      return ConvertAll<int16_t>(bytes, out, cast);
    case StorageType::kI8:
      return ConvertAll<int8_t>(bytes, out, cast);
    case StorageType::kU8:
      return ConvertAll<uint8_t>(bytes, out, cast);
    case StorageType::kBool:
      return ConvertAll<uint8_t>(bytes, out, [](uint8_t byte) { return byte != 0 ? 1.0F : 0.0F; });
  }
}

// What a tensor covers of its storage.
struct Extent {
  uint64_t count;  // entries of the tensor
  uint64_t span;   // elements from the first to the last one it reaches; 0 when it has no entries
  bool contiguous;
};

// Nothing when the numbers overflow.
std::optional<Extent> ExtentOf(const PickleTensor& tensor) {
  Extent extent = {1, 1, true};
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0U) != tensor.shape.end()) {
    return Extent{0, 0, true};
  }
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    const uint64_t size = tensor.shape[i];
    // A dimension of one entry never takes a step: its stride means nothing.
    if (size != 1 && tensor.strides[i] != extent.count) extent.contiguous = false;
    uint64_t reach = 0;
    if (__builtin_mul_overflow(size - 1, tensor.strides[i], &reach) ||
        __builtin_add_overflow(extent.span, reach, &extent.span) ||
        __builtin_mul_overflow(extent.count, size, &extent.count)) {
      return std::nullopt;
    }
  }
  return extent;
}

// Picks a strided tensor's entries, in row-major order, out of the elements from its first one on.
std::vector<float> Gather(const PickleTensor& tensor, uint64_t count,
                          std::span<const float> elements) {
  std::vector<float> values(count);
  std::vector<uint64_t> index(tensor.shape.size(), 0);
  uint64_t at = 0;
  for (float& value : values) {
    value = elements[at];
    for (size_t i = index.size(); i-- > 0;) {
      at += tensor.strides[i];
      if (++index[i] < tensor.shape[i]) break;
      at -= tensor.strides[i] * tensor.shape[i];
      index[i] = 0;
    }
  }
  return values;
}

using Archive = std::variant<TorchLegacyArchive, TorchZipArchive>;

Result<Archive> OpenArchive(const InputFile& file) {
  if (TorchZipArchive::Recognises(file)) {
    KINGLET_ASSIGN_OR_RETURN(TorchZipArchive archive, TorchZipArchive::Open(file));
    return Archive(std::move(archive));
  }
  if (TorchLegacyArchive::Recognises(file)) {
    KINGLET_ASSIGN_OR_RETURN(TorchLegacyArchive archive, TorchLegacyArchive::Open(file));
    return Archive(std::move(archive));
  }
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", "byte 0",
                         "a file written by torch.save (a zip archive or its legacy stream)",
                         Head(file));
}

}  // namespace

struct Checkpoint::Contents {
  explicit Contents(InputFile opened) : file(std::move(opened)) {}
  InputFile file;
  std::string digest;
  std::optional<Archive> archive;
};

Checkpoint::Checkpoint() = default;
Checkpoint::~Checkpoint() = default;

Result<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  try {
    std::unique_ptr<Checkpoint> checkpoint(new Checkpoint());
    checkpoint->contents_ = std::make_unique<Contents>(std::move(file));
    Contents& contents = *checkpoint->contents_;
    Result<Archive> archive = OpenArchive(contents.file);
    if (!archive.ok()) return InFile(path, archive.status());
    contents.archive = std::move(archive).value();
    KINGLET_ASSIGN_OR_RETURN(contents.digest, FileDigest(contents.file));
    return checkpoint;
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "opening", "memory for its directory",
                           "none");
  }
}

const std::string& Checkpoint::path() const { return contents_->file.path(); }
const std::string& Checkpoint::digest() const { return contents_->digest; }
uint64_t Checkpoint::file_size() const { return contents_->file.size(); }

const PickleNode& Checkpoint::root() const {
  return *std::visit([](const auto& archive) { return archive.graph().root; }, *contents_->archive);
}

Result<std::vector<float>> Checkpoint::ReadFloats(const PickleTensor& tensor) const {
  const std::string where = "storage " + QuotedName(tensor.storage_key);
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path(), where, expected, found);
  };
  const std::optional<Extent> extent =
      tensor.shape.size() == tensor.strides.size() ? ExtentOf(tensor) : std::nullopt;
  if (!extent) return refuse("a tensor of fewer than 2^64 entries", "more");
  if (extent->count == 0) return std::vector<float>();
  // Strides of zero could repeat an element without end.
  if (extent->count > tensor.storage_elements) {
    return refuse("a tensor of at most " + std::to_string(tensor.storage_elements) +
                      " entries, as its storage has",
                  std::to_string(extent->count));
  }
  return std::visit(
      [&](const auto& archive) -> Result<std::vector<float>> {
        const Result<uint64_t> bytes = archive.StorageBytes(tensor.storage_key);
        if (!bytes.ok()) return InFile(path(), bytes.status());
        const uint64_t element = StorageTypeBytes(tensor.type);
        if (*bytes / element != tensor.storage_elements || *bytes % element != 0) {
          return refuse(std::to_string(tensor.storage_elements) + " elements of " +
                            std::to_string(element) + " bytes as in the pickle",
                        std::to_string(*bytes) + " bytes");
        }
        if (tensor.offset > tensor.storage_elements ||
            extent->span > tensor.storage_elements - tensor.offset) {
          return refuse("a tensor inside " + std::to_string(tensor.storage_elements) + " elements",
                        std::to_string(extent->span) + " from " + std::to_string(tensor.offset));
        }
        try {
          std::vector<float> elements(extent->span);
          uint64_t filled = 0;
          const Status read = archive.ReadStorage(
              tensor.storage_key, tensor.offset * element, extent->span * element,
              [&](std::span<const std::byte> piece) {
                const uint64_t count = piece.size() / element;
                ToFloats(tensor.type, piece, std::span(elements).subspan(filled, count));
                filled += count;
              });
          if (!read.ok()) return InFile(path(), read);
          if (extent->contiguous) return elements;
          return Gather(tensor, extent->count, elements);
        } catch (const std::bad_alloc&) {
          return Status::Refusal(KINGLET_OUT_OF_MEMORY, path(), where,
                                 "memory for " + std::to_string(extent->span) + " values", "none");
        }
      },
      *contents_->archive);
}

Result<StateDict> AsStateDict(const PickleNode& node) {
  const auto refuse = [](const std::string& where, const std::string& expected,
                         const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "state dict", where, expected, found);
  };
  const auto* dict = node.As<PickleDict>();
  if (dict == nullptr) return refuse("object", "a dict of names to tensors", node.Describe());
  try {
    StateDict tensors;
    std::unordered_map<std::string_view, size_t> places;
    for (const auto& [key, value] : dict->items) {
      const auto* name = key->As<std::string>();
      if (name == nullptr) {
        return refuse("entry " + std::to_string(tensors.size()), "a name as str", key->Describe());
      }
      const auto* tensor = value->As<PickleTensor>();
      if (tensor == nullptr) return refuse(QuotedName(*name), "a tensor", value->Describe());
      // A name set again keeps its place and takes the later value, as in Python.
      const auto [place, added] = places.try_emplace(*name, tensors.size());
      if (added) {
        tensors.push_back(NamedTensor{*name, tensor});
      } else {
        tensors[place->second].tensor = tensor;
      }
    }
    return tensors;
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "state dict", "reading", "memory for its names",
                           "none");
  }
}

}  // namespace kinglet
