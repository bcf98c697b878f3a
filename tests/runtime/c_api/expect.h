// How a test in C reports what failed, and opens what it needs.
#ifndef KINGLET_TESTS_RUNTIME_C_API_EXPECT_H_
#define KINGLET_TESTS_RUNTIME_C_API_EXPECT_H_

#include <stddef.h>

#include "kinglet/kinglet.h"
#include "tests/runtime/c_api/c_tests.h"

#define TEXT_INNER_(x) #x
#define TEXT_(x) TEXT_INNER_(x)
#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) return __FILE__ ":" TEXT_(__LINE__) ": " #condition; \
  } while (0)
#define EXPECT_OK(call) EXPECT((call) == KINGLET_OK)
#define EXPECT_INVALID(call) EXPECT((call) == KINGLET_INVALID_ARGUMENT)
// Returns the failure of another test function, if any.
#define EXPECT_PASSES(call)              \
  do {                                   \
    const char* const failed_ = (call);  \
    if (failed_ != NULL) return failed_; \
  } while (0)

// Options of a draw from all tokens at this temperature.
#define AT_TEMPERATURE(temperature) \
  (&(kinglet_draw_options){sizeof(kinglet_draw_options), 0, (temperature), 1, NULL, 0})

// NULL if it fails, which the test's next use of the handle reports.
static inline kinglet_model* OpenTest(enum test_model which) {
  const test_bytes bytes = TestModel(which);
  kinglet_model* model = NULL;
  kinglet_model_open_memory(bytes.data, bytes.size, NULL, &model);
  return model;
}

// A session of `lanes` lanes of a model of its own.
static inline kinglet_session* StartTest(enum test_model which, uint32_t lanes) {
  kinglet_model* model = OpenTest(which);
  kinglet_session_options options;
  kinglet_session* session = NULL;
  if (kinglet_session_options_init(&options, sizeof options) == KINGLET_OK) {
    options.lanes = lanes;
    kinglet_session_create(model, &options, &session);
  }
  kinglet_model_close(model);
  return session;
}

#endif  // KINGLET_TESTS_RUNTIME_C_API_EXPECT_H_
