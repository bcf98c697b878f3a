#include "converters/sources/checkpoint_path.h"

#include <charconv>
#include <filesystem>
#include <system_error>

#include "converters/sources/quoted.h"

namespace kinglet {
namespace {

namespace fs = std::filesystem;

// The model-<step>EXTENSION of the largest step among a folder's files.
Result<std::optional<fs::path>> LargestStep(const fs::path& folder, const std::string& extension) {
  std::optional<fs::path> largest;
  int64_t largest_step = -1;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::optional<int64_t> step = StepOf(path.string());
    std::error_code unknown;
    if (!step || path.filename() != "model-" + std::to_string(*step) + extension ||
        !entry->is_regular_file(unknown) || *step <= largest_step) {
      continue;
    }
    largest = path;
    largest_step = *step;
  }
  if (!error) return largest;
  return Status::Refusal(KINGLET_IO_ERROR, "checkpoint", folder.string(), "a folder to list",
                         error.message());
}

// A file NAME_step_N.pt, as OpenNMT-py saves its checkpoints.
struct NamedStep {
  fs::path path;
  std::string name;
  int64_t step = 0;
};

std::optional<NamedStep> NamedStepOf(const fs::path& path) {
  constexpr std::string_view kMark = "_step_", kExtension = ".pt";
  const std::string file = path.filename().string();
  const size_t at = file.rfind(kMark);
  if (at == 0 || at == file.npos || !file.ends_with(kExtension)) return std::nullopt;
  NamedStep named = {path, file.substr(0, at), 0};
  const char* const end = file.data() + file.size() - kExtension.size();
  const auto [last, error] = std::from_chars(file.data() + at + kMark.size(), end, named.step);
  if (error != std::errc() || last != end || named.step < 0) return std::nullopt;
  return named;
}

// The largest step of a folder's files NAME_step_N.pt. Files of two names are not chosen between.
Result<std::optional<fs::path>> LargestNamedStep(const fs::path& folder) {
  std::optional<NamedStep> largest;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    const std::optional<NamedStep> named = NamedStepOf(entry->path());
    if (!named || !entry->is_regular_file(unknown)) continue;
    if (largest && named->name != largest->name) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "checkpoint", folder.string(),
                             "files of one name before _step_, or the path of one file",
                             QuotedName(std::min(named->name, largest->name)) + " and " +
                                 QuotedName(std::max(named->name, largest->name)));
    }
    if (!largest || named->step > largest->step) largest = named;
  }
  return largest ? std::optional(largest->path) : std::nullopt;
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

Result<std::string> FindCheckpoint(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  const fs::path models = fs::path(path) / "models";
  const fs::path folder = fs::is_directory(models, error) ? models : fs::path(path);
  KINGLET_ASSIGN_OR_RETURN(const std::optional<fs::path> found, LargestStep(folder, ".pth"));
  if (found) return found->string();
  KINGLET_ASSIGN_OR_RETURN(const std::optional<fs::path> named, LargestNamedStep(folder));
  if (named) return named->string();
  std::string names = "model-<step>.pth, <name>_step_<n>.pt";
  for (const char* name :
       {"model.pt", "pytorch_model.bin", "model.safetensors", "pytorch_model.bin.index.json",
        "model.safetensors.index.json", "model.npz"}) {
    if (fs::path model = folder / name; fs::is_regular_file(model, error)) return model.string();
    names += std::string(", ") + name;
  }
  KINGLET_ASSIGN_OR_RETURN(const std::optional<fs::path> index, LargestStep(folder, ".index"));
  if (index) return index->string();
  names += ", model-<step>.index";
  return Status::Refusal(KINGLET_NOT_FOUND, "checkpoint", folder.string(), "a file named " + names,
                         "none (give the path of the checkpoint's file)");
}

Result<std::string> FindConfig(const std::string& checkpoint, const std::string& name) {
  std::error_code error;
  const fs::path folder = fs::absolute(checkpoint, error).parent_path();
  for (const fs::path& place : {folder, folder.parent_path()}) {
    const fs::path config = place / name;
    if (fs::exists(config, error)) return config.string();
  }
  return Status::Refusal(KINGLET_NOT_FOUND, "configuration", folder.string(),
                         name + " there or one folder up, or one named by --config", "none");
}

}  // namespace kinglet
