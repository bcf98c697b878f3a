// The documents of a file: one a line, of plain text or of JSON Lines, or the texts of a WARC file
// (ISO 28500), which are its records of type conversion.
#ifndef KINGLET_TOOLS_DOCUMENT_READER_H_
#define KINGLET_TOOLS_DOCUMENT_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "converters/checkpoints/text_input.h"
#include "converters/texts/corpus_text.h"
#include "kinglet/status.h"

namespace kinglet {

struct DocumentFormat {
  std::string field;  // the JSON member with the text; "" means plain text
  std::string route;  // the member that chooses a model, as "metadata.language"; "" means one model
  bool annotated = false;  // lines will get a member "kinglet", which they may not have
  bool skip_bad = false;   // lines that cannot be read are counted, not refused
  uint64_t most_bytes = kMostLineBytes;  // of a line that can be read
  std::optional<CorpusRules> rules;      // rewrite the text, but not the line
  static constexpr uint64_t kMostLineBytes = uint64_t{1} << 28;
};

struct Document {
  uint64_t line_number = 0;  // from 1; of a record its first line
  // All bytes of the line but "\n". Of a record, an object with "text", "id", "url", "date" and, if
  // the record names it, "language".
  std::string line;
  std::string text;                  // the document itself (runtime/text/plain_text.h)
  std::optional<std::string> route;  // the text of the member that chooses a model
  bool has_members = false;          // of a JSON object: whether it is not {}
};

class DocumentReader {
 public:
  // "-" is standard input. Errors: those of TextInput.
  static Result<DocumentReader> Open(const std::string& path, const DocumentFormat& format);

  // The next document; nullopt at the end. Errors: those of TextInput; KINGLET_INVALID_ARGUMENT,
  // naming file and line, for a line that is too long, is no JSON object or lacks the field as a
  // string, for a record that has no text, and for a WARC file that is broken.
  Result<std::optional<Document>> Next();

  uint64_t bad_lines() const { return bad_lines_; }
  const std::string& name() const { return input_.name(); }  // for messages

 private:
  DocumentReader(TextInput input, DocumentFormat format)
      : input_(std::move(input)), format_(std::move(format)) {}
  enum class Found : uint8_t { kEnd, kOne, kTooLong };
  // Appends to buffer_; false at the end.
  Result<bool> Fill();
  // kTooLong: the line was omitted.
  Result<Found> ReadLine(std::string& line);
  Result<Found> ReadRecord(Document& document);
  Status SkipBytes(uint64_t count);
  Status FindText(Document& document) const;
  void Rewrite(std::string& text) const;
  Status Refuse(uint64_t line, const std::string& expected, const std::string& found) const;

  TextInput input_;
  DocumentFormat format_;
  std::string buffer_;
  size_t begin_ = 0;  // in buffer_: the first byte that was not returned yet
  bool begun_ = false, is_warc_ = false, ended_ = false;
  uint64_t lines_ = 0, bad_lines_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_DOCUMENT_READER_H_
