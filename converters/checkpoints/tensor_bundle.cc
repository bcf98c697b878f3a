#include "converters/checkpoints/tensor_bundle.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "converters/checkpoints/crc32c.h"
#include "converters/checkpoints/elements.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/checkpoints/sorted_table.h"
#include "converters/checkpoints/varint_reader.h"

namespace kinglet {
namespace {

constexpr std::string_view kIndexSuffix = ".index";
// The entry that TensorFlow 2 adds to the variables: a description of the objects that own them.
constexpr std::string_view kObjectGraph = "_CHECKPOINTABLE_OBJECT_GRAPH";
constexpr uint64_t kMaxShards = 512;
constexpr size_t kMaxDimensions = 32;

// Field numbers of tensor_bundle.proto and tensor_shape.proto.
constexpr uint64_t kHeaderShards = 1, kHeaderEndianness = 2, kHeaderVersion = 3;
constexpr uint64_t kVersionMinConsumer = 2;
constexpr uint64_t kEntryType = 1, kEntryShape = 2, kEntryShard = 3, kEntryOffset = 4;
constexpr uint64_t kEntrySize = 5, kEntryCrc = 6, kEntrySlices = 7;
constexpr uint64_t kShapeDimension = 2, kShapeUnknownRank = 3, kDimensionSize = 1;
constexpr uint64_t kReadableVersion = 1;

// Numbers of types.proto.
std::optional<ElementType> TypeOf(uint64_t number) {
  constexpr std::array<std::pair<uint64_t, ElementType>, 12> kTypes = {{{1, ElementType::kF32},
                                                                        {2, ElementType::kF64},
                                                                        {3, ElementType::kI32},
                                                                        {4, ElementType::kU8},
                                                                        {5, ElementType::kI16},
                                                                        {6, ElementType::kI8},
                                                                        {9, ElementType::kI64},
                                                                        {10, ElementType::kBool},
                                                                        {14, ElementType::kBF16},
                                                                        {17, ElementType::kU16},
                                                                        {19, ElementType::kF16},
                                                                        {22, ElementType::kU32}}};
  for (const auto& [known, type] : kTypes) {
    if (known == number) return type;
  }
  return std::nullopt;
}

Status RefuseBundle(const std::string& where, const std::string& expected,
                    const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "tensor bundle", where, expected, found);
}

// A variable as the index describes it.
struct Variable {
  std::string name;
  uint64_t type = 0;
  std::vector<uint64_t> shape;
  uint64_t shard = 0, offset = 0, bytes = 0;
  uint64_t crc = 0;  // masked

