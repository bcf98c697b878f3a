#include "tools/filtered_parts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "converters/sources/input_file.h"
#include "format/write_file.h"
#include "tools/console.h"

namespace kinglet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunFile = "kinglet-filter.json";
constexpr int kReadableByAll = 0644;

Status WriteError(const std::string& path, int error) {
  return Status::Refusal(KINGLET_IO_ERROR, "filter", path, "a place to write to",
                         std::strerror(error));
}

}  // namespace

Result<FilteredParts> FilteredParts::Open(const std::string& folder, const std::string& run) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return Status::Refusal(KINGLET_IO_ERROR, "filter", folder, "a folder, or a place for one",
                           error.message());
  }
  const std::string path = (fs::path(folder) / kRunFile).string();
  if (!fs::exists(path, error)) {
    KINGLET_RETURN_IF_ERROR(WriteFileAtomically(std::as_bytes(std::span<const char>(run)), path));
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string begun, ReadWholeFile(path));
  if (begun != run) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "filter", folder,
                           "the run that began this folder, " + begun.substr(0, begun.find('\n')) +
                               ", or another folder",
                           run.substr(0, run.find('\n')));
  }
  return FilteredParts(folder);
}

std::string FilteredParts::PathOf(const std::string& input) const {
  return (fs::path(folder_) / fs::path(input).filename()).string();
}

bool FilteredParts::IsDone(const std::string& input) const {
  std::error_code unknown;
  return fs::exists(PathOf(input), unknown);
}

struct PartFile::Contents {
  std::string path, temporary;
  int descriptor = -1;
  Output output;

  Contents(std::string name, int opened)
      : path(std::move(name)), temporary(path + ".part"), descriptor(opened), output(opened) {}
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents() {
    if (descriptor < 0) return;
    ::close(descriptor);
    ::unlink(temporary.c_str());
  }
};

PartFile::PartFile(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
PartFile::PartFile(PartFile&&) noexcept = default;
PartFile& PartFile::operator=(PartFile&&) noexcept = default;
PartFile::~PartFile() = default;

Result<PartFile> PartFile::Create(const std::string& path) {
  const std::string temporary = path + ".part";
  const int descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kReadableByAll);
  if (descriptor < 0) return WriteError(temporary, errno);
  return PartFile(std::make_unique<Contents>(path, descriptor));
}

Status PartFile::Write(std::string_view text) {
  contents_->output.Write(text);
  if (contents_->output.status().ok()) return {};
  return WriteError(contents_->temporary, errno);
}

Status PartFile::Commit() {
  Contents& file = *contents_;
  if (!file.output.Flush().ok() || SynchroniseFile(file.descriptor) != 0) {
    return WriteError(file.temporary, errno);
  }
  if (::rename(file.temporary.c_str(), file.path.c_str()) != 0) return WriteError(file.path, errno);
  ::close(std::exchange(file.descriptor, -1));
  return {};
}

}  // namespace kinglet
