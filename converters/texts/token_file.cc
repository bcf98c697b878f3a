#include "converters/texts/token_file.h"

#include <algorithm>
#include <limits>
#include <new>
#include <span>
#include <utility>

#include "converters/checkpoints/npy.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/text_input.h"
#include "converters/texts/word_splitter.h"
#include "format/input_file.h"
#include "runtime/text/plain_text.h"

namespace kinglet {
namespace {

constexpr uint64_t kLargestId = std::numeric_limits<uint32_t>::max();

Result<std::vector<uint32_t>> IdsOfArray(const std::string& path, const std::string& bytes) {
  Result<NpyArray> array = ParseNpy(std::as_bytes(std::span<const char>(bytes)));
  if (!array.ok()) return InFile(path, array.status());
  const std::vector<int64_t>* numbers = array->integers();
  if (numbers == nullptr) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, path, "type", "an array of integers",
                           array->type);
  }
  std::vector<uint32_t> ids;
  ids.reserve(numbers->size());
  for (const int64_t number : *numbers) {
    if (number < 0 || static_cast<uint64_t>(number) > kLargestId) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, path, "entry " + std::to_string(ids.size()),
                             "a token id of 0 to " + std::to_string(kLargestId),
                             std::to_string(number));
    }
    ids.push_back(static_cast<uint32_t>(number));
  }
  return ids;
}

}  // namespace

Result<std::vector<uint32_t>> ParseIds(std::string_view text, const std::string& where) {
  std::vector<uint32_t> ids;
  size_t at = 0;
  while (at < text.size()) {
    if (IsAsciiSpace(text[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    uint64_t id = 0;
    bool valid = true;
    for (; at < text.size() && !IsAsciiSpace(text[at]); ++at) {
      if (text[at] < '0' || text[at] > '9' || !valid) {
        valid = false;
        continue;
      }
      id = id * 10 + static_cast<uint64_t>(text[at] - '0');
      valid = id <= kLargestId;
    }
    if (!valid) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, where, "byte " + std::to_string(begin),
                             "a token id of 0 to " + std::to_string(kLargestId),
                             QuotedName(text.substr(begin, at - begin)));
    }
    ids.push_back(static_cast<uint32_t>(id));
  }
  return ids;
}

Result<std::vector<uint32_t>> ReadIds(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeText(path, InputForm::kBytes));
  try {
    return LooksLikeNpy(std::as_bytes(std::span<const char>(bytes)))
               ? IdsOfArray(path, bytes)
               : ParseIds(PlainLine(bytes), InputName(path));
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "reading", "memory for the ids", "none");
  }
}

Result<std::vector<std::vector<uint32_t>>> ReadIdLines(const std::string& path) try {
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path));
  std::vector<std::vector<uint32_t>> lines;
  for (const std::string_view line : LinesOf(text)) {
    const std::string where = InputName(path) + ", line " + std::to_string(lines.size() + 1);
    KINGLET_ASSIGN_OR_RETURN(std::vector<uint32_t> ids, ParseIds(line, where));
    lines.push_back(std::move(ids));
  }
  return lines;
} catch (const std::bad_alloc&) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "ids", "memory for the ids", "none left");
}

Status ForEachWord(const std::string& path, const std::function<Status(std::string_view)>& word) {
  KINGLET_ASSIGN_OR_RETURN(TextInput input, TextInput::Open(path));
  try {
    WordSplitter splitter(std::numeric_limits<size_t>::max());
    const WordSink sink = [&word](std::string_view found, uint64_t /*line*/) {
      return word(found);
    };
    while (true) {
      KINGLET_ASSIGN_OR_RETURN(const std::string_view piece, input.Next());
      if (piece.empty()) return splitter.Finish(sink);
      KINGLET_RETURN_IF_ERROR(splitter.Add(piece, sink));
    }
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "reading", "memory for a word", "none");
  }
}

}  // namespace kinglet
