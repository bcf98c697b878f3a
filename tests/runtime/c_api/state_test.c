#include <stdlib.h>
#include <string.h>

#include "tests/runtime/c_api/expect.h"

enum { V = TEST_WORDS };

static int AreEqual(const kinglet_state* a, const kinglet_state* b) {
  int32_t equal = -1;
  return kinglet_state_equal(a, b, &equal) == KINGLET_OK ? equal : -1;
}

static uint64_t HashOf(const kinglet_state* state) {
  uint64_t hash = 0;
  return kinglet_state_hash(state, &hash) == KINGLET_OK ? hash : 0;
}

// Steps the lane through 15 tokens; their log-probabilities go to `out`.
static kinglet_status Continue(kinglet_session* session, uint32_t lane, double out[15]) {
  for (uint32_t t = 0; t < 15; ++t) {
    kinglet_status status = kinglet_session_step(session, lane, (5 * t + 2) % V);
    if (status != KINGLET_OK) return status;
    status = kinglet_session_log_probability(session, lane, (9 * t) % V, &out[t]);
    if (status != KINGLET_OK) return status;
  }
  return KINGLET_OK;
}

const char* TestStates(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 2);
  kinglet_session* elsewhere = StartTest(TEST_MODEL_CACHE, 3);  // of a model opened once more
  kinglet_state *start = NULL, *early = NULL, *late = NULL, *again = NULL;
  double first[15], second[15];
  uint64_t position = 99;
  EXPECT_OK(kinglet_session_save(session, 0, &start));
  for (uint32_t t = 0; t < 11; ++t) EXPECT_OK(kinglet_session_step(session, 0, t));
  EXPECT_OK(kinglet_session_save(session, 0, &early));
  EXPECT_OK(kinglet_session_save(session, 0, &again));
  EXPECT(AreEqual(early, again) == 1 && HashOf(early) == HashOf(again));
  EXPECT_OK(Continue(session, 0, first));
  EXPECT_OK(kinglet_session_save(session, 0, &late));
  EXPECT(AreEqual(early, late) == 0 && HashOf(early) != HashOf(late));
  EXPECT(AreEqual(start, early) == 0 && AreEqual(late, late) == 1);

  EXPECT_INVALID(kinglet_state_position(NULL, &position));
  EXPECT_INVALID(kinglet_state_position(early, NULL));
  EXPECT(position == 99);
  EXPECT_OK(kinglet_state_position(early, &position));
  EXPECT(position == 11);
  EXPECT_OK(kinglet_state_position(late, &position));
  EXPECT(position == 26);

  // Back in time, into another lane, into another session: the same from there on.
  EXPECT_OK(kinglet_session_restore(session, 0, early));
  EXPECT_OK(Continue(session, 0, second));
  EXPECT(memcmp(first, second, sizeof first) == 0);
  EXPECT_OK(kinglet_session_restore(session, 1, early));
  EXPECT_OK(Continue(session, 1, second));
  EXPECT(memcmp(first, second, sizeof first) == 0);
  kinglet_session_destroy(session);  // its states stay
  EXPECT_OK(kinglet_session_restore(elsewhere, 2, early));
  EXPECT_OK(kinglet_session_position(elsewhere, 2, &position));
  EXPECT(position == 11);
  EXPECT_OK(Continue(elsewhere, 2, second));
  EXPECT(memcmp(first, second, sizeof first) == 0);
  kinglet_state_destroy(again);
  EXPECT_OK(kinglet_session_save(elsewhere, 2, &again));
  EXPECT(AreEqual(again, late) == 1 && HashOf(again) == HashOf(late));

  // The start of a stream is a state like any other.
  double one = 5;
  EXPECT_OK(kinglet_session_restore(elsewhere, 2, start));
  EXPECT(kinglet_session_log_probability(elsewhere, 2, 0, &one) == KINGLET_NO_TOKEN_YET);
  EXPECT_OK(kinglet_session_position(elsewhere, 2, &position));
  EXPECT(position == 0 && one == 5);
  kinglet_session_destroy(elsewhere);
  kinglet_state_destroy(start);
  kinglet_state_destroy(again);
  kinglet_state_destroy(late);
  kinglet_state_destroy(early);
  kinglet_state_destroy(NULL);
  return NULL;
}

const char* TestStateBytes(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 1);
  uint64_t largest = 0, previous = 0;
  EXPECT_OK(kinglet_model_state_bytes(model, &largest));
  for (uint32_t t = 0; t < 20; ++t) {
    kinglet_state *state = NULL, *read = NULL;
    EXPECT_OK(kinglet_session_save(session, 0, &state));
    uint64_t size = 0, needed = 0;
    EXPECT_OK(kinglet_state_bytes(state, &size));
    EXPECT(size >= previous && size <= largest);
    previous = size;
    EXPECT_OK(kinglet_state_write(state, NULL, 0, &needed));
    EXPECT(needed == size);
    EXPECT_OK(kinglet_state_write(state, NULL, 0, NULL));
    unsigned char* bytes = malloc(size + 2);
    EXPECT(bytes != NULL);
    memset(bytes, '*', size + 2);
    needed = 0;
    EXPECT(kinglet_state_write(state, bytes, size - 1, &needed) == KINGLET_BUFFER_TOO_SMALL);
    EXPECT(needed == size && bytes[0] == '*');
    EXPECT(kinglet_state_write(state, bytes, 0, NULL) == KINGLET_BUFFER_TOO_SMALL);
    EXPECT_OK(kinglet_state_write(state, bytes + 1, size, NULL));  // at an odd address
    EXPECT(bytes[0] == '*' && bytes[size + 1] == '*');
    EXPECT(memcmp(bytes + 1, "KGLS", 4) == 0);
    EXPECT_OK(kinglet_state_read(model, bytes + 1, size, &read));
    memset(bytes, 0, size + 2);  // they were copied
    EXPECT(AreEqual(state, read) == 1 && HashOf(state) == HashOf(read));
    EXPECT_OK(kinglet_session_restore(session, 0, read));
    free(bytes);
    kinglet_state_destroy(read);
    kinglet_state_destroy(state);
    EXPECT_OK(kinglet_session_step(session, 0, t));
  }
  EXPECT(previous == largest);  // window and cache are full
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return NULL;
}

