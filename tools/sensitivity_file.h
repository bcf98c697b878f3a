// The file that `kinglet sensitivity` writes and `kinglet plan` reads: JSON Lines, the run and its
// baseline first, then a line for each change (docs/COMMAND.md). A line without its newline is
// incomplete, so that a run that was killed can be continued.
#ifndef KINGLET_TOOLS_SENSITIVITY_FILE_H_
#define KINGLET_TOOLS_SENSITIVITY_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/convert.h"
#include "converters/planning/plan.h"
#include "kinglet/status.h"
#include "tools/json_lines.h"

namespace kinglet {

struct SensitivityFile {
  ConvertOptions convert;  // checkpoint, its options, and the calibration text
  std::string digest;      // of the unchanged model
  std::string text, protocol;
  // Purpose and digest of the text's ids, and of the files that the model in floats does not depend
  // on. Another text of the same name is another run.
  std::vector<std::pair<std::string, std::string>> digests;
  uint64_t tokens = 0, scored = 0;
  std::vector<uint64_t> bin_counts;
  SensitivityRecord record;
};

// The line of the run and its baseline.
std::string FirstLine(const SensitivityFile& file);
inline constexpr std::string_view kSensitivityBegin = R"({"checkpoint":)";
std::string ChangeLine(const MeasuredGroup& group, const MeasuredChange& change);

// Reads a complete file, or the complete lines of an unfinished one. Errors: those of
// ReadWholeText; KINGLET_INVALID_ARGUMENT naming the line.
Result<SensitivityFile> ReadSensitivityFile(const std::string& path);

// Prints a note that names the groups which no word of the text uses, if there are any.
void NoteUnused(const SensitivityRecord& record);

// "form" of codes that are not product quantisation.
void AddForm(const CodesChange& codes, JsonLine& line);

// Appends lines to a file that may contain the first of them already.
class LineWriter {
 public:
  // Opens or creates the file and removes what follows its last newline. `lines` become the
  // complete lines of the file. `begin`: what every run's file begins with; another file without a
  // complete line becomes one line and stays as it is. KINGLET_IO_ERROR.
  static Result<LineWriter> Open(const std::string& path, std::string_view begin,
                                 std::vector<std::string>& lines);
  LineWriter(LineWriter&& other) noexcept;
  LineWriter& operator=(LineWriter&&) = delete;
  ~LineWriter();
  // A line with its newline. KINGLET_IO_ERROR with the system's reason.
  Status Append(const std::string& line);

 private:
  LineWriter(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  std::string path_;
  int descriptor_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SENSITIVITY_FILE_H_
