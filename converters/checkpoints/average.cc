#include "converters/checkpoints/average.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "format/digest.h"
#include "format/encoding.h"

namespace kinglet {
namespace {

// One tensor in all files.
using Copies = std::vector<CheckpointTensor>;

// The mean of the vectors that `read(copy)` returns.
template <class Read>
Result<std::vector<float>> MeanOf(const Copies& copies, const Read& read) {
  std::vector<double> sums;
  for (const CheckpointTensor& copy : copies) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> values, read(copy));
    sums.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) sums[i] += double{values[i]};
  }
  std::vector<float> mean(sums.size());
  const auto count = static_cast<double>(copies.size());
  for (size_t i = 0; i < sums.size(); ++i) mean[i] = static_cast<float>(sums[i] / count);
  return mean;
}

Result<std::vector<int64_t>> EqualIntegers(const Copies& copies) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<int64_t> integers, ReadIntegers(copies.front()));
  for (const CheckpointTensor& copy : copies) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<int64_t> others, ReadIntegers(copy));
    if (others == integers) continue;
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "average", "tensor " + copy.name,
                           "equal integers in all checkpoints, as they have no mean",
                           "other integers (give checkpoints of one training)");
  }
  return integers;
}

CheckpointTensor MeanTensor(Copies found) {
  const auto copies = std::make_shared<const Copies>(std::move(found));
  CheckpointTensor tensor = copies->front();
  tensor.values = [copies] {
    return MeanOf(*copies, [](const CheckpointTensor& copy) { return ReadFinite(copy); });
  };
  if (tensor.integers) tensor.integers = [copies] { return EqualIntegers(*copies); };
  if (tensor.rows) {
    tensor.rows = [copies](uint64_t first, uint64_t count) {
      return MeanOf(*copies, [&](const CheckpointTensor& copy) {
        return ReadFiniteRows(copy, first, count);
      });
    };
  }
  // Tensors that share their bytes in every file are one.
  tensor.place.clear();
  for (const CheckpointTensor& copy : *copies) {
    if (copy.place.empty()) {
      tensor.place.clear();
      break;
    }
    tensor.place += copy.place + "\n";
  }
  return tensor;
}

Status RefuseFile(const CheckpointFile& file, const std::string& expected,
                  const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "average", file.path, expected,
                         found + " (average files of one training run)");
}

// Adds the tensors of one more file to the copies, which are in the order of the first file.
Status AddFile(const CheckpointFile& first, const CheckpointFile& file,
               std::vector<Copies>& copies) {
  std::unordered_map<std::string_view, const CheckpointTensor*> by_name;
  for (const CheckpointTensor& tensor : file.tensors) by_name.emplace(tensor.name, &tensor);
  for (Copies& tensor : copies) {
    const CheckpointTensor& original = tensor.front();
    const auto found = by_name.find(original.name);
    if (found == by_name.end()) {
      return RefuseFile(file, "the tensors of " + first.path, "no " + QuotedName(original.name));
    }
    if (found->second->shape != original.shape) {
      return RefuseFile(file,
                        "shape " + ShapeText(original.shape) + " of " + QuotedName(original.name) +
                            " as in " + first.path,
                        ShapeText(found->second->shape));
    }
    tensor.push_back(*found->second);
    by_name.erase(found);
  }
  if (by_name.empty()) return {};
  const auto more = std::find_if(
      file.tensors.begin(), file.tensors.end(),
      [&by_name](const CheckpointTensor& tensor) { return by_name.contains(tensor.name); });
  return RefuseFile(file, "the tensors of " + first.path, "also " + QuotedName(more->name));
}

}  // namespace

Result<CheckpointFile> AverageOf(std::vector<CheckpointFile> files) {
  CheckpointFile average = std::move(files.front());
  std::vector<Copies> copies;
  for (CheckpointTensor& tensor : average.tensors) copies.push_back({std::move(tensor)});
  std::string digests = average.digest;
  for (size_t i = 1; i < files.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(AddFile(average, files[i], copies));
    digests += files[i].digest;
  }
  average.tensors.clear();
  for (Copies& tensor : copies) average.tensors.push_back(MeanTensor(std::move(tensor)));
  average.digest = HexText(DigestOf(std::as_bytes(std::span<const char>(digests))));
  average.notes.push_back("the mean of " + std::to_string(files.size()) + " checkpoints");
  return average;
}

}  // namespace kinglet
