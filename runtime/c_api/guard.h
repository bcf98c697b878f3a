// What every function of the C interface is made of: a Guard, inside which there is C++ as
// everywhere else in the project, and outside which there is a number and the thread's error text;
// and the refusals and readings of arguments that the functions share.
#ifndef KINGLET_RUNTIME_C_API_GUARD_H_
#define KINGLET_RUNTIME_C_API_GUARD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "kinglet/status.h"

namespace kinglet {

// Larger claims of a structure's size come from memory that was never initialised; believing them
// would read beyond it.
inline constexpr uint32_t kLargestStructure = 4096;

// The thread's error text. Static storage, so that reporting "out of memory" needs none.
const char* ErrorText() noexcept;
// Sets it, as one line that is not too long, and returns `code`.
kinglet_status Fail(kinglet_status code, std::string_view message) noexcept;

// Runs `body`, which returns a Status, and turns whatever happens into a kinglet_status.
template <class Body>
kinglet_status Guard(const Body& body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? KINGLET_OK : Fail(status.code(), status.message());
  } catch (const std::bad_alloc&) {
    return Fail(KINGLET_OUT_OF_MEMORY,
                "kinglet: memory: expected more, found that the system has none left");
  } catch (const std::exception& exception) {
    return Fail(KINGLET_INTERNAL, exception.what());
  } catch (...) {
    return Fail(KINGLET_INTERNAL, "kinglet: expected no exception, found one of unknown type");
  }
}

Status Invalid(const char* function, const char* argument, const std::string& expected,
               const std::string& found);
Status RequirePointer(const char* function, const char* argument, const void* pointer);
Status RequireCapacity(const char* function, uint64_t wanted, uint64_t capacity);
// `count` as a size of elements of `element_bytes` each that can lie in this machine's memory.
Result<size_t> ReadCount(const char* function, const char* argument, uint64_t count,
                         size_t element_bytes);

// Makes `options` all zeros but for its size.
kinglet_status InitOptions(const char* function, void* options, uint32_t struct_size) noexcept;

// A caller's structure, of whatever size the caller was compiled with, as this library's: fields
// the caller does not have are zero, the default; fields the library does not have must be.
// `smallest` is the structure's size in its first version.
template <class Options>
Result<Options> ReadOptions(const char* function, const Options* given, uint32_t smallest) {
  Options options{};
  if (given == nullptr) return options;
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  uint32_t size = 0;
  std::memcpy(&size, bytes, sizeof size);
  if (size < smallest || size > kLargestStructure) {
    return Invalid(function, "options->struct_size",
                   std::to_string(smallest) + " .. " + std::to_string(kLargestStructure),
                   std::to_string(size));
  }
  std::memcpy(&options, bytes, std::min<size_t>(size, sizeof options));
  for (size_t i = sizeof options; i < size; ++i) {
    if (bytes[i] != 0) {
      return Invalid(function, "options",
                     "zeros after byte " + std::to_string(sizeof options) +
                         ", where this library knows no field",
                     std::to_string(bytes[i]) + " at byte " + std::to_string(i));
    }
  }
  return options;
}

// Writes `answer` to a caller's structure, which holds its own size: the fields both know, and
// zeros in those that only the caller does.
template <class Answer>
Status WriteAnswer(const char* function, Answer answer, Answer* out, uint32_t smallest) {
  auto* bytes = reinterpret_cast<unsigned char*>(out);
  uint32_t size = 0;
  std::memcpy(&size, bytes, sizeof size);
  if (size < smallest || size > kLargestStructure) {
    return Invalid(function, "out->struct_size",
                   std::to_string(smallest) + " .. " + std::to_string(kLargestStructure),
                   std::to_string(size));
  }
  answer.struct_size = size;
  const size_t known = std::min<size_t>(size, sizeof answer);
  std::memcpy(bytes, &answer, known);
  std::fill(bytes + known, bytes + size, static_cast<unsigned char>(0));
  return Status();
}

// The interface's rule for buffers: *needed is set where it may be, and the answer is whether there
// is a buffer to write `size` bytes to; without one, only the size was asked for.
Result<bool> PrepareBuffer(const char* function, uint64_t size, const void* buffer,
                           uint64_t capacity, uint64_t* needed);
// Copies text and a NUL by that rule.
Status CopyText(const char* function, std::string_view text, char* buffer, uint64_t capacity,
                uint64_t* needed);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_C_API_GUARD_H_
