// The file that `kinglet sensitivity` writes and `kinglet plan` reads: JSON Lines, the run and its
// baseline first, then a line for each change (docs/COMMAND.md). Each line is written whole or is
// without its newline, so that a run that was killed can be continued.
#ifndef KINGLET_TOOLS_SENSITIVITY_FILE_H_
#define KINGLET_TOOLS_SENSITIVITY_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "converters/convert.h"
#include "converters/planning/plan.h"
#include "kinglet/status.h"

namespace kinglet {

struct SensitivityFile {
  ConvertOptions convert;  // checkpoint, what it is converted with, and the text to calibrate with
  std::string digest;      // of the unchanged model
  std::string text, protocol;
  // Of the text's ids, and of the files that the model in floats does not depend on: what they are
  // for, and the digest. Another text of the same name is another run.
  std::vector<std::pair<std::string, std::string>> digests;
  uint64_t tokens = 0, scored = 0;
  std::vector<uint64_t> bin_counts;
  SensitivityRecord record;
};

// The first line.
std::string FirstLine(const SensitivityFile& file);
std::string ChangeLine(const MeasuredGroup& group, const MeasuredChange& change);

// Reads a whole file, or the whole lines of an unfinished one. Errors: those of ReadWholeText;
// KINGLET_INVALID_ARGUMENT naming the line.
Result<SensitivityFile> ReadSensitivityFile(const std::string& path);

// Appends lines to a file that may hold the first of them already.
class SensitivityWriter {
 public:
  // Opens or creates the file and takes away what follows its last newline. `lines` become the
  // whole lines that it has. KINGLET_IO_ERROR.
  static Result<SensitivityWriter> Open(const std::string& path, std::vector<std::string>& lines);
  SensitivityWriter(SensitivityWriter&& other) noexcept;
  SensitivityWriter& operator=(SensitivityWriter&&) = delete;
  ~SensitivityWriter();
  // A line with its newline. KINGLET_IO_ERROR with the system's reason.
  Status Append(const std::string& line);

 private:
  SensitivityWriter(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  std::string path_;
  int descriptor_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SENSITIVITY_FILE_H_
