// A folder of filtered files. Each is written under another name and then renamed, so that a run
// that was killed can be started again and filters the remaining files.
#ifndef KINGLET_TOOLS_FILTERED_PARTS_H_
#define KINGLET_TOOLS_FILTERED_PARTS_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// The name of an input file's result: the input's name without an end .gz or .zst, and with the end
// of `pack`, which is "", "gz" or "zst".
std::string ResultName(const std::string& input, const std::string& pack);

// Identifies one state of a file's contents.
struct FileIdentity {
  uint64_t bytes = 0;
  std::string digest;
};
// Errors: those of InputFile.
Result<FileIdentity> IdentityOf(const std::string& path);

// The result of one file, under another name in its folder until Commit. The destructor removes a
// result that was not committed.
class PartFile {
 public:
  // `pack`: how the result is packed (converters/checkpoints/packer.h); "" means not at all.
  static Result<PartFile> Create(const std::string& path, const std::string& pack);
  PartFile(PartFile&&) noexcept;
  PartFile& operator=(PartFile&&) noexcept;
  ~PartFile();

  Status Write(std::string_view text);
  // Writes everything to the disk. Returns the identity of the result.
  Result<FileIdentity> Finish();
  // Renames the file to its final name. REQUIRES: Finish; no call follows.
  Status Commit();

 private:
  struct Contents;
  explicit PartFile(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

// The folder's state is kept in kinglet-filter.json: a line with the arguments of the run, then a
// line for each result with the identity of its input file.
class FilteredParts {
 public:
  // Makes the folder if it does not exist. Errors: KINGLET_IO_ERROR; KINGLET_INVALID_ARGUMENT for a
  // folder that another kind of run began, and for inputs of which a result would replace an input
  // or the folder's state.
  static Result<FilteredParts> Open(const std::string& folder, const std::string& run,
                                    const std::vector<std::string>& inputs,
                                    const std::string& pack);

  // The path of an input file's result.
  std::string PathOf(const std::string& input) const;
  // Whether the result of the input's present state exists. `was_another` becomes true if the
  // result of another state of the input exists. Errors: KINGLET_INVALID_ARGUMENT for a file that
  // no run of this folder wrote.
  Result<bool> IsDone(const std::string& input, const FileIdentity& state, bool& was_another);
  // Renames the result to its final name and records it.
  Status Keep(const std::string& input, const FileIdentity& state, PartFile part);

 private:
  FilteredParts(std::string folder, std::string pack)
      : folder_(std::move(folder)), pack_(std::move(pack)) {}
  std::string StatePath() const;
  Status ReadState(const std::string& run);

  std::string folder_, pack_, run_;
  std::set<std::string> results_;  // lines
  bool ends_whole_ = true;         // the state ends with a line's end
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_FILTERED_PARTS_H_
