#include <math.h>

#include "tests/runtime/c_api/expect.h"

enum { TOKENS = 70 };

// A text in two calls: the log-probabilities and the stream are those of single steps.
const char* TestManySteps(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 2);
  kinglet_session* single = StartTest(TEST_MODEL_CACHE, 1);
  uint32_t ids[TOKENS];
  double out[TOKENS + 1], expected = 0;
  uint64_t processed = 99, position = 99;
  for (uint32_t t = 0; t < TOKENS; ++t) ids[t] = (7 * t + t / 5) % TEST_WORDS;
  out[TOKENS] = 5;
  EXPECT_OK(kinglet_session_step_many(session, 1, ids, 40, out, &processed));
  EXPECT(processed == 40);
  EXPECT_OK(kinglet_session_step_many(session, 1, ids + 40, TOKENS - 40, out + 40, NULL));
  EXPECT(isnan(out[0]) && out[TOKENS] == 5);
  for (uint32_t t = 0; t < TOKENS; ++t) {
    if (t > 0) {
      EXPECT_OK(kinglet_session_log_probability(single, 0, ids[t], &expected));
      EXPECT(out[t] == expected);
    }
    EXPECT_OK(kinglet_session_step(single, 0, ids[t]));
  }
  EXPECT_OK(kinglet_session_position(session, 1, &position));
  EXPECT(position == TOKENS);
  EXPECT_OK(kinglet_session_position(session, 0, &position));
  EXPECT(position == 0);
  EXPECT_OK(kinglet_session_step_many(session, 0, ids, TOKENS, NULL, NULL));
  double a = 0, b = 1;
  EXPECT_OK(kinglet_session_log_probability(session, 0, 3, &a));
  EXPECT_OK(kinglet_session_log_probability(single, 0, 3, &b));
  EXPECT(a == b);

  EXPECT_OK(kinglet_session_step_many(session, 0, NULL, 0, NULL, &processed));
  EXPECT(processed == 0);
  processed = 99;
  EXPECT_INVALID(kinglet_session_step_many(NULL, 0, ids, 1, out, &processed));
  EXPECT(processed == 0);
  EXPECT_INVALID(kinglet_session_step_many(session, 0, NULL, 1, out, NULL));
  EXPECT_INVALID(kinglet_session_step_many(session, 2, ids, 1, out, NULL));
  EXPECT_INVALID(kinglet_session_step_many(session, 0, ids, UINT64_MAX, out, NULL));
  ids[TOKENS - 1] = TEST_WORDS;
  EXPECT(kinglet_session_step_many(session, 0, ids, TOKENS, out, &processed) ==
         KINGLET_ID_OUT_OF_RANGE);
  EXPECT_OK(kinglet_session_cancel(session));
  EXPECT(kinglet_session_step_many(session, 0, ids, 2, out, &processed) == KINGLET_CANCELLED);
  EXPECT(processed == 0);
  EXPECT_OK(kinglet_session_position(session, 0, &position));
  EXPECT(position == TOKENS);
  kinglet_session_destroy(single);
  kinglet_session_destroy(session);
  return NULL;
}
