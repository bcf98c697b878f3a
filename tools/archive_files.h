// What `compress` and `decompress` have in common: which operand is the model, and files and pipes
// of any bytes.
#ifndef KINGLET_TOOLS_ARCHIVE_FILES_H_
#define KINGLET_TOOLS_ARCHIVE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/write_file.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/arguments.h"
#include "tools/console.h"

namespace kinglet {

inline constexpr const char* kArchiveEnding = ".kz";

struct ArchiveOptions {
  std::string model;  // of --model
  std::vector<std::string> operands;
  std::string output;
  size_t threads = 1;
  bool force = false, json = false;
};
// Declares the operands, --model, -o, --threads, --force and --json.
void AddArchiveOptions(Arguments& arguments, ArchiveOptions& options);

// The model's path, and the input files; "-" is standard input, and stands alone.
struct ArchiveOperands {
  std::string model, model_from;  // model_from: "--model", "KINGLET_MODEL" or "the first operand"
  std::vector<std::string> files;
};
// The model is that of --model, else the first operand if it is a model file or its name ends with
// .kgl, else that of the environment's KINGLET_MODEL, else "". Errors: KINGLET_INVALID_ARGUMENT for
// an output together with several files.
Result<ArchiveOperands> ReadArchiveOperands(const ArchiveOptions& options);
// Errors: those of Model::Open; KINGLET_NOT_FOUND if no model is named.
Result<std::shared_ptr<const Model>> OpenArchiveModel(const ArchiveOperands& operands);

// Takes bytes of an input.
using BytesSink = std::function<Status(std::span<const std::byte>)>;
// Calls `sink` with all bytes of a file, or of standard input for "-". Errors: KINGLET_NOT_FOUND,
// KINGLET_IO_ERROR, KINGLET_CANCELLED by Ctrl-C.
Status ReadAllBytes(const std::string& path, const BytesSink& sink);

// The bytes that were read and written.
struct PassedBytes {
  uint64_t read = 0, written = 0;
};

// Where results go: a file that gets its name when it is complete, standard output for "-", or
// nowhere for "".
class ArchiveOutput {
 public:
  // Errors: KINGLET_INVALID_ARGUMENT for a file that exists, without `force`; those of NewFile.
  static Result<ArchiveOutput> Open(const std::string& path, bool force, Console& console);
  Status Write(std::span<const std::byte> bytes);
  Status Commit();

 private:
  explicit ArchiveOutput(Output* out) : out_(out) {}
  Output* out_ = nullptr;
  std::optional<NewFile> file_;
};

// Gives a file's bytes, or those of standard input for "-", to an ArchiveWriter or ArchiveReader,
// and writes what it makes of them. Errors: those of ReadAllBytes, the archive and the output.
template <class Archive>
Result<PassedBytes> PassThrough(const std::string& path, Archive& archive, ArchiveOutput& output) {
  PassedBytes passed;
  std::vector<std::byte> bytes;
  const auto write = [&]() -> Status {
    while (true) {
      bytes.clear();
      KINGLET_RETURN_IF_ERROR(archive.Next(bytes));
      if (bytes.empty()) return Status();
      passed.written += bytes.size();
      KINGLET_RETURN_IF_ERROR(output.Write(bytes));
    }
  };
  const auto add = [&](std::span<const std::byte> piece) {
    passed.read += piece.size();
    archive.Add(piece);
    return write();
  };
  KINGLET_RETURN_IF_ERROR(ReadAllBytes(path, add));
  archive.EndOfInput();
  KINGLET_RETURN_IF_ERROR(write());
  return passed;
}

}  // namespace kinglet

#endif  // KINGLET_TOOLS_ARCHIVE_FILES_H_
