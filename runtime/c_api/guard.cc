#include "runtime/c_api/guard.h"

#include "format/utf8.h"

namespace kinglet {
namespace {

thread_local char error_text[1024] = "";

}  // namespace

const char* ErrorText() noexcept { return error_text; }

kinglet_status Fail(kinglet_status code, std::string_view message) noexcept {
  size_t length = std::min(message.size(), sizeof error_text - 1);
  if (length < message.size()) {  // not in the middle of a UTF-8 character
    while (length > 0 && ContinuesCharacter(message[length])) --length;
  }
  for (size_t i = 0; i < length; ++i) {  // one line, whatever a path or a word contains
    const auto byte = static_cast<unsigned char>(message[i]);
    error_text[i] = byte < 0x20 || byte == 0x7F ? '?' : message[i];
  }
  error_text[length] = '\0';
  return code;
}

Status Invalid(const char* function, const char* argument, const std::string& expected,
               const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, function, argument, expected, found);
}

Status RequirePointer(const char* function, const char* argument, const void* pointer) {
  return pointer != nullptr ? Status() : Invalid(function, argument, "a pointer", "NULL");
}

Status RequireCapacity(const char* function, uint64_t wanted, uint64_t capacity) {
  if (capacity >= wanted) return Status();
  return Status::Refusal(KINGLET_BUFFER_TOO_SMALL, function, "capacity",
                         "at least " + std::to_string(wanted), std::to_string(capacity));
}

Result<size_t> ReadCount(const char* function, const char* argument, uint64_t count,
                         size_t element_bytes) {
  const uint64_t most = static_cast<uint64_t>(PTRDIFF_MAX) / element_bytes;
  if (count <= most) return static_cast<size_t>(count);
  return Invalid(function, argument, "at most " + std::to_string(most), std::to_string(count));
}

kinglet_status InitOptions(const char* function, void* options, uint32_t struct_size) noexcept {
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "options", options));
    if (struct_size < sizeof struct_size || struct_size > kLargestStructure) {
      return Invalid(function, "struct_size", "4 .. " + std::to_string(kLargestStructure),
                     std::to_string(struct_size));
    }
    std::memset(options, 0, struct_size);
    std::memcpy(options, &struct_size, sizeof struct_size);
    return Status();
  });
}

Result<bool> PrepareBuffer(const char* function, uint64_t size, const void* buffer,
                           uint64_t capacity, uint64_t* needed) {
  const Status status = buffer == nullptr ? Status() : RequireCapacity(function, size, capacity);
  if (needed != nullptr) *needed = size;  // last: making a Status may run out of memory
  if (!status.ok()) return status;
  return buffer != nullptr;
}

Status CopyText(const char* function, std::string_view text, char* buffer, uint64_t capacity,
                uint64_t* needed) {
  KINGLET_ASSIGN_OR_RETURN(const bool is_wanted, PrepareBuffer(function, uint64_t{text.size()} + 1,
                                                               buffer, capacity, needed));
  if (!is_wanted) return Status();
  std::copy(text.begin(), text.end(), buffer);
  buffer[text.size()] = '\0';
  return Status();
}

Status CopyTexts(const char* function, const std::string& texts,
                 const std::vector<uint64_t>& begins, char* buffer, uint64_t capacity,
                 uint64_t* needed, uint64_t* offsets) {
  KINGLET_ASSIGN_OR_RETURN(const bool is_wanted,
                           PrepareBuffer(function, texts.size(), buffer, capacity, needed));
  if (!is_wanted) return Status();
  std::copy(texts.begin(), texts.end(), buffer);
  if (offsets != nullptr) std::copy(begins.begin(), begins.end(), offsets);
  return Status();
}

}  // namespace kinglet
