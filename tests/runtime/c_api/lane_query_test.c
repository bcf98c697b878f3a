#include <math.h>
#include <string.h>

#include "tests/runtime/c_api/expect.h"

// More lanes than are asked together.
enum { V = TEST_WORDS, LANES = 11 };

static const char* SameWork(kinglet_session* a, kinglet_session* b, uint32_t lane) {
  kinglet_work of_a, of_b;
  memset(&of_a, 0, sizeof of_a);
  memset(&of_b, 0, sizeof of_b);
  of_a.struct_size = of_b.struct_size = sizeof of_a;
  EXPECT_OK(kinglet_session_last_work(a, lane, &of_a));
  EXPECT_OK(kinglet_session_last_work(b, lane, &of_b));
  EXPECT(memcmp(&of_a, &of_b, sizeof of_a) == 0);
  return NULL;
}

// The session is asked about several lanes at once, the other lane by lane.
const char* TestLaneQueries(void) {
  for (int query = 0; query < 4; ++query) {
    kinglet_session* session = StartTest(TEST_MODEL_CACHE, LANES);
    kinglet_session* single = StartTest(TEST_MODEL_CACHE, LANES);
    for (uint32_t t = 0; t < 6; ++t) {
      uint32_t lanes[LANES], ids[LANES], words[LANES * V + 1], drawn[LANES + 1], per_lane = 99;
      uint64_t seeds[LANES];
      double some[LANES * V + 1];
      const uint32_t count = t == 0 ? LANES : 2 * t;
      for (uint32_t i = 0; i < LANES; ++i) {
        lanes[i] = (7 * i + t) % LANES;
        ids[i] = (5 * i * i + 3 * t) % V;
        seeds[i] = 100 * t + i;
        EXPECT_OK(kinglet_session_step(session, i, (11 * i + t) % V));
        EXPECT_OK(kinglet_session_step(single, i, (11 * i + t) % V));
      }
      for (uint32_t i = 0; i <= LANES * V; ++i) some[i] = 5;
      words[LANES * V] = drawn[count] = 99;
      double one = 5, best_of[V];
      uint32_t word = 99, best[V];
      switch (query) {
        case 0:
          EXPECT_OK(kinglet_session_log_probability_lanes(session, lanes, ids, count, some));
          for (uint32_t i = 0; i < count; ++i) {
            EXPECT_OK(kinglet_session_log_probability(single, lanes[i], ids[i], &one));
            EXPECT(some[i] == one);
          }
          EXPECT(some[count] == 5);
          break;
        case 1: {
          const uint32_t k = t == 1 ? 0 : t == 2 ? V + 9 : t;
          const uint32_t wanted = k < V ? k : V;
          EXPECT_OK(kinglet_session_top_k_lanes(session, lanes, count, k, words, some,
                                                (uint64_t)count * wanted, &per_lane));
          EXPECT(per_lane == wanted);
          for (uint32_t i = 0; i < count; ++i) {
            EXPECT_OK(kinglet_session_top_k(single, lanes[i], k, best, best_of, V, NULL));
            for (uint32_t j = 0; j < wanted; ++j) {
              EXPECT(words[i * wanted + j] == best[j] && some[i * wanted + j] == best_of[j]);
            }
          }
          break;
        }
        case 2:
          EXPECT_OK(kinglet_session_draw_lanes(session, lanes, seeds, count,
                                               AT_TEMPERATURE(0.5 + t), drawn));
          for (uint32_t i = 0; i < count; ++i) {
            EXPECT_OK(
                kinglet_session_draw(single, lanes[i], seeds[i], AT_TEMPERATURE(0.5 + t), &word));
            EXPECT(drawn[i] == word);
          }
          EXPECT(drawn[count] == 99);
          break;
        default:
          EXPECT_OK(kinglet_session_compute_lanes(session, lanes, count));
          break;
      }
      for (uint32_t i = 0; i < LANES && query < 3; ++i) {
        EXPECT_PASSES(SameWork(session, single, i));
      }
      for (uint32_t i = 0; i < LANES; ++i) {
        float all[V], expected[V];
        EXPECT_OK(kinglet_session_log_probabilities(session, i, all, V));
        EXPECT_OK(kinglet_session_log_probabilities(single, i, expected, V));
        EXPECT(memcmp(all, expected, sizeof all) == 0);
      }
      kinglet_work work = {.struct_size = sizeof work};
      EXPECT_OK(kinglet_session_last_work(session, lanes[0], &work));
      EXPECT(query < 3 || work.clusters_opened == 0);  // all was computed before
    }
    kinglet_session_destroy(single);
    kinglet_session_destroy(session);
  }
  return NULL;
}

