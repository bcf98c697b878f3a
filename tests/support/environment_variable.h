// Environment variables of a test's process.
#ifndef KINGLET_TESTS_SUPPORT_ENVIRONMENT_VARIABLE_H_
#define KINGLET_TESTS_SUPPORT_ENVIRONMENT_VARIABLE_H_

#include <cstdlib>

namespace kinglet {

// An empty value removes the variable.
inline void SetVariable(const char* name, const char* value) {
#if defined(_WIN32)
  ::_putenv_s(name, value);
#else
  if (*value == '\0') {
    ::unsetenv(name);
  } else {
    ::setenv(name, value, 1);
  }
#endif
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_ENVIRONMENT_VARIABLE_H_
