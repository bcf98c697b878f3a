#include "converters/checkpoints/checkpoint_path.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <set>
#include <span>
#include <system_error>
#include <vector>

#include "converters/checkpoints/checkpoint.h"
#include "converters/checkpoints/list_folder.h"
#include "converters/checkpoints/numpy_tensors.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/safetensors.h"
#include "format/input_file.h"

namespace kinglet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamed = 20;
constexpr std::array<const char*, 6> kOtherParts = {"optim", "sched", "rng",
                                                    "jit",   "args",  "scaler"};

// The folder's regular files, sorted by name, without hidden ones, such as parts of a copy. Of
// links to one file only the first is kept.
Result<std::vector<fs::path>> FilesOf(const fs::path& folder) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<fs::path> files, ListFolder(folder));
  std::erase_if(files, [](const fs::path& file) {
    std::error_code unknown;
    return file.filename().string().starts_with('.') || !fs::is_regular_file(file, unknown);
  });
  std::set<fs::path> targets;
  std::erase_if(files, [&](const fs::path& file) {
    std::error_code unknown;
    return !targets.insert(fs::canonical(file, unknown)).second;
  });
  return files;
}

// Names that frameworks give their checkpoints: "<begin>..<part>..<end>".
struct NamePattern {
  std::string_view begin, part, end;
};
constexpr std::array<NamePattern, 15> kCheckpointNames = {{{"epoch-", "", ".pt"},
                                                           {"", "_step_", ".pt"},
                                                           {"checkpoint-", "", ".pt"},
                                                           {"checkpoint", "", ".pt"},
                                                           {"best-", "-loss", ".pt"},
                                                           {"pretrained", "", ".pt"},
                                                           {"", "", "epoch.pth"},
                                                           {"", ".ave", ".pth"},
                                                           {"", "", ".best.pth"},
                                                           {"checkpoint", "", ".pth"},
                                                           {"latest", "", ".pth"},
                                                           {"model", "", ".pth"},
                                                           {"lm", "", ".ckpt"},
                                                           {"model", "", ".ckpt"},
                                                           {"model", "", ".npz"}}};

bool Fits(const NamePattern& pattern, const std::string& name) {
  const bool long_enough =
      name.size() >= pattern.begin.size() + pattern.part.size() + pattern.end.size();
  return long_enough && name.starts_with(pattern.begin) &&
         name.find(pattern.part) != std::string::npos && name.ends_with(pattern.end);
}

bool IsCheckpointName(const std::string& name) {
  return std::any_of(kCheckpointNames.begin(), kCheckpointNames.end(),
                     [&name](const NamePattern& pattern) { return Fits(pattern, name); });
}

// The files with a checkpoint's name. Of model.pt and the forms in which Hugging Face's library
// leaves one model, the first counts.
std::vector<fs::path> NamedCandidates(const fs::path& folder, const std::vector<fs::path>& files) {
  std::vector<fs::path> candidates;
  for (const char* name : {"model.pt", "pytorch_model.bin", "model.safetensors",
                           "pytorch_model.bin.index.json", "model.safetensors.index.json"}) {
    std::error_code error;
    if (!candidates.empty() || !fs::is_regular_file(folder / name, error)) continue;
    candidates.push_back(folder / name);
  }
  for (const fs::path& file : files) {
    if (IsCheckpointName(file.filename().string())) candidates.push_back(file);
  }
  return candidates;
}

// The files that begin like a container of tensors, except those of other parts of training.
std::vector<fs::path> FilesOfTensors(const std::vector<fs::path>& files) {
  std::vector<fs::path> candidates;
  for (const fs::path& path : files) {
    const std::string name = path.filename().string();
    const bool other = std::any_of(kOtherParts.begin(), kOtherParts.end(), [&](const char* part) {
      return name.find(part) != std::string::npos;
    });
    if (other) continue;
    const Result<InputFile> file = InputFile::Open(path.string());
    if (file.ok() &&
        (LooksLikeNpz(*file) || LooksLikeSafetensors(*file) || Checkpoint::Recognises(*file))) {
      candidates.push_back(path);
    }
  }
  return candidates;
}

