#include <math.h>
#include <string.h>

#include "tests/runtime/c_api/expect.h"

enum { WORDS = 17, WIDTH = 8, CLASSES = 3, POSITIONS = 9, MASK = 4 };

static const uint32_t kPair[] = {2, 5, MASK, 3, 9, 3};  // [CLS] t5 [MASK] [SEP] t9 [SEP]
static const uint32_t kSegments[] = {0, 0, 0, 0, 1, 1};
enum { LENGTH = 6 };

// The log-probabilities of all words at `position`; the probabilities add up to 1.
static const char* Look(kinglet_session* session, uint32_t lane, uint64_t position, float* all) {
  EXPECT_OK(kinglet_session_look_at(session, lane, position));
  EXPECT_OK(kinglet_session_log_probabilities(session, lane, all, WORDS));
  double sum = 0;
  for (int i = 0; i < WORDS; ++i) sum += exp(all[i]);
  EXPECT(fabs(sum - 1) < 1e-5);
  return NULL;
}

static const char* TestSegmentsOfText(kinglet_model* model) {
  const char* text = "t5 [MASK] ||| t7 t8";
  const uint64_t length = strlen(text);
  uint32_t segments[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  uint64_t needed = 99;
  EXPECT_OK(kinglet_model_text_segments(model, text, length, NULL, 0, &needed));
  EXPECT(needed == 7);
  EXPECT(kinglet_model_text_segments(model, text, length, segments, 6, &needed) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT(needed == 7 && segments[0] == 9);
  EXPECT_OK(kinglet_model_text_segments(model, text, length, segments, 8, NULL));
  const uint32_t expected[8] = {0, 0, 0, 0, 1, 1, 1, 9};
  EXPECT(memcmp(segments, expected, sizeof expected) == 0);
  // Without a pair all are 0.
  EXPECT_OK(kinglet_model_text_segments(model, "t5", 2, segments, 8, &needed));
  EXPECT(needed == 3 && segments[1] == 0 && segments[2] == 0);
  EXPECT_INVALID(kinglet_model_text_segments(NULL, text, length, segments, 8, &needed));
  EXPECT_INVALID(kinglet_model_text_segments(model, NULL, length, segments, 8, &needed));
  kinglet_model* words = OpenTest(TEST_MODEL_MASKED_WORDS);
  EXPECT(kinglet_model_text_segments(words, text, length, segments, 8, &needed) ==
         KINGLET_UNSUPPORTED);
  kinglet_model_close(words);
  return NULL;
}

const char* TestMasked(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_MASKED);
  kinglet_session* session = StartTest(TEST_MODEL_MASKED, 2);
  uint32_t width = 99, scores = 99, mask = 99;
  EXPECT_OK(kinglet_model_longest_source(model, &width));
  EXPECT(width == 9);
  EXPECT_PASSES(TestSegmentsOfText(model));
  EXPECT_OK(kinglet_model_pooled_width(model, &width));
  EXPECT(width == WIDTH);
  EXPECT_OK(kinglet_model_score_count(model, &scores));
  EXPECT(scores == CLASSES);
  EXPECT_OK(kinglet_model_find_token(model, "[MASK]", 6, &mask));
  EXPECT(mask == MASK);

  float first[WORDS], second[WORDS], again[WORDS];
  double pooled[WIDTH + 1], other[WIDTH], classes[CLASSES + 1];
  pooled[WIDTH] = classes[CLASSES] = 99;
  EXPECT_OK(kinglet_session_read(session, 0, kPair, kSegments, LENGTH));
  EXPECT_OK(kinglet_session_pooled(session, 0, pooled, WIDTH + 1));
  EXPECT_PASSES(Look(session, 0, 2, first));
  EXPECT_PASSES(Look(session, 0, 4, second));
  EXPECT(memcmp(first, second, sizeof first) != 0);
  EXPECT_PASSES(Look(session, 0, 2, again));  // in any order
  EXPECT(memcmp(first, again, sizeof first) == 0);
  uint32_t best = 99;
  EXPECT_OK(kinglet_session_top_k(session, 0, 1, &best, NULL, 1, NULL));
  for (int i = 0; i < WORDS; ++i) EXPECT(first[best] >= first[i]);
  EXPECT_OK(kinglet_session_scores(session, 0, 0, classes, CLASSES + 1));
  EXPECT(pooled[WIDTH] == 99 && classes[CLASSES] == 99);
  for (int i = 0; i < WIDTH; ++i) EXPECT(fabs(pooled[i]) <= 1);  // the pooler ends with tanh
  EXPECT_PASSES(Look(session, 0, 2, again));
  EXPECT(memcmp(first, again, sizeof first) == 0);

  // Segments count; NULL means zeros.
  const uint32_t zeros[LENGTH] = {0};
  EXPECT_OK(kinglet_session_read(session, 0, kPair, NULL, LENGTH));
  EXPECT_OK(kinglet_session_pooled(session, 0, other, WIDTH));
  EXPECT(memcmp(pooled, other, sizeof other) != 0);
  EXPECT_PASSES(Look(session, 0, 2, second));
  EXPECT_OK(kinglet_session_read(session, 1, kPair, zeros, LENGTH));
  EXPECT_PASSES(Look(session, 1, 2, again));
  EXPECT(memcmp(second, again, sizeof again) == 0 && memcmp(first, again, sizeof again) != 0);

  // A copy has read the text too.
  kinglet_state* state = NULL;
  EXPECT_OK(kinglet_session_read(session, 0, kPair, kSegments, LENGTH));
  EXPECT_OK(kinglet_session_save(session, 0, &state));
  EXPECT_OK(kinglet_session_fork(session, 0, 1));
  EXPECT_OK(kinglet_session_read(session, 0, kPair, kSegments, 1));
  EXPECT_PASSES(Look(session, 1, 2, again));
  EXPECT(memcmp(first, again, sizeof first) == 0);
  EXPECT_OK(kinglet_session_restore(session, 0, state));
  EXPECT_OK(kinglet_session_pooled(session, 0, other, WIDTH));
  EXPECT(memcmp(pooled, other, sizeof other) == 0);
  kinglet_state_destroy(state);

  // A state that was written as bytes also contains the text, and the position looked at last.
  unsigned char bytes[4096];
  uint64_t size = 0;
  EXPECT_PASSES(Look(session, 0, 2, first));
  EXPECT_OK(kinglet_session_save(session, 0, &state));
  EXPECT_OK(kinglet_state_write(state, bytes, sizeof bytes, &size));
  kinglet_state_destroy(state);
  EXPECT_PASSES(Look(session, 0, 4, second));
  EXPECT_OK(kinglet_state_read(model, bytes, size, &state));
  EXPECT_OK(kinglet_session_restore(session, 1, state));
  EXPECT_OK(kinglet_session_log_probabilities(session, 1, again, WORDS));
  EXPECT(memcmp(first, again, sizeof first) == 0);
  EXPECT_PASSES(Look(session, 1, 4, again));
  EXPECT(memcmp(second, again, sizeof second) == 0);
  kinglet_state_destroy(state);

  uint64_t position = 99;
  EXPECT_OK(kinglet_session_read(session, 0, kPair, kSegments, LENGTH));
  EXPECT_OK(kinglet_session_position(session, 0, &position));
  EXPECT(position == 0);
  EXPECT_PASSES(Look(session, 0, 2, again));
  EXPECT_PASSES(Look(session, 0, 2, again));
  EXPECT_OK(kinglet_session_position(session, 0, &position));
  EXPECT(position == 2);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return NULL;
}

const char* TestMaskedAnswers(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_MASKED_ANSWERS);
  kinglet_session* session = StartTest(TEST_MODEL_MASKED_ANSWERS, 1);
  uint32_t width = 99, scores = 99;
  EXPECT_OK(kinglet_model_pooled_width(model, &width));
  EXPECT_OK(kinglet_model_score_count(model, &scores));
  EXPECT(width == 0 && scores == 2);
  EXPECT_OK(kinglet_session_read(session, 0, kPair, kSegments, LENGTH));
  double answer[LENGTH][2], again[2];
  for (uint64_t i = 0; i < LENGTH; ++i) {
    EXPECT_OK(kinglet_session_scores(session, 0, i, answer[i], 2));
  }
  EXPECT(memcmp(answer[0], answer[5], sizeof again) != 0);
  EXPECT_OK(kinglet_session_scores(session, 0, 3, again, 2));
  EXPECT(memcmp(answer[3], again, sizeof again) == 0);
  EXPECT_INVALID(kinglet_session_scores(session, 0, LENGTH, again, 2));
  EXPECT(memcmp(answer[3], again, sizeof again) == 0);
  EXPECT(kinglet_session_look_at(session, 0, 0) == KINGLET_UNSUPPORTED);
  EXPECT(strstr(kinglet_error_message(), "predicts masked words") != NULL);
  EXPECT(kinglet_session_pooled(session, 0, again, 2) == KINGLET_UNSUPPORTED);
  EXPECT(strstr(kinglet_error_message(), "pooler") != NULL);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return NULL;
}

