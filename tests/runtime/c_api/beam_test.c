#include <string.h>

#include "tests/runtime/c_api/expect.h"

enum { BEAM = 5, MORE = 4 };

static kinglet_beam* StartBeam(enum test_model which, uint32_t lanes, uint64_t bytes) {
  kinglet_model* model = OpenTest(which);
  kinglet_beam_options options;
  kinglet_beam* beam = NULL;
  if (kinglet_beam_options_init(&options, sizeof options) == KINGLET_OK) {
    options.lanes = lanes;
    options.state_bytes = bytes;
    kinglet_beam_create(model, &options, &beam);
  }
  kinglet_model_close(model);
  return beam;
}

// A search that keeps five hypotheses and extends each by its four best tokens, with memory for one
// state: every answer is that of a session that was stepped from the start.
const char* TestBeams(void) {
  kinglet_beam* beam = StartBeam(TEST_MODEL_CACHE, 3, 1);
  kinglet_session* alone = StartTest(TEST_MODEL_CACHE, 1);
  uint64_t start = 0, kept[BEAM], count = 1;
  EXPECT_OK(kinglet_beam_begin(beam, NULL, &start));
  const uint32_t first = 4;
  EXPECT_OK(kinglet_beam_step(beam, &start, &first, 1, kept));
  for (int t = 0; t < 6; ++t) {
    uint32_t best[BEAM * MORE], each = 0;
    double log_probabilities[BEAM * MORE], again[BEAM * MORE];
    uint64_t from[BEAM * MORE], next[BEAM * MORE];
    float rows[BEAM * TEST_WORDS];
    EXPECT_OK(
        kinglet_beam_top_k(beam, kept, count, MORE, best, log_probabilities, BEAM * MORE, &each));
    EXPECT(each == MORE);
    EXPECT_OK(kinglet_beam_log_probabilities(beam, kept, count, rows, BEAM * TEST_WORDS));
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t ids[9], found[MORE];
      uint64_t length = 0;
      double values[MORE];
      float row[TEST_WORDS];
      EXPECT_OK(kinglet_beam_tokens(beam, kept[i], ids, 9, &length));
      EXPECT_OK(kinglet_session_reset(alone, 0));
      for (uint64_t j = 0; j < length; ++j) EXPECT_OK(kinglet_session_step(alone, 0, ids[j]));
      EXPECT_OK(kinglet_session_top_k(alone, 0, MORE, found, values, MORE, NULL));
      EXPECT(memcmp(found, best + i * MORE, sizeof found) == 0);
      EXPECT(memcmp(values, log_probabilities + i * MORE, sizeof values) == 0);
      EXPECT_OK(kinglet_session_log_probabilities(alone, 0, row, TEST_WORDS));
      EXPECT(memcmp(row, rows + i * TEST_WORDS, sizeof row) == 0);
      for (int j = 0; j < MORE; ++j) from[i * MORE + (uint64_t)j] = kept[i];
    }
    EXPECT_OK(kinglet_beam_log_probability(beam, from, best, count * MORE, again));
    EXPECT(memcmp(again, log_probabilities, count * MORE * sizeof *again) == 0);
    EXPECT_OK(kinglet_beam_step(beam, from, best, count * MORE, next));
    // The first five pairs, which the caller keeps with references of their own.
    const uint64_t all = count * MORE;
    EXPECT_OK(kinglet_beam_drop(beam, kept, count));
    count = all < BEAM ? all : BEAM;
    memcpy(kept, next, count * sizeof *kept);
    EXPECT_OK(kinglet_beam_hold(beam, kept, count));
    EXPECT_OK(kinglet_beam_drop(beam, next, all));
  }
  uint64_t stepped = 0;
  EXPECT_OK(kinglet_beam_stepped(beam, &stepped));
  EXPECT(stepped > 1 + 4 + 5 * 4);

  // The state goes to a session, and begins another beam.
  kinglet_state *state = NULL, *same = NULL;
  uint64_t later = 0;
  EXPECT_OK(kinglet_beam_save(beam, kept[count - 1], &state));
  EXPECT_OK(kinglet_session_restore(alone, 0, state));
  kinglet_beam* other = StartBeam(TEST_MODEL_CACHE, 0, 0);
  EXPECT_OK(kinglet_beam_begin(other, state, &later));
  EXPECT_OK(kinglet_beam_step(other, &later, &first, 1, &later));
  EXPECT_OK(kinglet_session_step(alone, 0, first));
  kinglet_state_destroy(state);
  int32_t equal = 0;
  EXPECT_OK(kinglet_beam_save(other, later, &state));
  EXPECT_OK(kinglet_session_save(alone, 0, &same));
  EXPECT_OK(kinglet_state_equal(state, same, &equal));
  EXPECT(equal == 1);
  kinglet_state_destroy(state);
  kinglet_state_destroy(same);
  kinglet_beam_destroy(other);
  kinglet_beam_destroy(beam);
  kinglet_session_destroy(alone);
  return NULL;
}

