// The refusals that the files of runtime/session.h share.
#ifndef KINGLET_RUNTIME_SESSION_REFUSALS_H_
#define KINGLET_RUNTIME_SESSION_REFUSALS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "format/message_text.h"
#include "kinglet/status.h"

namespace kinglet::session {

inline Status Invalid(const std::string& where, const std::string& expected,
                      const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "session", where, expected, found);
}

inline Status CheckId(uint32_t id, uint32_t size) {
  if (id < size) return Status();
  return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, "session", "token id",
                         "a number below " + std::to_string(size), std::to_string(id));
}

inline Status CheckSize(const char* what, size_t found, size_t expected) {
  if (found == expected) return Status();
  return Invalid(what, std::to_string(expected) + " elements", std::to_string(found));
}

inline Status CheckTemperature(double temperature) {
  if (temperature >= 0 && !std::isinf(temperature)) return Status();
  return Invalid("temperature", "a finite number of at least 0", NumberText(temperature));
}

inline Status CheckShare(double top_p) {
  if (top_p > 0 && top_p <= 1) return Status();
  return Invalid("top-p", "a share above 0, at most 1", NumberText(top_p));
}

inline Status NoTokenYet() {
  return Status::Refusal(KINGLET_NO_TOKEN_YET, "session", "query", "at least one token before it",
                         "none");
}

inline Status NoPart(const char* expected) {
  return Status::Refusal(KINGLET_UNSUPPORTED, "session", "model", expected, "one without");
}

inline Status OutOfMemory() { return Status(KINGLET_OUT_OF_MEMORY, "session: out of memory"); }

}  // namespace kinglet::session

#endif  // KINGLET_RUNTIME_SESSION_REFUSALS_H_
