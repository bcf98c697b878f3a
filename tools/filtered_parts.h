// A folder of filtered files: each is written under another name and then renamed, so that a run
// that was killed can be started again and does what is left.
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

// The name of an input file's result: its own, without an end .gz or .zst.
std::string ResultName(const std::string& input);

// What tells one state of a file from another.
struct FileIdentity {
  uint64_t bytes = 0;
  std::string digest;
};
// Errors: those of InputFile.
Result<FileIdentity> IdentityOf(const std::string& path);

// The result of one file, under another name in its folder until Commit. If it is destroyed before,
// it is removed.
class PartFile {
 public:
  static Result<PartFile> Create(const std::string& path);
  PartFile(PartFile&&) noexcept;
  PartFile& operator=(PartFile&&) noexcept;
  ~PartFile();

  Status Write(std::string_view text);
  // All of it is on the disk; what it is.
  Result<FileIdentity> Finish();
  // Gives it its name. REQUIRES: Finish; the last call.
  Status Commit();

 private:
  struct Contents;
  explicit PartFile(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

// The folder's state is kept in kinglet-filter.json: a line that says what is done to the files,
// then one for each result, which says of which file it is.
class FilteredParts {
 public:
  // Makes the folder if it is not there. Errors: KINGLET_IO_ERROR; KINGLET_INVALID_ARGUMENT for a
  // folder that another kind of run began, and for inputs of which a result would lie where an
  // input, or the folder's state, lies.
  static Result<FilteredParts> Open(const std::string& folder, const std::string& run,
                                    const std::vector<std::string>& inputs);

  // Where the result of an input file lies.
  std::string PathOf(const std::string& input) const;
  // Whether the result of the input as it is now lies there. `was_another` becomes true if that of
  // another state of it does. Errors: KINGLET_INVALID_ARGUMENT for a file that no run of this
  // folder wrote.
  Result<bool> IsDone(const std::string& input, const FileIdentity& state, bool& was_another);
  // Gives the result its place.
  Status Keep(const std::string& input, const FileIdentity& state, PartFile part);

 private:
  explicit FilteredParts(std::string folder) : folder_(std::move(folder)) {}
  std::string StatePath() const;
  Status ReadState(const std::string& run);

  std::string folder_, run_;
  std::set<std::string> results_;  // lines
  bool ends_whole_ = true;         // the state ends with a line's end
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_FILTERED_PARTS_H_
