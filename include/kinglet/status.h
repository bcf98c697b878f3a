// Status codes shared by the C and the C++ interface, and the C++ value types that carry them.
//
// Codes are stable numbers in groups of 100, so a caller may switch on the exact code or on `code /
// 100`. Every code but KINGLET_OK comes with a text that reports where the error occurred, what was
// expected and what was found.
#ifndef KINGLET_STATUS_H_
#define KINGLET_STATUS_H_

#include <stdint.h>

typedef int32_t kinglet_status;

enum kinglet_status_code {
  KINGLET_OK = 0,
  // 1xx: the caller's argument is wrong; the same call can never succeed.
  KINGLET_INVALID_ARGUMENT = 100,
  KINGLET_ID_OUT_OF_RANGE = 101,
  KINGLET_UNKNOWN_WORD = 102,
  KINGLET_BUFFER_TOO_SMALL = 103,
  // 2xx: a file could not be read or written.
  KINGLET_NOT_FOUND = 200,
  KINGLET_IO_ERROR = 201,
  // 3xx: bytes were read but are not what they claim to be.
  KINGLET_CORRUPT = 300,
  KINGLET_UNSUPPORTED_VERSION = 301,
  KINGLET_INVALID_MODEL = 302,
  KINGLET_INVALID_CHECKPOINT = 303,
  // 4xx: a resource ran out.
  KINGLET_OUT_OF_MEMORY = 400,
  KINGLET_TOO_MANY_STEPS = 401,
  // 5xx: calls came in the wrong order, for example a query before the first step, or the caller
  // cancelled.
  KINGLET_NO_TOKEN_YET = 500,
  KINGLET_CANCELLED = 501,
  KINGLET_NO_SOURCE_YET = 502,
  // 6xx: this build or this machine cannot do what was asked.
  KINGLET_UNSUPPORTED = 600,
  // 7xx: the computation itself failed.
  KINGLET_NOT_FINITE = 700,
  KINGLET_MISMATCH = 701,
  KINGLET_INTERNAL = 900,
};

// The C++ half needs C++17; older C++ gets the C interface only.
#if defined(__cplusplus) && __cplusplus >= 201703L

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace kinglet {

using StatusCode = kinglet_status_code;

namespace internal {

// The number of bytes of the UTF-8 character with which `text` starts if a terminal obeys that
// character instead of showing it: controls (U+0000 to U+001F, U+007F to U+009F), ends of lines
// (U+2028, U+2029) and changes of the order in which text is shown (U+061C, U+200E, U+200F, U+202A
// to U+202E, U+2066 to U+2069). 0 for any other character.
inline size_t ControlLength(std::string_view text) {
  const auto byte = [text](size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const unsigned first = byte(0), second = byte(1), third = byte(2);
  if (text.empty()) return 0;
  if (first < 0x20 || first == 0x7F) return 1;
  if (first == 0xC2) return second >= 0x80 && second < 0xA0 ? 2 : 0;
  if (first == 0xD8) return second == 0x9C ? 2 : 0;
  if (first != 0xE2) return 0;
  const bool orders =
      second == 0x80 && (third == 0x8E || third == 0x8F || (third >= 0xA8 && third <= 0xAE));
  return orders || (second == 0x81 && third >= 0xA6 && third <= 0xA9) ? 3 : 0;
}

}  // namespace internal

// Success, or a code with one line of text. Success costs one null pointer. A Status is a value: a
// caller may copy, move and keep one, and the library never throws one. Messages quote names and
// words of files that strangers wrote, and are printed on terminals: what a terminal would obey
// becomes "?".
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : error_(std::make_shared<const Error>(Error{code, OneLine(std::move(message))})) {}

  // The one form every refusal takes: "WHAT: WHERE: expected X, found Y".
  static Status Refusal(StatusCode code, const std::string& what, const std::string& where,
                        const std::string& expected, const std::string& found) {
    return Status(code, what + ": " + where + ": expected " + expected + ", found " + found);
  }

  bool ok() const { return error_ == nullptr; }
  StatusCode code() const { return error_ ? error_->code : KINGLET_OK; }
  const std::string& message() const {
    static const std::string kNone;
    return error_ ? error_->message : kNone;
  }

 private:
  static std::string OneLine(std::string message) {
    for (size_t at = 0; at < message.size(); ++at) {
      const size_t length = internal::ControlLength(std::string_view(message).substr(at));
      if (length > 0) message.replace(at, length, 1, '?');
    }
    return message;
  }

  struct Error {
    StatusCode code;
    std::string message;
  };
  std::shared_ptr<const Error> error_;
};

// A value, or the Status that reports why there is no value.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit on purpose
  // REQUIRES: !status.ok(); otherwise the status becomes KINGLET_INTERNAL.
  Result(Status status)  // NOLINT: implicit on purpose
      : state_(std::in_place_index<1>, status.ok()
                                           ? Status(KINGLET_INTERNAL, "result without a value")
                                           : std::move(status)) {}

  bool ok() const { return state_.index() == 0; }
  Status status() const { return ok() ? Status() : std::get<1>(state_); }

  // REQUIRES: ok().
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

// For functions that return Status or Result. Both macros return the Status of an expression that
// failed; KINGLET_ASSIGN_OR_RETURN declares or assigns the value of one that succeeded.
#define KINGLET_RETURN_IF_ERROR(expression)                                        \
  do {                                                                             \
    if (::kinglet::Status kinglet_status_ = (expression); !kinglet_status_.ok()) { \
      return kinglet_status_;                                                      \
    }                                                                              \
  } while (false)

#define KINGLET_CONCAT_INNER_(a, b) a##b
#define KINGLET_CONCAT_(a, b) KINGLET_CONCAT_INNER_(a, b)
// NOLINTBEGIN(bugprone-macro-parentheses): `declaration` may be "auto x", which parentheses would
// break.
#define KINGLET_ASSIGN_OR_RETURN(declaration, expression)                                 \
  KINGLET_ASSIGN_OR_RETURN_IMPL_(KINGLET_CONCAT_(kinglet_result_, __LINE__), declaration, \
                                 expression)
#define KINGLET_ASSIGN_OR_RETURN_IMPL_(result, declaration, expression) \
  auto result = (expression);                                           \
  if (!result.ok()) return result.status();                             \
  declaration = std::move(result).value()
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace kinglet

#endif  // C++17
#endif  // KINGLET_STATUS_H_
