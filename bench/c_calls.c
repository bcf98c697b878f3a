/* What bench/python_calls compares Python with: a step and a query of every token of a text through
   the C interface. A shared library, so that both run in one process and find memory alike. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <time.h>

#include "kinglet/kinglet.h"

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* Writes the microseconds of each of the count - 1 steps, and the sum of what the queries answer.
   On failure returns what failed; kinglet_error_message() says more. */
__attribute__((visibility("default"))) kinglet_status c_calls(const char* path, const uint32_t* ids,
                                                              uint64_t count, double* microseconds,
                                                              double* sum) {
  kinglet_model* model = NULL;
  kinglet_session* session = NULL;
  kinglet_status status = kinglet_model_open(path, NULL, &model);
  if (status == KINGLET_OK) status = kinglet_session_create(model, NULL, &session);
  *sum = 0;
  for (uint64_t at = 0; status == KINGLET_OK && at + 1 < count; ++at) {
    double value = 0;
    const double begin = Now();
    status = kinglet_session_step(session, 0, ids[at]);
    if (status == KINGLET_OK) {
      status = kinglet_session_log_probability(session, 0, ids[at + 1], &value);
    }
    microseconds[at] = Now() - begin;
    *sum += value;
  }
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return status;
}
