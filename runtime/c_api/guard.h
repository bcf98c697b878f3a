// What the functions of the C interface have in common. The body of each is one Guard: inside is
// C++ with Status, Result and exceptions, outside are a status number and the thread's error text.
// The rest reads and checks arguments.
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
#include <vector>

#include "format/small_build.h"
#include "kernels/float_environment.h"
#include "kinglet/status.h"

namespace kinglet {

// The largest size that a structure may claim. A larger one comes from memory that was not
// initialised, and would make the library read beyond the structure.
inline constexpr uint32_t kLargestStructure = 4096;

// The thread's error text. Its storage is static, so that reporting KINGLET_OUT_OF_MEMORY needs no
// memory.
const char* ErrorText() noexcept;
// Sets the thread's error text to `message`, as one line that may be truncated, and returns `code`.
kinglet_status Fail(kinglet_status code, std::string_view message) noexcept;

// Runs `body`, which returns a Status, and turns that or an exception into a kinglet_status.
template <class Body>
[[gnu::noinline]] kinglet_status StatusOf(const Body& body) noexcept {
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

// Runs `body` like StatusOf, in the float environment of rule 7 (docs/NUMERICS.md).
template <class Body>
kinglet_status Guard(const Body& body) noexcept {
  const FloatEnvironment environment;
  return StatusOf(body);
}

// Destroys a handle, in the float environment of rule 7 (docs/NUMERICS.md).
template <class Handle>
void Destroy(Handle* handle) noexcept {
  const FloatEnvironment environment;
  delete handle;
}

// --- checks of arguments; `function` and `argument` are named in the error text

// KINGLET_INVALID_ARGUMENT.
Status Invalid(const char* function, const char* argument, const std::string& expected,
               const std::string& found);
// KINGLET_INVALID_ARGUMENT if the pointer is NULL.
Status RequirePointer(const char* function, const char* argument, const void* pointer);
// KINGLET_BUFFER_TOO_SMALL if capacity < wanted.
Status RequireCapacity(const char* function, uint64_t wanted, uint64_t capacity);
// `count` as a size_t, if `count` elements of `element_bytes` bytes each can be in this machine's
// memory; otherwise KINGLET_INVALID_ARGUMENT.
Result<size_t> ReadCount(const char* function, const char* argument, uint64_t count,
                         size_t element_bytes);

// Sets `struct_size` bytes of `options` to zero, and its first field to `struct_size`.
kinglet_status InitOptions(const char* function, void* options, uint32_t struct_size) noexcept;

// Reads a caller's structure, which may be of another version and size than this library's. Fields
// that the caller's version lacks become zero, their default; bytes that the library does not know
// must be zero. `given` may be NULL. `smallest` is the structure's size in its first version.
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

// Writes `answer` to a caller's structure, whose first field is its size. Fields that this library
// does not know become zero. `smallest` is the structure's size in its first version.
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

// Prepares to write `size` bytes to a caller's buffer: sets *needed to `size` if `needed` is not
// NULL, and returns whether `buffer` is not NULL; a caller without a buffer asks for the size only.
// KINGLET_BUFFER_TOO_SMALL if the buffer has less room.
Result<bool> PrepareBuffer(const char* function, uint64_t size, const void* buffer,
                           uint64_t capacity, uint64_t* needed);
// Copies the text and a NUL to a caller's buffer, as PrepareBuffer allows.
Status CopyText(const char* function, std::string_view text, char* buffer, uint64_t capacity,
                uint64_t* needed);
// Copies texts that each end with a NUL to a caller's buffer, as PrepareBuffer allows, and `begins`
// to `offsets`, unless `offsets` is NULL.
Status CopyTexts(const char* function, const std::string& texts,
                 const std::vector<uint64_t>& begins, char* buffer, uint64_t capacity,
                 uint64_t* needed, uint64_t* offsets);

// The answer of a function of a part that a small library leaves out: "typing".
inline kinglet_status WithoutPart(const char* function, const char* part) {
  return Guard([&] {
    return LeftOut(function, "library", std::string("one with ") + part,
                   "one of language models alone");
  });
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_C_API_GUARD_H_