// The name in the line `model_checkpoint_path: "NAME"` of TensorFlow's file `checkpoint`.
std::string LatestOf(const fs::path& file) {
  constexpr std::string_view kKey = "model_checkpoint_path: \"";
  constexpr uint64_t kLongest = 1 << 16;
  const Result<InputFile> opened = InputFile::Open(file.string());
  if (!opened.ok()) return "";
  std::string text(std::min(opened->size(), kLongest), '\0');
  if (!opened->ReadAt(0, std::as_writable_bytes(std::span<char>(text))).ok()) return "";
  if (!text.starts_with(kKey)) return "";
  return text.substr(kKey.size(), text.find('"', kKey.size()) - kKey.size());
}

// The index of the TensorFlow checkpoint that another of its files belongs to: `checkpoint`, .meta,
// .data-00000-of-00001, or a SavedModel's saved_model.pb. Empty for other files.
std::string TensorFlowIndexOf(const fs::path& file) {
  const std::string name = file.filename().string();
  std::string prefix;
  if (name == "checkpoint") {
    const fs::path latest = LatestOf(file);
    if (!latest.empty()) prefix = (file.parent_path() / latest.filename()).string();
  } else if (name == "saved_model.pb") {
    prefix = (file.parent_path() / "variables" / "variables").string();
  } else if (const size_t data = name.rfind(".data-"); data != name.npos) {
    prefix = (file.parent_path() / name.substr(0, data)).string();
  } else if (name.ends_with(".meta")) {
    prefix = (file.parent_path() / file.stem()).string();
  }
  std::error_code unknown;
  const std::string index = prefix + ".index";
  return !prefix.empty() && fs::is_regular_file(index, unknown) ? index : std::string();
}

// The index of a shard of Hugging Face's library: of model-00001-of-00002.safetensors
// model.safetensors.index.json. Empty for other files.
std::string ShardIndexOf(const fs::path& file) {
  constexpr std::string_view kForm = "-00000-of-00000";
  const std::string stem = file.stem().string();
  if (stem.size() < kForm.size()) return {};
  std::string end = stem.substr(stem.size() - kForm.size());
  std::replace_if(
      end.begin(), end.end(), [](char c) { return c >= '0' && c <= '9'; }, '0');
  if (end != kForm) return {};
  const std::string model = stem.substr(0, stem.size() - kForm.size());
  return (file.parent_path() / (model + file.extension().string() + ".index.json")).string();
}

// The checkpoints that torch.distributed.checkpoint writes are folders of these files.
constexpr std::string_view kDistributedPart = ".distcp";

Status RefuseDistributed(const fs::path& folder) {
  return Status::Refusal(KINGLET_UNSUPPORTED, "checkpoint", folder.string(), "one file of tensors",
                         "the parts of a distributed checkpoint (`python3 -m "
                         "torch.distributed.checkpoint.format_utils dcp_to_torch " +
                             folder.string() + " model.pt` makes one file)");
}

bool HasEnding(const fs::path& file, std::string_view ending) {
  return file.filename().string().ends_with(ending);
}

}  // namespace

std::optional<int64_t> StepOf(std::string_view path) {
  constexpr std::string_view kPrefix = "model-";
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  const std::string_view rest = name.substr(static_cast<size_t>(end - name.data()));
  if (error != std::errc() || step < 0 || !(rest.starts_with('.') || rest.starts_with('-'))) {
    return std::nullopt;
  }
  return step;
}

