// A folder with the scores of documents, from which documents are chosen later. Each input has a
// file of its own, NAME.scores.jsonl:
//
//   {"run":{..},"input_bytes":N,"input_digest":".."}
//   {"line":1,"tokens":9,"oov":1,"nll_sum":33.1,"oov_nll_sum":8.2,"spelling":20.9,"words":9,
//    "bytes":51}                                          a line for each document
//   {"documents":N,"bad_lines":0}
//
// With several models a line ends with "route":N, but for N = 0: the model, of those that "run"
// lists. A document without a model has no line.
//
// Until it is complete the file is kinglet-scores.NAME.part. A process holds a lock on it, another
// one takes another input, and a process that starts later continues after its last whole line.
#ifndef KINGLET_TOOLS_SCORE_FILES_H_
#define KINGLET_TOOLS_SCORE_FILES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"
#include "tools/document_reader.h"
#include "tools/document_scorer.h"
#include "tools/filtered_parts.h"

namespace kinglet {

struct ScoredLine {
  uint64_t line_number = 0;
  DocumentLoss loss;
};

// The file of one input while it is written. A file that was not finished stays.
class ScoreWriter {
 public:
  ScoreWriter(ScoreWriter&&) noexcept;
  ScoreWriter& operator=(ScoreWriter&&) noexcept;
  ~ScoreWriter();

  uint64_t documents() const;  // in the file
  uint64_t last_line() const;  // the number of the last one's line; 0 without documents
  // Appends lines and writes them to the disk.
  Status Append(const std::vector<ScoredLine>& lines);
  // Writes the last line and gives the file its name.
  Status Finish(uint64_t bad_lines);

 private:
  friend class ScoreFolder;
  struct Contents;
  explicit ScoreWriter(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

// The scores of one input, from front to back.
class ScoreReader {
 public:
  ScoreReader(ScoreReader&&) noexcept;
  ScoreReader& operator=(ScoreReader&&) noexcept;
  ~ScoreReader();
  // nullopt after the last one. KINGLET_CORRUPT for a line that is no score, and for a file whose
  // last line is missing or counts other documents.
  Result<std::optional<ScoredLine>> Next();

 private:
  friend class ScoreFolder;
  struct Contents;
  explicit ScoreReader(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

class ScoreFolder {
 public:
  // `run`: an object with all that determines the scores.
  ScoreFolder(std::string folder, std::string run)
      : folder_(std::move(folder)), run_(std::move(run)) {}

  // Makes the folder if it does not exist. KINGLET_IO_ERROR; KINGLET_INVALID_ARGUMENT for inputs of
  // one name, and for an input in the folder.
  Status Make(const std::vector<std::string>& inputs) const;

  enum class Claim : uint8_t { kOurs, kDone, kBusy };
  struct Start {
    Claim claim = Claim::kDone;
    std::optional<ScoreWriter> writer;  // of kOurs
  };
  // Begins or continues the file of an input. kDone: it is complete; kBusy: another process writes
  // it, unless `waits` until that process ends. A file of another state of the input is written
  // anew. KINGLET_INVALID_ARGUMENT for a file of another run.
  Result<Start> Begin(const std::string& input, const FileIdentity& state, bool waits) const;

  // The complete scores of an input. KINGLET_NOT_FOUND; KINGLET_INVALID_ARGUMENT for those of
  // another run or another state of the input.
  Result<ScoreReader> Read(const std::string& input, const FileIdentity& state) const;
  // Calls `sink` with all scores of the folder. KINGLET_INVALID_ARGUMENT if there are none, or if
  // some are not complete.
  Status ForEach(const std::function<void(const DocumentLoss&)>& sink) const;

 private:
  std::string PathOf(const std::string& input) const;
  std::string PartOf(const std::string& input) const;
  std::string HeaderOf(const FileIdentity& state) const;
  // Whether the complete file exists; it has to be of this run. `header` is its first line.
  Result<bool> HasScores(const std::string& path, std::string& header) const;
  Result<ScoreReader> Open(const std::string& path) const;

  std::string folder_, run_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SCORE_FILES_H_
