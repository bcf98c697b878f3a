// Text, tables and lists as the user has them: in a file or a pipe, plain or packed. Every command
// and converter reads them with this class.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_TEXT_INPUT_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_TEXT_INPUT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kinglet/status.h"

namespace kinglet {

// Which bytes are removed, and which kinds of file are allowed.
enum class InputForm : uint8_t {
  kText,   // text as in runtime/text/plain_text.h
  kLines,  // text, all of whose bytes are returned
  kBytes,  // as kLines, or a NumPy array
};

// Bytes of a file or pipe, from front to back. "-" is standard input. gzip (RFC 1952) and zstd (RFC
// 8878) are unpacked, with all members and frames. Other kinds of file that are not text
// (foreign_file.h) are refused with the command that unpacks them. Takes memory for a few buffers,
// and for zstd a window of at most 128 MiB.
class TextInput {
 public:
  // Called before bytes are read, with the descriptor; an error ends the reading.
  using Wait = std::function<Status(int descriptor)>;

  // A pipe or socket, whatever its name, can be opened once: the bytes that were read are gone.
  // Errors: KINGLET_NOT_FOUND; KINGLET_IO_ERROR, also for a folder or device and for a pipe that
  // was read before.
  static Result<TextInput> Open(const std::string& name, InputForm form = InputForm::kText,
                                Wait wait = {});
  TextInput(TextInput&& other) noexcept;
  TextInput& operator=(TextInput&& other) noexcept;
  ~TextInput();

  // The next bytes, as soon as there are some; "" only at the end. Valid until the next call.
  // Errors: KINGLET_IO_ERROR; KINGLET_CORRUPT for packed bytes that are damaged or truncated;
  // KINGLET_INVALID_ARGUMENT for bytes that are not text; those of `wait`.
  Result<std::string_view> Next();

  // The name of the input in errors: "standard input" for "-".
  const std::string& name() const;

 private:
  struct Contents;
  explicit TextInput(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

// All bytes of an input. More than kMaxWholeBytes of a pipe, or of packed bytes, are
// KINGLET_OUT_OF_MEMORY.
inline constexpr uint64_t kMaxWholeBytes = uint64_t{1} << 30;
Result<std::string> ReadWholeText(const std::string& name, InputForm form = InputForm::kText);

// Refuses the name of a pipe or socket, also "-" if standard input is one: KINGLET_INVALID_ARGUMENT
// on behalf of `asker`, which reads the input twice.
Status RefusePipe(const std::string& asker, const std::string& name);

// The name of an input in errors: "standard input" for "-".
std::string InputName(const std::string& name);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_TEXT_INPUT_H_
