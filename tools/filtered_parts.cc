#include "tools/filtered_parts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "converters/checkpoints/packer.h"
#include "format/input_file.h"
#include "format/system.h"
#include "format/write_file.h"
#include "tools/console.h"
#include "tools/json_lines.h"

namespace kinglet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOwnNames = "kinglet-filter.";
constexpr const char* kStateFile = "kinglet-filter.json";
constexpr int kReadableByAll = 0644;

Status WriteError(const std::string& path, int error) {
  return Status::Refusal(KINGLET_IO_ERROR, "filter", path, "a file that can be written",
                         std::strerror(error));
}

Status RefuseFolder(const std::string& path, const std::string& expected,
                    const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "filter", path, expected, found);
}

// The beginning of a result's line: the result's name and identity.
std::string ResultText(const std::string& name, const FileIdentity& result) {
  JsonLine line;
  line.Key("result").Text(name).Key("bytes").Integer(result.bytes);
  std::string text = line.Key("digest").Text(result.digest).Finish();
  return text.substr(0, text.rfind('}'));
}

std::string ResultLine(const std::string& name, const FileIdentity& result,
                       const FileIdentity& input) {
  JsonLine line;
  line.Key("input_bytes").Integer(input.bytes).Key("input_digest").Text(input.digest);
  return ResultText(name, result) + "," + line.Finish().substr(1);
}

}  // namespace

std::string ResultName(const std::string& input, const std::string& pack) {
  fs::path name = fs::path(input).filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  return name.string() + (pack.empty() ? "" : "." + pack);
}

Result<FileIdentity> IdentityOf(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  KINGLET_ASSIGN_OR_RETURN(std::string digest, DigestOf(file));
  return FileIdentity{file.size(), std::move(digest)};
}

std::string FilteredParts::StatePath() const { return (fs::path(folder_) / kStateFile).string(); }

Result<FilteredParts> FilteredParts::Open(const std::string& folder, const std::string& run,
                                          const std::vector<std::string>& inputs,
                                          const std::string& pack) {
  FilteredParts parts(folder, pack);
  std::error_code error;
  for (const std::string& input : inputs) {
    if (ResultName(input, pack).starts_with(kOwnNames)) {
      return RefuseFolder(input, "a name that does not begin with kinglet-filter.",
                          "the name of the folder's own files (rename it)");
    }
    if (!fs::exists(parts.PathOf(input), error)) continue;
    for (const std::string& other : inputs) {
      if (!fs::equivalent(parts.PathOf(input), other, error)) continue;
      return RefuseFolder(folder, "a folder without the FILES",
                          other + " in it (name another folder)");
    }
  }
  fs::create_directories(folder, error);
  if (error) {
    return Status::Refusal(KINGLET_IO_ERROR, "filter", folder,
                           "a folder, or a path where one can be made", error.message());
  }
  if (!fs::exists(parts.StatePath(), error)) {
    KINGLET_RETURN_IF_ERROR(
        WriteFileAtomically(std::as_bytes(std::span<const char>(run)), parts.StatePath()));
  }
  KINGLET_RETURN_IF_ERROR(parts.ReadState(run));
  return parts;
}

Status FilteredParts::ReadState(const std::string& run) {
  KINGLET_ASSIGN_OR_RETURN(const std::string state, ReadWholeFile(StatePath()));
  const std::vector<std::string_view> lines = LinesOf(state);
  const std::string begun(lines.empty() ? "" : lines.front());
  if (begun + "\n" != run) {
    return RefuseFolder(folder_, "the run that began this folder, " + begun + ", or another folder",
                        run.substr(0, run.find('\n')));
  }
  run_ = run;
  results_.clear();
  for (size_t i = 1; i < lines.size(); ++i) results_.insert(std::string(lines[i]) + "\n");
  ends_whole_ = state.ends_with('\n');
  return {};
}

std::string FilteredParts::PathOf(const std::string& input) const {
  return (fs::path(folder_) / ResultName(input, pack_)).string();
}