namespace {

// The files of the folder that have most of the name's beginning may be meant.
Status RefuseMissing(const fs::path& path) {
  const std::string name = path.filename().string();
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const Result<std::vector<fs::path>> files = FilesOf(folder);
  std::string found = "no such file";
  std::vector<fs::path> nearest = files.ok() ? *files : std::vector<fs::path>();
  if (!files.ok()) {
    found += ", and no folder '" + folder.string() + "' (correct the path)";
  } else if (nearest.empty()) {
    found += " and none in '" + folder.string() + "' (correct the path)";
  } else {
    const auto common = [&name](const fs::path& file) {
      const std::string other = file.filename().string();
      return std::mismatch(name.begin(), name.end(), other.begin(), other.end()).first -
             name.begin();
    };
    std::stable_sort(nearest.begin(), nearest.end(),
                     [&](const fs::path& a, const fs::path& b) { return common(a) > common(b); });
    found += " (its folder has ";
    constexpr size_t kNearest = 5;
    for (size_t i = 0; i < std::min(nearest.size(), kNearest); ++i) {
      found += (i == 0 ? "" : ", ") + nearest[i].filename().string();
    }
    found += nearest.size() > kNearest ? ", ..)" : ")";
  }
  return Status::Refusal(KINGLET_NOT_FOUND, path.string(), "open", "a readable file", found);
}

}  // namespace

Result<std::string> FindCheckpoint(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (HasEnding(path, kDistributedPart)) return RefuseDistributed(fs::path(path).parent_path());
    const std::string index = TensorFlowIndexOf(path), shards = ShardIndexOf(path);
    if (!index.empty()) return index;
    if (fs::is_regular_file(shards, error)) return shards;
    if (!fs::exists(path, error) && !error) return RefuseMissing(path);
    return path;
  }
  const fs::path models = fs::path(path) / "models";
  const fs::path folder = fs::is_directory(models, error) ? models : fs::path(path);
  KINGLET_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesOf(folder));
  std::vector<fs::path> candidates = NamedCandidates(folder, files);
  if (candidates.empty()) {
    std::copy_if(files.begin(), files.end(), std::back_inserter(candidates),
                 [](const fs::path& file) { return HasEnding(file, ".index"); });
    for (const char* name : {"checkpoint", "saved_model.pb"}) {
      const std::string index = TensorFlowIndexOf(folder / name);
      if (!index.empty()) candidates = {index};
    }
  }
  if (candidates.empty() && std::any_of(files.begin(), files.end(), [](const fs::path& file) {
        return HasEnding(file, kDistributedPart);
      })) {
    return RefuseDistributed(folder);
  }
  if (candidates.empty()) candidates = FilesOfTensors(files);
  if (candidates.size() == 1) return candidates.front().string();
  if (candidates.empty()) {
    return Status::Refusal(KINGLET_NOT_FOUND, "checkpoint", folder.string(),
                           "a file named model-<step>.pth, <name>_step_<n>.pt, model.pt, "
                           "epoch-<n>.pt, <n>epoch.pth, model.ckpt, pytorch_model.bin, "
                           "model.safetensors, a TensorFlow checkpoint or another file of tensors",
                           "none (give the path of the checkpoint's file)");
  }
  if (const std::string index = ShardIndexOf(candidates.front()); !index.empty()) {
    return Status::Refusal(KINGLET_NOT_FOUND, index, "open", "the index of the shards next to it",
                           "none (copy or download it too)");
  }
  std::string names;
  for (size_t i = 0; i < candidates.size() && i < kMostNamed; ++i) {
    names += (i == 0 ? "" : ", ") + candidates[i].filename().string();
  }
  if (candidates.size() > kMostNamed) names += ", ..";
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "checkpoint", folder.string(),
                         "one checkpoint (name the file instead of its folder)", names);
}

Result<std::string> FindConfig(const std::string& checkpoint, const std::string& name, int levels) {
  std::error_code error;
  const fs::path folder = fs::absolute(checkpoint, error).parent_path();
  fs::path place = folder;
  for (int level = 0; level <= levels; ++level, place = place.parent_path()) {
    const fs::path config = place / name;
    if (fs::exists(config, error)) return config.string();
  }
  const char* const up = levels == 1 ? " there or one folder up" : " there or up to two folders up";
  return Status::Refusal(KINGLET_NOT_FOUND, "configuration", folder.string(),
                         name + up + ", or one named by --config", "none");
}

std::string ConfigNextTo(const std::string& checkpoint) {
  const Result<std::string> found = FindConfig(checkpoint, "config.yaml", 0);
  return found.ok() ? *found : "";
}

}  // namespace kinglet
