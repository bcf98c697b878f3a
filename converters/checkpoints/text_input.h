// Text, tables and lists as the user has them: in a file or a pipe, plain or packed. Every command
// and converter that reads one reads it here.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_TEXT_INPUT_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_TEXT_INPUT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kinglet/status.h"

namespace kinglet {

// What is taken off the bytes, and what they may be.
enum class InputForm : uint8_t {
  kText,   // as runtime/text/plain_text.h says
  kLines,  // text, of which every byte is handed over
  kBytes,  // the same, or a NumPy array
};

// Bytes of a file or pipe, from front to back. "-" is standard input. What begins as gzip (RFC
// 1952) or zstd (RFC 8878) does is unpacked, all members and frames of it. What begins as another
// kind of file that is no text (foreign_file.h) is refused with the command that unpacks it. Memory
// is a few buffers, of zstd also its window, of at most 128 MiB.
class TextInput {
 public:
  // Called before each read(2), with its descriptor; an error ends the reading.
  using Wait = std::function<Status(int descriptor)>;

  // A pipe or socket, whatever its name, can be opened once: what was read of it is gone. Errors:
  // KINGLET_NOT_FOUND; KINGLET_IO_ERROR, also for a folder or device and for a pipe that was read
  // before.
  static Result<TextInput> Open(const std::string& name, InputForm form = InputForm::kText,
                                Wait wait = {});
  TextInput(TextInput&& other) noexcept;
  TextInput& operator=(TextInput&& other) noexcept;
  ~TextInput();

  // The next bytes, as soon as there are some; "" only at the end. Valid until the next call.
  // Errors: KINGLET_IO_ERROR; KINGLET_CORRUPT for packed bytes that are damaged or end too early;
  // KINGLET_INVALID_ARGUMENT for what is no text; those of `wait`.
  Result<std::string_view> Next();

  // What errors call it: "standard input" for "-".
  const std::string& source() const;

 private:
  struct Contents;
  explicit TextInput(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

// All of it. More than kMaxWholeBytes of a pipe, or of packed bytes, is KINGLET_OUT_OF_MEMORY.
inline constexpr uint64_t kMaxWholeBytes = uint64_t{1} << 30;
Result<std::string> ReadWholeText(const std::string& name, InputForm form = InputForm::kText);

// Whether the name is that of a pipe or socket, "-" too where that is one: KINGLET_INVALID_ARGUMENT
// on behalf of `asker`, which reads it twice.
Status RefusePipe(const std::string& asker, const std::string& name);

// What errors call an input: "standard input" for "-".
std::string SourceName(const std::string& name);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_TEXT_INPUT_H_
