#define _POSIX_C_SOURCE 200809L  // pthread

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/runtime/c_api/expect.h"

_Static_assert(offsetof(kinglet_session_options, struct_size) == 0, "first");
_Static_assert(offsetof(kinglet_session_options, empty_cache) == 4, "fixed");
_Static_assert(offsetof(kinglet_session_options, lanes) == 8, "fixed");
_Static_assert(offsetof(kinglet_session_options, threads) == 12, "fixed");
_Static_assert(sizeof(kinglet_session_options) == 16, "no padding at the end");

static uint64_t PositionOf(const kinglet_session* session, uint32_t lane) {
  uint64_t position = UINT64_MAX;
  kinglet_session_position(session, lane, &position);
  return position;
}

// Whether two lanes predict the same, bit for bit.
static int SameAnswers(kinglet_session* a, uint32_t lane_a, kinglet_session* b, uint32_t lane_b) {
  float of_a[TEST_WORDS], of_b[TEST_WORDS];
  return kinglet_session_log_probabilities(a, lane_a, of_a, TEST_WORDS) == KINGLET_OK &&
         kinglet_session_log_probabilities(b, lane_b, of_b, TEST_WORDS) == KINGLET_OK &&
         memcmp(of_a, of_b, sizeof of_a) == 0;
}

const char* TestSessionOptions(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  kinglet_session* session = NULL;
  struct {
    kinglet_session_options known;
    uint32_t unknown;
  } newer;
  kinglet_session_options options;
  EXPECT_INVALID(kinglet_session_options_init(NULL, sizeof options));
  EXPECT_INVALID(kinglet_session_options_init(&options, 3));
  EXPECT_INVALID(kinglet_session_options_init(&options, 4097));
  EXPECT_OK(kinglet_session_options_init(&options, sizeof options));
  EXPECT(options.struct_size == sizeof options && options.empty_cache == 0);
  EXPECT(options.lanes == 0 && options.threads == 0);
  EXPECT_INVALID(kinglet_session_create(NULL, &options, &session));
  EXPECT_INVALID(kinglet_session_create(model, &options, NULL));
  options.empty_cache = 2;
  EXPECT_INVALID(kinglet_session_create(model, &options, &session));
  options.empty_cache = 0;
  options.threads = 3;
  EXPECT_OK(kinglet_session_create(model, &options, &session));
  EXPECT_OK(kinglet_session_step(session, 0, 1));
  kinglet_session_destroy(session);
  session = NULL;
  options.threads = 0;
  options.struct_size = sizeof options - 1;
  EXPECT_INVALID(kinglet_session_create(model, &options, &session));
  EXPECT_OK(kinglet_session_options_init(&newer.known, sizeof newer));
  newer.unknown = 1;
  EXPECT_INVALID(kinglet_session_create(model, &newer.known, &session));
  EXPECT(session == NULL);
  newer.unknown = 0;
  EXPECT_OK(kinglet_session_create(model, &newer.known, &session));
  uint32_t lanes = 0;
  EXPECT_INVALID(kinglet_session_lanes(NULL, &lanes));
  EXPECT_INVALID(kinglet_session_lanes(session, NULL));
  EXPECT_OK(kinglet_session_lanes(session, &lanes));
  EXPECT(lanes == 1);
  kinglet_session_destroy(session);

  // While the cache is empty, its probability mass is lost or kept, as the options choose.
  for (uint32_t empty = 0; empty < 2; ++empty) {
    options.struct_size = sizeof options;
    options.empty_cache = empty;
    EXPECT_OK(kinglet_session_create(model, &options, &session));
    EXPECT_OK(kinglet_session_step(session, 0, 5));
    float all[TEST_WORDS];
    EXPECT_OK(kinglet_session_probabilities(session, 0, all, TEST_WORDS));
    double sum = 0;
    for (int i = 0; i < TEST_WORDS; ++i) sum += (double)all[i];
    EXPECT(empty == KINGLET_EMPTY_CACHE_NORMALISED ? sum > 0.9999 && sum < 1.0001 : sum < 0.9999);
    kinglet_session_destroy(session);
  }
  kinglet_session_destroy(NULL);
  kinglet_model_close(model);
  return NULL;
}

static kinglet_status OpenWithin(uint64_t memory_limit, uint64_t session_limit,
                                 kinglet_model** out) {
  const test_bytes bytes = TestModel(TEST_MODEL_PLAIN);
  kinglet_model_options options;
  const kinglet_status status = kinglet_model_options_init(&options, sizeof options);
  if (status != KINGLET_OK) return status;
  options.memory_limit = memory_limit;
  options.session_memory_limit = session_limit;
  return kinglet_model_open_memory(bytes.data, bytes.size, &options, out);
}