Result<bool> FilteredParts::IsDone(const std::string& input, const FileIdentity& state,
                                   bool& was_another) {
  was_another = false;
  std::error_code unknown;
  if (!fs::exists(PathOf(input), unknown)) return false;
  KINGLET_ASSIGN_OR_RETURN(const FileIdentity result, IdentityOf(PathOf(input)));
  const std::string text = ResultText(ResultName(input, pack_), result);
  const auto is_known = [&] {
    const auto found = results_.lower_bound(text);
    return found != results_.end() && found->starts_with(text);
  };
  // Another process may have written the result meanwhile.
  if (!is_known()) KINGLET_RETURN_IF_ERROR(ReadState(run_));
  if (!is_known()) {
    return RefuseFolder(PathOf(input), "no file, or the result that a run of this folder wrote",
                        "another file (remove it, or name another folder)");
  }
  was_another = results_.count(ResultLine(ResultName(input, pack_), result, state)) == 0;
  return !was_another;
}

Status FilteredParts::Keep(const std::string& input, const FileIdentity& state, PartFile part) {
  KINGLET_ASSIGN_OR_RETURN(const FileIdentity result, part.Finish());
  // The state is written before the rename: a result without its line would count as another
  // program's file. The line of a run that was killed in between is there already.
  const std::string line = ResultLine(ResultName(input, pack_), result, state);
  if (results_.contains(line)) return part.Commit();
  const int descriptor = ::open(StatePath().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) return WriteError(StatePath(), errno);
  Output output(descriptor);
  output.Write((std::exchange(ends_whole_, true) ? "" : "\n") + line);
  const int error = output.Flush().ok() ? system::Synchronise(descriptor) : errno;
  ::close(descriptor);
  if (error != 0) return WriteError(StatePath(), error);
  results_.insert(line);
  return part.Commit();
}

struct PartFile::Contents {
  std::string path, temporary;
  int descriptor = -1;
  Output output;
  std::optional<TemporaryName> registered;
  std::unique_ptr<Packer> packer;  // nullptr: the result is not packed
  std::string packed;

  Contents(std::string name, int opened)
      : path(std::move(name)),
        temporary(TemporaryOf(path)),
        descriptor(opened),
        output(opened),
        registered(std::in_place, temporary) {}
  void Write(std::string_view text, bool ends) {
    if (packer == nullptr) return output.Write(text);
    packed.clear();
    packer->Pack(text, ends, packed);
    output.Write(packed);
  }
  static std::string TemporaryOf(const std::string& path) {
    const fs::path place(path);
    const std::string name = std::string(kOwnNames) + place.filename().string() + ".part";
    return (place.parent_path() / name).string();
  }
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

Result<PartFile> PartFile::Create(const std::string& path, const std::string& pack) {
  const std::string temporary = Contents::TemporaryOf(path);
  const int descriptor =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kReadableByAll);
  if (descriptor < 0) return WriteError(temporary, errno);
  auto contents = std::make_unique<Contents>(path, descriptor);
  if (!pack.empty()) contents->packer = Packer::For(pack);
  return PartFile(std::move(contents));
}

Status PartFile::Write(std::string_view text) {
  contents_->Write(text, false);
  if (contents_->output.status().ok()) return {};
  return WriteError(contents_->temporary, errno);
}

Result<FileIdentity> PartFile::Finish() {
  Contents& file = *contents_;
  file.Write("", true);
  const int error = file.output.Flush().ok() ? system::Synchronise(file.descriptor) : errno;
  if (error != 0) return WriteError(file.temporary, error);
  return IdentityOf(file.temporary);
}

Status PartFile::Commit() {
  Contents& file = *contents_;
  if (::rename(file.temporary.c_str(), file.path.c_str()) != 0) return WriteError(file.path, errno);
  file.registered.reset();
  ::close(std::exchange(file.descriptor, -1));
  return {};
}

}  // namespace kinglet
