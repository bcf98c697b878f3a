#include "converters/checkpoints/wrapped_names.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "converters/checkpoints/quoted.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kParallel = "module.";
constexpr std::string_view kAverageCount = "n_averaged";
constexpr std::array kInnerWrappers = {"_orig_mod."sv, "_fsdp_wrapped_module."sv,
                                       "_checkpoint_wrapped_module."sv};

bool IsNextToNetwork(std::string_view name) {
  return name.starts_with("criterion.") || name.starts_with("generator.") || name == kAverageCount;
}

// Removes `wrapper` from the beginning of all components of the name.
bool TakeOut(std::string_view wrapper, std::string& name) {
  bool taken = false;
  for (size_t at = name.find(wrapper); at != name.npos; at = name.find(wrapper, at)) {
    if (at != 0 && name[at - 1] != '.') {
      ++at;
      continue;
    }
    name.erase(at, wrapper.size());
    taken = true;
  }
  return taken;
}

// Removes "module." from all names, as often as all have it. Returns false if nothing changed.
bool TakeParallelOff(std::vector<std::string>& names) {
  bool taken = false;
  while (true) {
    const bool all = std::all_of(names.begin(), names.end(), [](const std::string& name) {
      return name.starts_with(kParallel) || IsNextToNetwork(name);
    });
    const bool any = std::any_of(names.begin(), names.end(), [](const std::string& name) {
      return name.starts_with(kParallel);
    });
    if (!all || !any) return taken;
    for (std::string& name : names) {
      if (name.starts_with(kParallel)) name.erase(0, kParallel.size());
    }
    taken = true;
  }
}

}  // namespace

std::vector<std::string> UnwrapNames(CheckpointTensors& tensors) {
  std::vector<std::string> names, taken;
  for (const CheckpointTensor& tensor : tensors) names.push_back(tensor.name);
  for (const std::string_view wrapper : kInnerWrappers) {
    bool any = false;
    for (std::string& name : names) any = TakeOut(wrapper, name) || any;
    if (any) taken.push_back(QuotedName(wrapper));
  }
  const bool parallel = TakeParallelOff(names);
  if (parallel) taken.push_back(QuotedName(kParallel));
  if (std::unordered_set<std::string_view>(names.begin(), names.end()).size() != names.size()) {
    return {};
  }
  for (size_t i = 0; i < names.size(); ++i) tensors[i].name = std::move(names[i]);
  if (parallel) {
    std::erase_if(tensors,
                  [](const CheckpointTensor& tensor) { return tensor.name == kAverageCount; });
  }
  return taken;
}

Status KeepPrefix(std::string_view prefix, const std::string& file, CheckpointTensors& tensors) {
  CheckpointTensors kept;
  for (const CheckpointTensor& tensor : tensors) {
    if (!tensor.name.starts_with(prefix)) continue;
    kept.push_back(tensor);
    kept.back().name.erase(0, prefix.size());
  }
  if (kept.empty()) {
    return Status::Refusal(
        KINGLET_INVALID_CHECKPOINT, "checkpoint", file,
        "names that begin with " + QuotedName(prefix) + ", the recipe's \"prefix\"",
        (tensors.empty() ? "no tensors" : QuotedName(tensors.front().name)) +
            " (`kinglet inspect` shows all names)");
  }
  tensors = std::move(kept);
  return {};
}

}  // namespace kinglet