const char* TestBeamErrors(void) {
  kinglet_beam* beam = StartBeam(TEST_MODEL_CACHE, 2, 0);
  kinglet_model* masked = OpenTest(TEST_MODEL_MASKED);
  kinglet_beam_options options;
  kinglet_beam* none = NULL;
  uint64_t start = 0, at = 0, needed = 9;
  uint32_t ids[] = {1, TEST_WORDS}, each = 9;
  double numbers[2] = {5, 5};
  float row[TEST_WORDS];
  EXPECT_INVALID(kinglet_beam_options_init(&options, 3));
  EXPECT_OK(kinglet_beam_options_init(&options, sizeof options));
  EXPECT(kinglet_beam_create(masked, &options, &none) == KINGLET_UNSUPPORTED);
  options.empty_cache = 7;
  EXPECT_INVALID(kinglet_beam_create(masked, &options, &none));
  EXPECT_INVALID(kinglet_beam_create(NULL, NULL, &none));
  EXPECT_INVALID(kinglet_beam_create(masked, NULL, NULL));
  EXPECT(none == NULL);
  kinglet_model_close(masked);

  EXPECT_INVALID(kinglet_beam_begin(NULL, NULL, &start));
  EXPECT_INVALID(kinglet_beam_begin(beam, NULL, NULL));
  EXPECT_OK(kinglet_beam_begin(beam, NULL, &start));
  EXPECT_INVALID(kinglet_beam_step(NULL, &start, ids, 1, &at));
  EXPECT_INVALID(kinglet_beam_step(beam, NULL, ids, 1, &at));
  EXPECT_INVALID(kinglet_beam_step(beam, &start, NULL, 1, &at));
  EXPECT_INVALID(kinglet_beam_step(beam, &start, ids, 1, NULL));
  EXPECT_INVALID(kinglet_beam_step(beam, &start, ids, UINT64_MAX, &at));
  EXPECT(kinglet_beam_step(beam, &start, ids + 1, 1, &at) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT(at == 0);
  EXPECT_OK(kinglet_beam_step(beam, NULL, NULL, 0, NULL));
  EXPECT_OK(kinglet_beam_step(beam, &start, ids, 1, &at));

  EXPECT(kinglet_beam_log_probability(beam, &start, ids, 1, numbers) == KINGLET_NO_TOKEN_YET);
  EXPECT(kinglet_beam_log_probability(beam, &at, ids + 1, 1, numbers) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT_INVALID(kinglet_beam_log_probability(beam, &at, ids, 1, NULL));
  EXPECT(numbers[0] == 5);
  EXPECT(kinglet_beam_log_probabilities(beam, &at, 1, row, TEST_WORDS - 1) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT_INVALID(kinglet_beam_log_probabilities(beam, &at, 1, NULL, TEST_WORDS));
  EXPECT_INVALID(kinglet_beam_log_probabilities(beam, &at, UINT64_MAX / 8, row, UINT64_MAX));
  EXPECT_OK(kinglet_beam_log_probabilities(beam, NULL, 0, NULL, 0));
  EXPECT(kinglet_beam_top_k(beam, &at, 1, 3, ids, numbers, 2, &each) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT(each == 3 && ids[0] == 1);
  EXPECT_OK(kinglet_beam_top_k(beam, &at, 1, 2, NULL, NULL, 0, NULL));
  EXPECT(kinglet_beam_tokens(beam, at, ids, 0, &needed) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT(needed == 1);
  EXPECT_OK(kinglet_beam_tokens(beam, at, NULL, 0, &needed));
  EXPECT_INVALID(kinglet_beam_save(beam, at, NULL));
  EXPECT_INVALID(kinglet_beam_stepped(beam, NULL));
  EXPECT_INVALID(kinglet_beam_cancel(NULL));

  kinglet_state* state = NULL;
  EXPECT_OK(kinglet_beam_step(beam, &at, ids, 1, &at));
  EXPECT_OK(kinglet_beam_cancel(beam));
  EXPECT(kinglet_beam_top_k(beam, &at, 1, 2, NULL, NULL, 0, NULL) == KINGLET_CANCELLED);
  EXPECT_OK(kinglet_beam_top_k(beam, &at, 1, 2, NULL, NULL, 0, NULL));
  EXPECT_OK(kinglet_beam_drop(beam, &at, 1));
  EXPECT_INVALID(kinglet_beam_drop(beam, &at, 1));
  EXPECT_INVALID(kinglet_beam_hold(beam, &at, 1));
  EXPECT_INVALID(kinglet_beam_tokens(beam, at, NULL, 0, &needed));
  EXPECT_INVALID(kinglet_beam_save(beam, at, &state));
  EXPECT(state == NULL);
  kinglet_beam* other = StartBeam(TEST_MODEL_OTHER, 1, 0);
  EXPECT_INVALID(kinglet_beam_step(other, &start, ids, 1, &at));
  uint64_t of_other = 0;
  EXPECT_OK(kinglet_beam_begin(other, NULL, &of_other));
  EXPECT_OK(kinglet_beam_step(other, &of_other, ids, 1, &of_other));
  EXPECT_OK(kinglet_beam_save(other, of_other, &state));
  EXPECT(kinglet_beam_begin(beam, state, &at) == KINGLET_MISMATCH);
  kinglet_state_destroy(state);
  kinglet_beam_destroy(other);
  kinglet_beam_destroy(beam);
  beam = StartBeam(TEST_MODEL_TRANSLATION, 1, 0);
  EXPECT(kinglet_beam_begin(beam, NULL, &start) == KINGLET_NO_SOURCE_YET);
  kinglet_beam_destroy(beam);
  kinglet_beam_destroy(NULL);
  return NULL;
}
