#include <string.h>

#include "tests/runtime/c_api/expect.h"

const char* TestSources(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_TRANSLATION);
  kinglet_session* session = StartTest(TEST_MODEL_TRANSLATION, 2);
  uint32_t words = 99, id = 99;
  EXPECT_OK(kinglet_model_source_vocabulary_size(model, &words));
  EXPECT(words == TEST_SOURCE_WORDS);
  EXPECT_OK(kinglet_model_longest_source(model, &words));
  EXPECT(words == 7);
  EXPECT_OK(kinglet_model_vocabulary_size(model, &words));
  EXPECT(words == TEST_WORDS);
  EXPECT_OK(kinglet_model_find_source_token(model, "s12?", 3, &id));
  EXPECT(id == 12);
  EXPECT_OK(kinglet_model_find_token(model, "<s>", 3, &id));
  EXPECT(id == 2);

  const uint32_t source[] = {1, 12, 0}, other[] = {1, 12, 4};
  double first = 0, again = 0, changed = 0;
  EXPECT_OK(kinglet_session_encode(session, 0, source, 3));
  EXPECT_OK(kinglet_session_step(session, 0, 2));
  EXPECT_OK(kinglet_session_log_probability(session, 0, 3, &first));
  EXPECT_OK(kinglet_session_step(session, 0, 5));
  EXPECT_OK(kinglet_session_fork(session, 0, 1));
  EXPECT_OK(kinglet_session_encode(session, 1, other, 3));
  EXPECT_OK(kinglet_session_step(session, 1, 2));
  EXPECT_OK(kinglet_session_log_probability(session, 1, 3, &changed));
  EXPECT_OK(kinglet_session_encode(session, 1, source, 3));
  EXPECT_OK(kinglet_session_step(session, 1, 2));
  EXPECT_OK(kinglet_session_log_probability(session, 1, 3, &again));
  EXPECT(first == again && first != changed);

  uint64_t position = 99;
  EXPECT_OK(kinglet_session_encode(session, 0, source, 1));
  EXPECT_OK(kinglet_session_position(session, 0, &position));
  EXPECT(position == 0);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return NULL;
}

const char* TestSourceErrors(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_TRANSLATION);
  kinglet_model* plain = OpenTest(TEST_MODEL_PLAIN);
  kinglet_session* session = StartTest(TEST_MODEL_TRANSLATION, 1);
  kinglet_session* language = StartTest(TEST_MODEL_PLAIN, 1);
  const uint32_t source[] = {1, 12, 0, 1, 1, 1, 1, 1}, wrong[] = {1, TEST_SOURCE_WORDS};
  uint32_t size = 99, id = 99;
  EXPECT_INVALID(kinglet_model_source_vocabulary_size(NULL, &size));
  EXPECT_INVALID(kinglet_model_source_vocabulary_size(model, NULL));
  EXPECT(size == 99);
  EXPECT_OK(kinglet_model_source_vocabulary_size(plain, &size));
  EXPECT(size == 0);
  EXPECT_INVALID(kinglet_model_find_source_token(NULL, "s1", 2, &id));
  EXPECT_INVALID(kinglet_model_find_source_token(model, NULL, 2, &id));
  EXPECT_INVALID(kinglet_model_find_source_token(model, "s1", 2, NULL));
  EXPECT(kinglet_model_find_source_token(model, "t1", 2, &id) == KINGLET_UNKNOWN_WORD);
  EXPECT(kinglet_model_find_source_token(plain, "the", 3, &id) == KINGLET_UNSUPPORTED);
  EXPECT(id == 99);

  EXPECT(kinglet_session_step(session, 0, 2) == KINGLET_NO_SOURCE_YET);
  EXPECT_INVALID(kinglet_session_encode(NULL, 0, source, 3));
  EXPECT_INVALID(kinglet_session_encode(session, 0, NULL, 3));
  EXPECT_INVALID(kinglet_session_encode(session, 0, source, 0));
  EXPECT_INVALID(kinglet_session_encode(session, 0, source, 8));  // of 7 positions
  EXPECT_INVALID(kinglet_session_encode(session, 0, source, UINT64_MAX));
  EXPECT_INVALID(kinglet_session_encode(session, 1, source, 3));
  EXPECT(kinglet_session_encode(session, 0, wrong, 2) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT(kinglet_session_encode(language, 0, source, 3) == KINGLET_UNSUPPORTED);
  EXPECT(strstr(kinglet_error_message(), "encoder") != NULL);
  EXPECT_OK(kinglet_session_cancel(session));
  EXPECT(kinglet_session_encode(session, 0, source, 3) == KINGLET_CANCELLED);
  EXPECT(kinglet_session_step(session, 0, 2) == KINGLET_NO_SOURCE_YET);
  EXPECT_OK(kinglet_session_encode(session, 0, source, 7));
  EXPECT_OK(kinglet_session_reset(session, 0));
  EXPECT(kinglet_session_step(session, 0, 2) == KINGLET_NO_SOURCE_YET);
  kinglet_session_destroy(language);
  kinglet_session_destroy(session);
  kinglet_model_close(plain);
  kinglet_model_close(model);
  return NULL;
}
