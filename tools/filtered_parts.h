// A folder of filtered files: each is written under another name and then renamed, so that a run
// that was killed can be started again and does what is left.
#ifndef KINGLET_TOOLS_FILTERED_PARTS_H_
#define KINGLET_TOOLS_FILTERED_PARTS_H_

#include <memory>
#include <string>
#include <string_view>

#include "kinglet/status.h"

namespace kinglet {

class FilteredParts {
 public:
  // Makes the folder if it is not there. `run` is one line that says what is done to the files: a
  // folder that another kind of run began is refused. Errors: KINGLET_IO_ERROR;
  // KINGLET_INVALID_ARGUMENT for another run's folder.
  static Result<FilteredParts> Open(const std::string& folder, const std::string& run);

  // Where the result of an input file lies: its name in the folder.
  std::string PathOf(const std::string& input) const;
  bool IsDone(const std::string& input) const;

 private:
  explicit FilteredParts(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

// The result of one file, under the name PATH.part until Commit. What a run before left there is
// written over. If it is destroyed without Commit, it is removed.
class PartFile {
 public:
  static Result<PartFile> Create(const std::string& path);
  PartFile(PartFile&&) noexcept;
  PartFile& operator=(PartFile&&) noexcept;
  ~PartFile();

  Status Write(std::string_view text);
  // All of it is on the disk and has its name. REQUIRES: the last call.
  Status Commit();

 private:
  struct Contents;
  explicit PartFile(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_FILTERED_PARTS_H_