  std::string Where() const { return "variable " + QuotedName(name); }
};

Result<uint64_t> ReadBundleHeader(std::string_view message) {
  const auto fields = ProtoFields(message);
  if (!fields) return RefuseBundle("header", "a message", "other bytes");
  uint64_t shards = 0;
  for (const ProtoField& field : *fields) {
    if (field.number == kHeaderShards) shards = field.value;
    if (field.number == kHeaderEndianness && field.value != 0) {
      return RefuseBundle("header", "little-endian values", "big-endian ones");
    }
    if (field.number != kHeaderVersion) continue;
    const auto version = ProtoFields(field.bytes);
    if (!version) return RefuseBundle("header", "a version", "other bytes");
    for (const ProtoField& part : *version) {
      if (part.number != kVersionMinConsumer || part.value <= kReadableVersion) continue;
      return RefuseBundle("header", "a file for readers of version 1",
                          "one for version " + std::to_string(part.value));
    }
  }
  if (shards >= 1 && shards <= kMaxShards) return shards;
  return RefuseBundle("header", "1 to " + std::to_string(kMaxShards) + " data files",
                      std::to_string(shards));
}

Status ReadShape(std::string_view message, Variable& variable) {
  const auto fields = ProtoFields(message);
  if (!fields) return RefuseBundle(variable.Where(), "a shape", "other bytes");
  for (const ProtoField& field : *fields) {
    if (field.number == kShapeUnknownRank && field.value != 0) {
      return RefuseBundle(variable.Where(), "a shape", "an unknown one");
    }
    if (field.number != kShapeDimension) continue;
    const auto dimension = ProtoFields(field.bytes);
    if (!dimension) return RefuseBundle(variable.Where(), "a shape", "other bytes");
    uint64_t size = 0;
    for (const ProtoField& part : *dimension) {
      if (part.number == kDimensionSize) size = part.value;
    }
    if (size > INT64_MAX) return RefuseBundle(variable.Where(), "sizes from 0", "one below 0");
    if (variable.shape.size() == kMaxDimensions) {
      return RefuseBundle(variable.Where(), "at most 32 dimensions", "more");
    }
    variable.shape.push_back(size);
  }
  return {};
}

Result<Variable> ReadVariable(const SortedTableEntry& entry, uint64_t shards) {
  Variable variable;
  variable.name = entry.key;
  const auto fields = ProtoFields(entry.value);
  if (!fields) return RefuseBundle(variable.Where(), "a message", "other bytes");
  for (const ProtoField& field : *fields) {
    if (field.number == kEntryType) variable.type = field.value;
    if (field.number == kEntryShard) variable.shard = field.value;
    if (field.number == kEntryOffset) variable.offset = field.value;
    if (field.number == kEntrySize) variable.bytes = field.value;
    if (field.number == kEntryCrc) variable.crc = field.value;
    if (field.number == kEntryShape) KINGLET_RETURN_IF_ERROR(ReadShape(field.bytes, variable));
    if (field.number == kEntrySlices) {
      return RefuseBundle(variable.Where(), "a variable in one piece", "one saved in slices");
    }
  }
  if (variable.shard < shards) return variable;
  return RefuseBundle(variable.Where(), "one of " + std::to_string(shards) + " data files",
                      "number " + std::to_string(variable.shard));
}

// "PREFIX.data-00000-of-00001".
std::string ShardPath(const std::string& index_path, uint64_t shard, uint64_t shards) {
  constexpr size_t kLongest = 48;
  std::array<char, kLongest> suffix{};
  std::snprintf(suffix.data(), suffix.size(), ".data-%05u-of-%05u", static_cast<unsigned>(shard),
                static_cast<unsigned>(shards));
  return index_path.substr(0, index_path.size() - kIndexSuffix.size()) + suffix.data();
}

// Checks that every variable is inside its data file, and that no two share a byte, so that all
// variables together are no larger than the files.
Status CheckPlaces(const std::vector<Variable>& variables,
                   const std::vector<std::shared_ptr<const InputFile>>& shards) {
  std::vector<const Variable*> order;
  for (const Variable& variable : variables) {
    const uint64_t size = shards[variable.shard]->size();
    if (variable.offset > size || variable.bytes > size - variable.offset) {
      return RefuseBundle(
          variable.Where(), "bytes inside the " + std::to_string(size) + " of its data file",
          std::to_string(variable.bytes) + " from " + std::to_string(variable.offset) + kCopyAgain);
    }
    if (variable.bytes > 0) order.push_back(&variable);
  }
  std::sort(order.begin(), order.end(), [](const Variable* a, const Variable* b) {
    return std::tie(a->shard, a->offset) < std::tie(b->shard, b->offset);
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const Variable &before = *order[i - 1], &variable = *order[i];
    if (before.shard != variable.shard || before.offset + before.bytes <= variable.offset) continue;
    return RefuseBundle(variable.Where(), "bytes of its own", "some of " + QuotedName(before.name));
  }
  return {};
}

// The variable as a tensor. Checks the checksum of its bytes.
Result<CheckpointTensor> BundleTensor(const Variable& variable,
                                      const std::shared_ptr<const InputFile>& file) {
  const std::optional<ElementType> type = TypeOf(variable.type);
  if (!type) {
    const Status status = RefuseBundle(variable.Where(), "numbers",
                                       "type " + std::to_string(variable.type) + " of types.proto");
    return CheckpointTensor{variable.name, variable.shape,
                            [status]() -> Result<std::vector<float>> { return status; },
                            [status]() -> Result<std::vector<int64_t>> { return status; }};
  }
  const uint64_t count = CountEntries(variable.shape);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, ElementBytes(*type), &bytes) || bytes != variable.bytes) {
    return RefuseBundle(variable.Where(), "the bytes that its shape takes",
                        std::to_string(variable.bytes));
  }
  Crc32c crc;
  KINGLET_RETURN_IF_ERROR(
      file->ReadInPieces(variable.offset, variable.bytes,
                         [&crc](std::span<const std::byte> piece) { crc.Add(piece); }));
  if (crc.masked() != variable.crc) {
    return RefuseBundle(variable.Where(), "bytes with their checksum",
                        std::string("another checksum") + kCopyAgain);
  }
  StoredElements elements = {
      file->path(), variable.Where(), *type, count,
      [file, begin = variable.offset](uint64_t offset, uint64_t length, const ByteSink& sink) {
        return file->ReadInPieces(begin + offset, length, sink);
      }};
  return StoredTensor(variable.name, std::move(elements), WholeView(variable.shape));
}

}  // namespace

bool LooksLikeTensorBundle(const InputFile& index) {
  return index.path().ends_with(kIndexSuffix) && LooksLikeSortedTable(index);
}

Result<TensorBundle> OpenTensorBundle(std::shared_ptr<const InputFile> index) {
  const std::string& path = index->path();
  const auto in_index = [&path](const Status& status) {
    return status.code() == KINGLET_INVALID_CHECKPOINT ? InFile(path, status) : status;
  };
  const Result<std::vector<SortedTableEntry>> entries = ReadSortedTable(*index);
  if (!entries.ok()) return in_index(entries.status());
  // The header's key is empty, so it comes first.
  if (entries->empty() || !entries->front().key.empty()) {
    return in_index(RefuseBundle("header", "one", "none"));
  }
  const Result<uint64_t> shards = ReadBundleHeader(entries->front().value);
  if (!shards.ok()) return in_index(shards.status());
  std::vector<Variable> variables;
  for (size_t i = 1; i < entries->size(); ++i) {
    if ((*entries)[i].key == kObjectGraph) continue;
    Result<Variable> variable = ReadVariable((*entries)[i], *shards);
    if (!variable.ok()) return in_index(variable.status());
    variables.push_back(std::move(variable).value());
  }
  TensorBundle bundle;
  std::vector<std::shared_ptr<const InputFile>> data;
  for (uint64_t shard = 0; shard < *shards; ++shard) {
    KINGLET_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(ShardPath(path, shard, *shards)));
    data.push_back(std::make_shared<const InputFile>(std::move(file)));
  }
  if (const Status status = CheckPlaces(variables, data); !status.ok()) return in_index(status);
  for (const Variable& variable : variables) {
    const auto& file = data[variable.shard];
    Result<CheckpointTensor> tensor = BundleTensor(variable, file);
    if (!tensor.ok()) return in_index(tensor.status());
    bundle.tensors.push_back(std::move(tensor).value());
  }
  bundle.files.push_back(std::move(index));
  bundle.files.insert(bundle.files.end(), data.begin(), data.end());
  return bundle;
}

}  // namespace kinglet