static kinglet_status StartLanes(const kinglet_model* model, uint32_t lanes,
                                 kinglet_session** out) {
  kinglet_session_options options;
  const kinglet_status status = kinglet_session_options_init(&options, sizeof options);
  if (status != KINGLET_OK) return status;
  options.lanes = lanes;
  return kinglet_session_create(model, &options, out);
}

const char* TestMemoryLimits(void) {
  kinglet_model* model = NULL;
  kinglet_session* session = NULL;
  kinglet_session* second = NULL;
  uint64_t each = 0;
  EXPECT_OK(OpenWithin(0, 0, &model));
  EXPECT_OK(kinglet_model_lane_bytes(model, &each));
  EXPECT(StartLanes(model, UINT32_MAX, &session) == KINGLET_OUT_OF_MEMORY);
  kinglet_model_close(model);
  EXPECT_OK(OpenWithin(0, 2 * each, &model));
  EXPECT(StartLanes(model, 3, &session) == KINGLET_OUT_OF_MEMORY && session == NULL);
  EXPECT_OK(StartLanes(model, 2, &session));
  EXPECT_OK(StartLanes(model, 2, &second));  // the limit is each session's
  kinglet_session_destroy(second);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  session = second = NULL;
  EXPECT_OK(OpenWithin(0, 2 * each - 1, &model));
  EXPECT(StartLanes(model, 2, &session) == KINGLET_OUT_OF_MEMORY && session == NULL);
  kinglet_model_close(model);

  // What the model alone takes: the least limit it opens under.
  uint64_t refused = 1, enough = (uint64_t)1 << 30;
  while (enough - refused > 1) {
    const uint64_t middle = refused + (enough - refused) / 2;
    model = NULL;
    const kinglet_status status = OpenWithin(middle, 0, &model);
    EXPECT(status == KINGLET_OK || status == KINGLET_OUT_OF_MEMORY);
    kinglet_model_close(model);
    *(status == KINGLET_OK ? &enough : &refused) = middle;
  }
  EXPECT(enough > TestModel(TEST_MODEL_PLAIN).size);
  EXPECT_OK(OpenWithin(enough + 2 * each, 0, &model));
  EXPECT(StartLanes(model, 3, &session) == KINGLET_OUT_OF_MEMORY);
  EXPECT_OK(StartLanes(model, 1, &session));
  EXPECT(StartLanes(model, 2, &second) == KINGLET_OUT_OF_MEMORY && second == NULL);
  EXPECT_OK(kinglet_session_step(session, 0, 1));
  kinglet_session_destroy(session);  // and gives its memory back
  EXPECT_OK(StartLanes(model, 2, &second));
  kinglet_session_destroy(second);
  kinglet_model_close(model);
  return NULL;
}

