#include "converters/checkpoints/codes_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kinglet {
namespace {

constexpr uint64_t kMaxCode = UINT32_MAX;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Reads and checks the text character by character.
class CodesReader {
 public:
  explicit CodesReader(std::function<void(int64_t)> take) : take_(std::move(take)) {}

  void Read(char c) {
    if (!status_.ok()) return;
    if (c >= '0' && c <= '9') {
      code_ = 10 * code_ + static_cast<uint64_t>(c - '0');
      in_code_ = true;
      if (code_ > kMaxCode) Refuse("an integer below 2^32", "a larger one");
    } else if (c == '-' && !in_code_ && !negative_) {
      negative_ = true;  // refused when all digits are read
    } else if (c == '\n') {
      EndLine();
    } else if (IsBlank(c)) {
      EndCode();
    } else {
      Refuse("digits or blanks", "another character");
    }
    ++column_;
  }
  // The last line may lack its newline.
  Status Finish() {
    if (column_ > 1) EndLine();
    return status_;
  }
  uint64_t lines() const { return line_ - 1; }
  uint64_t codes_per_line() const { return expected_; }

 private:
  void EndCode() {
    if (!in_code_) {
      if (negative_) Refuse("digits after the sign", "none");
      return;
    }
    if (negative_) return Refuse("an integer from 0", "-" + std::to_string(code_));
    ++found_;
    if (line_ > 1 && found_ > expected_) return Refuse(Expected(), "more");
    take_(static_cast<int64_t>(code_));
    code_ = 0;
    in_code_ = false;
  }
  void EndLine() {
    EndCode();
    if (line_ == 1) expected_ = found_;
    if (status_.ok() && (found_ == 0 || found_ != expected_)) {
      Refuse(found_ == 0 ? "integers" : Expected(), found_ == 0 ? "none" : std::to_string(found_));
    }
    ++line_;
    column_ = 0;
    found_ = 0;
  }
  std::string Expected() const { return std::to_string(expected_) + " integers as in line 1"; }
  void Refuse(const std::string& expected, const std::string& found) {
    if (!status_.ok()) return;
    status_ = Status::Refusal(
        KINGLET_INVALID_CHECKPOINT, "codes",
        "line " + std::to_string(line_) + ", column " + std::to_string(column_), expected, found);
  }

  std::function<void(int64_t)> take_;
  uint64_t line_ = 1, column_ = 1;
  uint64_t expected_ = 0, found_ = 0;  // codes in the first line; in this one, so far
  uint64_t code_ = 0;
  bool in_code_ = false, negative_ = false;
  Status status_;
};

struct CodesShape {
  uint64_t words, codes;
};

Result<CodesShape> ReadAllCodes(const InputFile& file, std::function<void(int64_t)> take) {
  CodesReader reader(std::move(take));
  KINGLET_RETURN_IF_ERROR(
      file.ReadInPieces(0, file.size(), [&reader](std::span<const std::byte> piece) {
        for (const std::byte byte : piece) reader.Read(static_cast<char>(byte));
      }));
  KINGLET_RETURN_IF_ERROR(reader.Finish());
  return CodesShape{reader.lines(), reader.codes_per_line()};
}

template <class Value>
Result<std::vector<Value>> ReadAll(const InputFile& file, const CodesShape& shape) {
  try {
    std::vector<Value> codes;
    codes.reserve(shape.words * shape.codes);
    KINGLET_RETURN_IF_ERROR(ReadAllCodes(file, [&codes](int64_t code) {
                              codes.push_back(static_cast<Value>(code));
                            }).status());
    return codes;
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, file.path(), "codes",
                           "memory for " + std::to_string(shape.words * shape.codes) + " codes",
                           "none");
  }
}

}  // namespace

bool LooksLikeCodes(const InputFile& file) {
  std::array<std::byte, 256> bytes{};
  const std::span<std::byte> head(bytes.data(), std::min<uint64_t>(bytes.size(), file.size()));
  const auto fits = [](std::byte byte) {
    const char c = static_cast<char>(byte);
    return (c >= '0' && c <= '9') || c == '-' || IsBlank(c) || c == '\n';
  };
  return !head.empty() && file.ReadAt(0, head).ok() && std::all_of(head.begin(), head.end(), fits);
}

Result<CheckpointTensors> CodesTensors(const std::shared_ptr<const InputFile>& file) {
  KINGLET_ASSIGN_OR_RETURN(const CodesShape shape, ReadAllCodes(*file, [](int64_t /*code*/) {}));
  return CheckpointTensors{{std::filesystem::path(file->path()).stem().string(),
                            {shape.words, shape.codes},
                            [file, shape] { return ReadAll<float>(*file, shape); },
                            [file, shape] { return ReadAll<int64_t>(*file, shape); }}};
}

}  // namespace kinglet
