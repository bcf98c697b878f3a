// The documents of a file: one a line, of plain text or of JSON Lines.
#ifndef KINGLET_TOOLS_DOCUMENT_READER_H_
#define KINGLET_TOOLS_DOCUMENT_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "converters/checkpoints/text_input.h"
#include "kinglet/status.h"

namespace kinglet {

struct DocumentFormat {
  std::string field;  // the JSON member with the text; "" means plain text
  std::string route;  // the member that chooses a model, as "metadata.language"; "" means one model
  bool annotated = false;  // lines will get a member "kinglet", which they may not have
  bool skip_bad = false;   // lines that cannot be read are counted, not refused
};

struct Document {
  uint64_t line_number = 0;          // from 1
  std::string line;                  // all bytes of the line but "\n"
  std::string text;                  // the document itself (runtime/text/plain_text.h)
  std::optional<std::string> route;  // the text of the member that chooses a model
  bool has_members = false;          // of a JSON object: whether it is not {}
};

class DocumentReader {
 public:
  // "-" is standard input. Errors: those of TextInput.
  static Result<DocumentReader> Open(const std::string& path, const DocumentFormat& format);

  // The next document; nullopt at the end. Errors: those of TextInput; KINGLET_OUT_OF_MEMORY for a
  // line of more than kMaxLineBytes; KINGLET_INVALID_ARGUMENT, naming file and line, for a line
  // that is no JSON object or lacks the field as a string.
  static constexpr size_t kMaxLineBytes = size_t{1} << 28;
  Result<std::optional<Document>> Next();

  uint64_t bad_lines() const { return bad_lines_; }
  const std::string& name() const { return input_.name(); }  // for messages

 private:
  DocumentReader(TextInput input, DocumentFormat format)
      : input_(std::move(input)), format_(std::move(format)) {}
  Result<bool> ReadLine(std::string& line);
  Status FindText(Document& document) const;

  TextInput input_;
  DocumentFormat format_;
  std::string buffer_;
  size_t begin_ = 0;  // in buffer_: the first byte that was not returned yet
  bool ended_ = false;
  uint64_t lines_ = 0, bad_lines_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_DOCUMENT_READER_H_