const char* TestSessions(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 3);
  kinglet_session* single = StartTest(TEST_MODEL_CACHE, 1);
  uint32_t count = 0;
  EXPECT_OK(kinglet_session_lanes(session, &count));
  EXPECT(count == 3);

  uint64_t position = 99;
  EXPECT_INVALID(kinglet_session_position(NULL, 0, &position));
  EXPECT_INVALID(kinglet_session_position(session, 0, NULL));
  EXPECT_INVALID(kinglet_session_position(session, 3, &position));
  EXPECT_INVALID(kinglet_session_position(session, UINT32_MAX, &position));
  EXPECT(position == 99 && PositionOf(session, 2) == 0);

  // Lanes 2 and 0 step together, lane 2 once alone; each is as a session of its own.
  const uint32_t lanes[] = {2, 0};
  for (uint32_t t = 0; t < 20; ++t) {
    const uint32_t ids[] = {t % TEST_WORDS, (3 * t + 1) % TEST_WORDS};
    EXPECT_OK(kinglet_session_step_lanes(session, lanes, ids, 2));
    EXPECT_OK(kinglet_session_step(single, 0, ids[0]));
    EXPECT(SameAnswers(session, 2, single, 0) && !SameAnswers(session, 0, single, 0));
  }
  EXPECT_OK(kinglet_session_step(session, 2, 7));
  EXPECT_OK(kinglet_session_step(single, 0, 7));
  EXPECT(SameAnswers(session, 2, single, 0));
  EXPECT(PositionOf(session, 0) == 20 && PositionOf(session, 1) == 0);
  EXPECT(PositionOf(session, 2) == 21);

  // Errors change no lane.
  const uint32_t twice[] = {2, 0, 2}, outside[] = {2, 3}, ids[] = {1, 2, 3}, bad[] = {1, 23};
  EXPECT_INVALID(kinglet_session_step(NULL, 0, 1));
  EXPECT_INVALID(kinglet_session_step(session, 3, 1));
  EXPECT(kinglet_session_step(session, 2, TEST_WORDS) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT(kinglet_session_step(session, 2, UINT32_MAX) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT_INVALID(kinglet_session_step_lanes(NULL, lanes, ids, 2));
  EXPECT_INVALID(kinglet_session_step_lanes(session, NULL, ids, 2));
  EXPECT_INVALID(kinglet_session_step_lanes(session, lanes, NULL, 2));
  EXPECT_INVALID(kinglet_session_step_lanes(session, lanes, ids, UINT64_MAX));
  EXPECT_INVALID(kinglet_session_step_lanes(session, lanes, ids, ((uint64_t)1 << 62) + 2));
  EXPECT_INVALID(kinglet_session_step_lanes(session, twice, ids, 3));
  EXPECT_INVALID(kinglet_session_step_lanes(session, outside, ids, 2));
  EXPECT(kinglet_session_step_lanes(session, lanes, bad, 2) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT_OK(kinglet_session_step_lanes(session, NULL, NULL, 0));
  EXPECT(PositionOf(session, 0) == 20 && PositionOf(session, 2) == 21);
  EXPECT(SameAnswers(session, 2, single, 0));

  // A fork continues as the one it was taken from, and then its own way.
  EXPECT_INVALID(kinglet_session_fork(NULL, 2, 1));
  EXPECT_INVALID(kinglet_session_fork(session, 3, 1));
  EXPECT_INVALID(kinglet_session_fork(session, 2, 3));
  EXPECT_INVALID(kinglet_session_fork(session, 3, 3));
  EXPECT(PositionOf(session, 1) == 0);
  EXPECT_OK(kinglet_session_fork(session, 2, 1));
  EXPECT_OK(kinglet_session_fork(session, 2, 2));
  EXPECT(PositionOf(session, 1) == 21 && SameAnswers(session, 1, session, 2));
  EXPECT_OK(kinglet_session_step(session, 1, 4));
  EXPECT(SameAnswers(session, 2, single, 0) && !SameAnswers(session, 1, single, 0));

  // A reset lane is as a new one.
  EXPECT_INVALID(kinglet_session_reset(NULL, 0));
  EXPECT_INVALID(kinglet_session_reset(session, 3));
  EXPECT(PositionOf(session, 2) == 21);
  EXPECT_OK(kinglet_session_reset(session, 2));
  EXPECT_OK(kinglet_session_reset(single, 0));
  EXPECT(PositionOf(session, 2) == 0);
  double log_probability = 5;
  EXPECT(kinglet_session_log_probability(session, 2, 0, &log_probability) == KINGLET_NO_TOKEN_YET);
  EXPECT(log_probability == 5);
  EXPECT_OK(kinglet_session_step(session, 2, 9));
  EXPECT_OK(kinglet_session_step(single, 0, 9));
  EXPECT(SameAnswers(session, 2, single, 0));
  kinglet_session_destroy(single);
  kinglet_session_destroy(session);
  return NULL;
}

const char* TestSessionOutlivesHandle(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  kinglet_session* session = NULL;
  kinglet_session* other = StartTest(TEST_MODEL_CACHE, 1);
  EXPECT_OK(kinglet_session_create(model, NULL, &session));
  kinglet_model_close(model);
  for (uint32_t t = 0; t < 10; ++t) {
    EXPECT_OK(kinglet_session_step(session, 0, t));
    EXPECT_OK(kinglet_session_step(other, 0, t));
    EXPECT(SameAnswers(session, 0, other, 0));
  }
  kinglet_session_destroy(other);
  kinglet_session_destroy(session);
  return NULL;
}

const char* TestCancel(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 2);
  kinglet_session* other = StartTest(TEST_MODEL_CACHE, 1);
  const uint32_t lanes[] = {0, 1}, ids[] = {3, 4};
  double one = 5, some[2] = {5, 5};
  float all[TEST_WORDS] = {5};
  uint32_t word = 99, count = 99;
  EXPECT_INVALID(kinglet_session_cancel(NULL));
  for (uint32_t t = 0; t < 7; ++t) {
    EXPECT_OK(kinglet_session_cancel(session));
    EXPECT_OK(kinglet_session_cancel(session));  // once is enough
    EXPECT(kinglet_session_step(session, 0, 3) == KINGLET_CANCELLED);
    EXPECT_OK(kinglet_session_cancel(session));
    EXPECT(kinglet_session_step_lanes(session, lanes, ids, 2) == KINGLET_CANCELLED);
    EXPECT(PositionOf(session, 0) == t && PositionOf(session, 1) == t);
    EXPECT_OK(kinglet_session_step_lanes(session, lanes, ids, 2));
    EXPECT_OK(kinglet_session_step(other, 0, 4));

    // Each of these is the first to compute something about the token.
    EXPECT_OK(kinglet_session_cancel(session));
    kinglet_status status = KINGLET_OK;
    switch (t) {
      case 0:
        status = kinglet_session_log_probability(session, 1, 22, &one);
        break;
      case 1:
        status = kinglet_session_log_probabilities_of(session, 1, ids, 2, some);
        break;
      case 2:
        status = kinglet_session_log_probabilities(session, 1, all, TEST_WORDS);
        break;
      case 3:
        status = kinglet_session_probabilities(session, 1, all, TEST_WORDS);
        break;
      case 4:
        status = kinglet_session_top_k(session, 1, 1, &word, &one, 1, &count);
        break;
      default:
        status = kinglet_session_draw(session, 1, t, NULL, &word);
        break;
    }
    EXPECT(status == KINGLET_CANCELLED);
    EXPECT(one == 5 && some[0] == 5 && some[1] == 5 && all[0] == 5 && word == 99 && count == 99);
    EXPECT(SameAnswers(session, 1, other, 0));
  }
  kinglet_session_destroy(other);
  kinglet_session_destroy(session);
  return NULL;
}

struct canceller {
  kinglet_session* session;
  atomic_int done;
};

static void* CancelUntilDone(void* argument) {
  struct canceller* canceller = argument;
  while (!atomic_load(&canceller->done)) {
    if (kinglet_session_cancel(canceller->session) != KINGLET_OK) return argument;
  }
  return NULL;
}

const char* TestCancelFromAnotherThread(void) {
  struct canceller canceller = {StartTest(TEST_MODEL_CACHE, 1), 0};
  kinglet_session* session = canceller.session;
  kinglet_session* reference = StartTest(TEST_MODEL_CACHE, 1);
  for (uint32_t t = 0; t < 6; ++t) {
    EXPECT_OK(kinglet_session_step(session, 0, t));
    EXPECT_OK(kinglet_session_step(reference, 0, t));
  }
  // The error text of a call that is stopped before its first node; others are stopped later.
  char at_first_step[1024];
  EXPECT_OK(kinglet_session_cancel(session));
  EXPECT(kinglet_session_step(session, 0, 0) == KINGLET_CANCELLED);
  EXPECT(strlen(kinglet_error_message()) < sizeof at_first_step);
  strcpy(at_first_step, kinglet_error_message());

  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, CancelUntilDone, &canceller) == 0);
  uint64_t steps = PositionOf(session, 0);
  kinglet_status status = KINGLET_OK;
  for (int stopped_midway = 0; stopped_midway < 3;) {
    status = kinglet_session_step(session, 0, (uint32_t)(steps % TEST_WORDS));
    if (status == KINGLET_OK) {
      ++steps;
      if (steps > 10000) {  // hardly ever stopped: keep the reference short
        status = kinglet_session_reset(session, 0);
        steps = 0;
      }
    } else if (strcmp(kinglet_error_message(), at_first_step) != 0) {
      ++stopped_midway;
    }
    if (status != KINGLET_OK && status != KINGLET_CANCELLED) break;
  }
  atomic_store(&canceller.done, 1);
  void* failed = NULL;
  EXPECT(pthread_join(thread, &failed) == 0 && failed == NULL);
  EXPECT(status == KINGLET_OK || status == KINGLET_CANCELLED);

  // A last cancellation may still be waiting; after it all is as if there had been none.
  status = kinglet_session_step(session, 0, 2);
  if (status == KINGLET_CANCELLED) status = kinglet_session_step(session, 0, 2);
  EXPECT(status == KINGLET_OK);
  EXPECT(PositionOf(session, 0) == steps + 1);
  EXPECT_OK(kinglet_session_reset(reference, 0));
  for (uint64_t t = 0; t < steps; ++t) {
    EXPECT_OK(kinglet_session_step(reference, 0, (uint32_t)(t % TEST_WORDS)));
  }
  EXPECT_OK(kinglet_session_step(reference, 0, 2));
  EXPECT(SameAnswers(session, 0, reference, 0));
  kinglet_session_destroy(reference);
  kinglet_session_destroy(session);
  return NULL;
}
