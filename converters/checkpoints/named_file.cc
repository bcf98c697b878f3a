#include "converters/checkpoints/named_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace kinglet {
namespace {

namespace fs = std::filesystem;

bool IsBelow(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

}  // namespace

std::optional<std::string> FileInFolder(const std::string& folder, const std::string& name) {
  const fs::path named(name);
  const bool leaves = named.empty() || named.is_absolute() ||
                      std::find(named.begin(), named.end(), "..") != named.end();
  if (leaves) return std::nullopt;
  std::error_code error;
  const fs::path home = fs::canonical(folder.empty() ? "." : folder, error);
  if (error) return std::nullopt;
  const fs::path file = fs::weakly_canonical(home / named, error);
  if (error) return std::nullopt;
  const fs::path snapshots = home.parent_path();
  const bool cached =
      snapshots.filename() == "snapshots" && IsBelow(file, snapshots.parent_path() / "blobs");
  if (!IsBelow(file, home) && !cached) return std::nullopt;
  return (fs::path(folder) / named).string();
}

}  // namespace kinglet
