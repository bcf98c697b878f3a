#include "converters/checkpoints/list_folder.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>

namespace kinglet {

Result<std::vector<std::filesystem::path>> ListFolder(const std::filesystem::path& folder) {
  const auto refuse = [&folder](int error) {
    if (error == ENOMEM) throw std::bad_alloc();
    return Status::Refusal(KINGLET_IO_ERROR, "checkpoint", folder.string(), "a folder to list",
                           std::generic_category().message(error));
  };
  const auto close = [](DIR* open) { ::closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> listing(
      ::opendir(folder.empty() ? "." : folder.c_str()), close);
  if (listing == nullptr) return refuse(errno);
  std::vector<std::filesystem::path> paths;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(listing.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") paths.push_back(folder / name);
  }
  if (errno != 0) return refuse(errno);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace kinglet