const char* TestStateErrors(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  kinglet_model* other_model = OpenTest(TEST_MODEL_OTHER);
  kinglet_session* session = NULL;
  kinglet_session* other = NULL;
  kinglet_state *state = NULL, *untouched = NULL;
  EXPECT_OK(kinglet_session_create(model, NULL, &session));
  EXPECT_OK(kinglet_session_create(other_model, NULL, &other));
  for (uint32_t t = 0; t < 9; ++t) EXPECT_OK(kinglet_session_step(session, 0, t));
  for (uint32_t t = 0; t < 3; ++t) EXPECT_OK(kinglet_session_step(other, 0, t));
  EXPECT_INVALID(kinglet_session_save(NULL, 0, &state));
  EXPECT_INVALID(kinglet_session_save(session, 0, NULL));
  EXPECT_INVALID(kinglet_session_save(session, 1, &state));
  EXPECT(state == NULL);
  EXPECT_OK(kinglet_session_save(session, 0, &state));

  double before = 5, after = 6;
  EXPECT_OK(kinglet_session_log_probability(other, 0, 22, &before));
  EXPECT_INVALID(kinglet_session_restore(NULL, 0, state));
  EXPECT_INVALID(kinglet_session_restore(session, 0, NULL));
  EXPECT_INVALID(kinglet_session_restore(session, 1, state));
  EXPECT(kinglet_session_restore(other, 0, state) == KINGLET_MISMATCH);
  EXPECT_OK(kinglet_session_log_probability(other, 0, 22, &after));
  uint64_t position = 0;
  EXPECT_OK(kinglet_session_position(other, 0, &position));
  EXPECT(before == after && position == 3);

  int32_t equal = 5;
  uint64_t number = 5;
  EXPECT_INVALID(kinglet_state_equal(NULL, state, &equal));
  EXPECT_INVALID(kinglet_state_equal(state, NULL, &equal));
  EXPECT_INVALID(kinglet_state_equal(state, state, NULL));
  EXPECT_INVALID(kinglet_state_hash(NULL, &number));
  EXPECT_INVALID(kinglet_state_hash(state, NULL));
  EXPECT_INVALID(kinglet_state_bytes(NULL, &number));
  EXPECT_INVALID(kinglet_state_bytes(state, NULL));
  EXPECT_INVALID(kinglet_state_write(NULL, NULL, 0, &number));
  EXPECT(equal == 5 && number == 5);

  uint64_t size = 0;
  EXPECT_OK(kinglet_state_bytes(state, &size));
  unsigned char* bytes = malloc(size + 1);
  EXPECT(bytes != NULL);
  EXPECT_OK(kinglet_state_write(state, bytes, size, NULL));
  bytes[size] = 0;
  EXPECT_INVALID(kinglet_state_read(NULL, bytes, size, &untouched));
  EXPECT_INVALID(kinglet_state_read(model, NULL, size, &untouched));
  EXPECT_INVALID(kinglet_state_read(model, bytes, size, NULL));
  EXPECT_INVALID(kinglet_state_read(model, bytes, UINT64_MAX, &untouched));
  for (uint64_t part = 0; part < size; ++part) {
    EXPECT(kinglet_state_read(model, bytes, part, &untouched) == KINGLET_CORRUPT);
  }
  EXPECT(kinglet_state_read(model, bytes, size + 1, &untouched) == KINGLET_CORRUPT);
  EXPECT(kinglet_state_read(other_model, bytes, size, &untouched) == KINGLET_MISMATCH);
  for (uint64_t i = 0; i < size; ++i) {
    bytes[i] ^= 1;
    const kinglet_status status = kinglet_state_read(model, bytes, size, &untouched);
    // Bytes 4 .. 7 are the version, which is looked at first.
    EXPECT(status == (i >= 4 && i < 8 ? KINGLET_UNSUPPORTED_VERSION : KINGLET_CORRUPT));
    bytes[i] ^= 1;
  }
  EXPECT(untouched == NULL);

  // Of the same file on a backend with other floats.
  const test_bytes file = TestModel(TEST_MODEL_CACHE);
  kinglet_model* in_double = NULL;
  kinglet_model_options options;
  EXPECT_OK(kinglet_model_options_init(&options, sizeof options));
  options.backend = "ref64";
  EXPECT_OK(kinglet_model_open_memory(file.data, file.size, &options, &in_double));
  EXPECT(kinglet_state_read(in_double, bytes, size, &untouched) == KINGLET_MISMATCH);
  EXPECT(untouched == NULL);
  free(bytes);
  kinglet_model_close(in_double);
  kinglet_session_destroy(other);
  kinglet_session_destroy(session);
  kinglet_model_close(other_model);
  kinglet_model_close(model);
  // The model's handle and every session are gone.
  EXPECT_OK(kinglet_state_position(state, &position));
  EXPECT(position == 9 && AreEqual(state, state) == 1);
  kinglet_state_destroy(state);
  return NULL;
}