const char* TestLaneQueryErrors(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 3);
  EXPECT_OK(kinglet_session_step(session, 0, 1));
  EXPECT_OK(kinglet_session_step(session, 1, 2));
  const uint32_t both[] = {1, 0}, twice[] = {0, 1, 0}, beyond[] = {0, 3}, fresh[] = {0, 2};
  const uint32_t ids[] = {4, 5, 6}, bad[] = {4, V};
  const uint64_t seeds[] = {1, 2, 3};
  double some[4] = {5, 5, 5, 5};
  uint32_t words[4] = {99, 99, 99, 99}, per_lane = 99;

  // Lanes that are twice, are none, or have no token yet.
  const struct {
    const uint32_t* lanes;
    uint64_t count;
    kinglet_status status;
  } refused[] = {{twice, 3, KINGLET_INVALID_ARGUMENT},
                 {beyond, 2, KINGLET_INVALID_ARGUMENT},
                 {fresh, 2, KINGLET_NO_TOKEN_YET}};
  for (int i = 0; i < 3; ++i) {
    const uint32_t* lanes = refused[i].lanes;
    const uint64_t n = refused[i].count;
    const kinglet_status status = refused[i].status;
    EXPECT(kinglet_session_log_probability_lanes(session, lanes, ids, n, some) == status);
    EXPECT(kinglet_session_top_k_lanes(session, lanes, n, 1, words, some, 4, &per_lane) == status);
    EXPECT(kinglet_session_draw_lanes(session, lanes, seeds, n, NULL, words) == status);
    EXPECT(kinglet_session_compute_lanes(session, lanes, n) == status);
  }

  EXPECT_INVALID(kinglet_session_log_probability_lanes(NULL, both, ids, 2, some));
  EXPECT_INVALID(kinglet_session_log_probability_lanes(session, NULL, ids, 2, some));
  EXPECT_INVALID(kinglet_session_log_probability_lanes(session, both, NULL, 2, some));
  EXPECT_INVALID(kinglet_session_log_probability_lanes(session, both, ids, 2, NULL));
  EXPECT_INVALID(kinglet_session_log_probability_lanes(session, both, ids, UINT64_MAX, some));
  EXPECT(kinglet_session_log_probability_lanes(session, both, bad, 2, some) ==
         KINGLET_ID_OUT_OF_RANGE);
  EXPECT_INVALID(kinglet_session_top_k_lanes(NULL, both, 2, 1, words, some, 4, &per_lane));
  EXPECT_INVALID(kinglet_session_top_k_lanes(session, NULL, 2, 1, words, some, 4, &per_lane));
  EXPECT_INVALID(
      kinglet_session_top_k_lanes(session, both, UINT64_MAX, 1, words, some, 4, &per_lane));
  EXPECT_INVALID(kinglet_session_draw_lanes(NULL, both, seeds, 2, NULL, words));
  EXPECT_INVALID(kinglet_session_draw_lanes(session, NULL, seeds, 2, NULL, words));
  EXPECT_INVALID(kinglet_session_draw_lanes(session, both, NULL, 2, NULL, words));
  EXPECT_INVALID(kinglet_session_draw_lanes(session, both, seeds, 2, NULL, NULL));
  EXPECT_INVALID(kinglet_session_draw_lanes(session, both, seeds, UINT64_MAX, NULL, words));
  EXPECT_INVALID(kinglet_session_draw_lanes(session, both, seeds, 2, AT_TEMPERATURE(-1), words));
  EXPECT_INVALID(kinglet_session_draw_lanes(session, both, seeds, 2, AT_TEMPERATURE(NAN), words));
  EXPECT_INVALID(kinglet_session_compute_lanes(NULL, both, 2));
  EXPECT_INVALID(kinglet_session_compute_lanes(session, NULL, 2));
  EXPECT_INVALID(kinglet_session_compute_lanes(session, both, UINT64_MAX));
  EXPECT(per_lane == 99);

  // Too little room: the number needed, and nothing else.
  EXPECT(kinglet_session_top_k_lanes(session, both, 2, 2, words, NULL, 3, &per_lane) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT(per_lane == 2);
  EXPECT(kinglet_session_top_k_lanes(session, both, 2, UINT32_MAX, NULL, some, 4, NULL) ==
         KINGLET_BUFFER_TOO_SMALL);
  for (int i = 0; i < 4; ++i) EXPECT(some[i] == 5 && words[i] == 99);

  // No lanes are no query.
  EXPECT_OK(kinglet_session_log_probability_lanes(session, NULL, NULL, 0, NULL));
  EXPECT_OK(kinglet_session_top_k_lanes(session, NULL, 0, 2, NULL, NULL, 0, &per_lane));
  EXPECT_OK(kinglet_session_draw_lanes(session, NULL, NULL, 0, NULL, NULL));
  EXPECT_OK(kinglet_session_compute_lanes(session, NULL, 0));
  EXPECT_OK(kinglet_session_top_k_lanes(session, both, 2, 2, NULL, NULL, 0, NULL));

  // Each of these is the first to compute something about the token.
  for (int i = 0; i < 4; ++i) {
    EXPECT_OK(kinglet_session_step(session, 0, 3));
    EXPECT_OK(kinglet_session_step(session, 1, 4));
    EXPECT_OK(kinglet_session_cancel(session));
    kinglet_status status = KINGLET_OK;
    if (i == 0) status = kinglet_session_log_probability_lanes(session, both, ids, 2, some);
    if (i == 1) status = kinglet_session_top_k_lanes(session, both, 2, 2, words, some, 4, NULL);
    if (i == 2) status = kinglet_session_draw_lanes(session, both, seeds, 2, NULL, words);
    if (i == 3) status = kinglet_session_compute_lanes(session, both, 2);
    EXPECT(status == KINGLET_CANCELLED);
    for (int j = 0; j < 4; ++j) EXPECT(some[j] == 5 && words[j] == 99);
    EXPECT_OK(kinglet_session_compute_lanes(session, both, 2));
  }
  kinglet_session_destroy(session);

  session = StartTest(TEST_MODEL_OVERFLOWS, 2);
  EXPECT_OK(kinglet_session_step(session, 0, 1));
  EXPECT_OK(kinglet_session_step(session, 1, 2));
  EXPECT(kinglet_session_log_probability_lanes(session, both, ids, 2, some) == KINGLET_NOT_FINITE);
  EXPECT(kinglet_session_top_k_lanes(session, both, 2, 2, words, some, 4, NULL) ==
         KINGLET_NOT_FINITE);
  EXPECT(kinglet_session_draw_lanes(session, both, seeds, 2, NULL, words) == KINGLET_NOT_FINITE);
  EXPECT(kinglet_session_compute_lanes(session, both, 2) == KINGLET_NOT_FINITE);
  for (int i = 0; i < 4; ++i) EXPECT(some[i] == 5 && words[i] == 99);
  kinglet_session_destroy(session);
  return NULL;
}