static const char* OfNoMaskedModel(enum test_model which) {
  kinglet_model* model = OpenTest(which);
  kinglet_session* session = StartTest(which, 1);
  uint32_t width = 99, scores = 99;
  double numbers[WIDTH];
  EXPECT_OK(kinglet_model_pooled_width(model, &width));
  EXPECT_OK(kinglet_model_score_count(model, &scores));
  EXPECT(width == 0 && scores == 0);
  EXPECT(kinglet_session_read(session, 0, kPair, NULL, LENGTH) == KINGLET_UNSUPPORTED);
  EXPECT(strstr(kinglet_error_message(), "masked model") != NULL);
  EXPECT(kinglet_session_look_at(session, 0, 0) == KINGLET_UNSUPPORTED);
  EXPECT(kinglet_session_pooled(session, 0, numbers, WIDTH) == KINGLET_UNSUPPORTED);
  EXPECT(kinglet_session_scores(session, 0, 0, numbers, WIDTH) == KINGLET_UNSUPPORTED);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return NULL;
}

// Nothing of this changes what the session has read.
static const char* RefusedReadings(kinglet_session* session) {
  const uint32_t wrong_id[] = {2, WORDS}, wrong_segment[] = {0, 2};
  const uint32_t longer[POSITIONS + 1] = {2};
  EXPECT_INVALID(kinglet_session_read(NULL, 0, kPair, kSegments, LENGTH));
  EXPECT_INVALID(kinglet_session_read(session, 0, NULL, kSegments, LENGTH));
  EXPECT_INVALID(kinglet_session_read(session, 1, kPair, kSegments, LENGTH));
  EXPECT_INVALID(kinglet_session_read(session, 0, kPair, kSegments, 0));
  EXPECT_INVALID(kinglet_session_read(session, 0, longer, NULL, POSITIONS + 1));
  EXPECT_INVALID(kinglet_session_read(session, 0, longer, NULL, UINT64_MAX));
  EXPECT(kinglet_session_read(session, 0, wrong_id, NULL, 2) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT(kinglet_session_read(session, 0, kPair, wrong_segment, 2) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT(strstr(kinglet_error_message(), "segment") != NULL);
  EXPECT_OK(kinglet_session_cancel(session));
  EXPECT(kinglet_session_read(session, 0, kPair, NULL, LENGTH) == KINGLET_CANCELLED);
  return NULL;
}

static const char* RefusedAnswers(kinglet_session* session, double* numbers) {
  EXPECT_INVALID(kinglet_session_look_at(NULL, 0, 0));
  EXPECT_INVALID(kinglet_session_look_at(session, 1, 0));
  EXPECT_INVALID(kinglet_session_look_at(session, 0, LENGTH));
  EXPECT_INVALID(kinglet_session_look_at(session, 0, UINT64_MAX));
  EXPECT_INVALID(kinglet_session_pooled(NULL, 0, numbers, WIDTH));
  EXPECT_INVALID(kinglet_session_pooled(session, 0, NULL, WIDTH));
  EXPECT_INVALID(kinglet_session_pooled(session, 1, numbers, WIDTH));
  EXPECT(kinglet_session_pooled(session, 0, numbers, WIDTH - 1) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT_INVALID(kinglet_session_scores(NULL, 0, 0, numbers, CLASSES));
  EXPECT_INVALID(kinglet_session_scores(session, 0, 0, NULL, CLASSES));
  EXPECT_INVALID(kinglet_session_scores(session, 1, 0, numbers, CLASSES));
  EXPECT_INVALID(kinglet_session_scores(session, 0, 1, numbers, CLASSES));  // no answers here
  EXPECT(kinglet_session_scores(session, 0, 0, numbers, 2) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT(kinglet_session_step(session, 0, 5) == KINGLET_UNSUPPORTED);
  for (int i = 0; i < WIDTH; ++i) EXPECT(numbers[i] == 7);
  return NULL;
}

const char* TestMaskedErrors(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_MASKED);
  kinglet_session* session = StartTest(TEST_MODEL_MASKED, 1);
  kinglet_session* words = StartTest(TEST_MODEL_MASKED_WORDS, 1);
  kinglet_session* overflows = StartTest(TEST_MODEL_MASKED_OVERFLOWS, 1);
  double numbers[WIDTH] = {7, 7, 7, 7, 7, 7, 7, 7}, number = 7;
  uint32_t size = 99;
  EXPECT_INVALID(kinglet_model_longest_source(NULL, &size));
  EXPECT_INVALID(kinglet_model_longest_source(model, NULL));
  EXPECT_INVALID(kinglet_model_pooled_width(NULL, &size));
  EXPECT_INVALID(kinglet_model_pooled_width(model, NULL));
  EXPECT_INVALID(kinglet_model_score_count(NULL, &size));
  EXPECT_INVALID(kinglet_model_score_count(model, NULL));
  EXPECT(size == 99);

  EXPECT_PASSES(RefusedReadings(session));
  EXPECT(kinglet_session_look_at(session, 0, 0) == KINGLET_NO_SOURCE_YET);
  EXPECT(kinglet_session_pooled(session, 0, numbers, WIDTH) == KINGLET_NO_SOURCE_YET);
  EXPECT(kinglet_session_scores(session, 0, 0, numbers, CLASSES) == KINGLET_NO_SOURCE_YET);
  EXPECT_OK(kinglet_session_read(session, 0, kPair, kSegments, LENGTH));
  EXPECT(kinglet_session_log_probability(session, 0, 5, &number) == KINGLET_NO_TOKEN_YET);
  EXPECT_PASSES(RefusedAnswers(session, numbers));
  float before[WORDS], after[WORDS];
  EXPECT_PASSES(Look(session, 0, 2, before));
  EXPECT_PASSES(RefusedReadings(session));
  EXPECT_PASSES(RefusedAnswers(session, numbers));
  EXPECT_OK(kinglet_session_cancel(session));
  EXPECT(kinglet_session_look_at(session, 0, 4) == KINGLET_CANCELLED);
  EXPECT_OK(kinglet_session_log_probabilities(session, 0, after, WORDS));
  EXPECT(memcmp(before, after, sizeof before) == 0);
  EXPECT_PASSES(Look(session, 0, 2, after));
  EXPECT(memcmp(before, after, sizeof before) == 0);
  EXPECT_OK(kinglet_session_cancel(session));
  EXPECT(kinglet_session_pooled(session, 0, numbers, WIDTH) == KINGLET_CANCELLED);
  EXPECT_OK(kinglet_session_reset(session, 0));
  EXPECT(kinglet_session_look_at(session, 0, 0) == KINGLET_NO_SOURCE_YET);

  EXPECT_OK(kinglet_session_read(words, 0, kPair, NULL, LENGTH));
  EXPECT_PASSES(Look(words, 0, 2, after));
  EXPECT(kinglet_session_pooled(words, 0, numbers, WIDTH) == KINGLET_UNSUPPORTED);
  EXPECT(kinglet_session_scores(words, 0, 0, numbers, WIDTH) == KINGLET_UNSUPPORTED);
  EXPECT_OK(kinglet_session_read(overflows, 0, kPair, NULL, LENGTH));
  EXPECT(kinglet_session_scores(overflows, 0, 0, numbers, CLASSES) == KINGLET_NOT_FINITE);
  for (int i = 0; i < WIDTH; ++i) EXPECT(numbers[i] == 7);
  EXPECT(number == 7);
  EXPECT_PASSES(OfNoMaskedModel(TEST_MODEL_PLAIN));
  EXPECT_PASSES(OfNoMaskedModel(TEST_MODEL_TRANSLATION));
  kinglet_session_destroy(overflows);
  kinglet_session_destroy(words);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return NULL;
}
