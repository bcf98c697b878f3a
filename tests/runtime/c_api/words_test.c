#include <math.h>
#include <string.h>

#include "tests/runtime/c_api/expect.h"

enum { V = TEST_WORDS };

// Compares every answer with kinglet_session_probabilities and kinglet_session_top_k.
const char* TestWordQueries(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 1);
  for (uint32_t t = 0; t < 8; ++t) {
    EXPECT_OK(kinglet_session_step(session, 0, (7 * t) % V));
    float p[V];
    uint32_t order[V], found[V], count = 99;
    double log_p[V], found_log_p[V], sum = 0, some = 0, words = 0;
    EXPECT_OK(kinglet_session_probabilities(session, 0, p, V));
    EXPECT_OK(kinglet_session_top_k(session, 0, V, order, log_p, V, NULL));
    for (uint32_t i = 0; i < V; ++i) sum += (double)p[i];

    uint32_t fewest = 0;
    for (double mass = 0; mass < 0.5 * sum; ++fewest) mass += (double)p[order[fewest]];
    EXPECT_OK(kinglet_session_top_p(session, 0, 0.5, found, found_log_p, V, &count));
    EXPECT(count == fewest && memcmp(found, order, fewest * sizeof *order) == 0);
    EXPECT(memcmp(found_log_p, log_p, fewest * sizeof *log_p) == 0);
    EXPECT_OK(kinglet_session_top_p(session, 0, 1, NULL, NULL, 0, &count));
    EXPECT(count == V);

    uint64_t end = 0;
    for (uint32_t i = 0; i < V; ++i) {
      uint32_t rank = 0, word = V;
      EXPECT_OK(kinglet_session_rank(session, 0, order[i], &rank));
      EXPECT(rank == i + 1);
      uint64_t low = 0, high = 0;
      EXPECT_OK(kinglet_session_interval(session, 0, i, &low, &high));
      EXPECT(low == end && high > low);
      EXPECT(fabs((double)(high - low) / 0x1p32 - (double)p[i] / sum) < 1e-5);
      EXPECT_OK(kinglet_session_word_at(session, 0, (uint32_t)low, &word));
      EXPECT(word == i);
      EXPECT_OK(kinglet_session_word_at(session, 0, (uint32_t)(high - 1), &word));
      EXPECT(word == i);
      end = high;
    }
    EXPECT(end == (uint64_t)1 << 32);

    const uint32_t allowed[] = {22, 3, 3, 9, 22};
    some = (double)p[3] + (double)p[9] + (double)p[22];
    double total = 5;
    EXPECT_OK(kinglet_session_allowed_probability(session, 0, allowed, 5, &total));
    EXPECT(total == some);
    EXPECT_OK(kinglet_session_allowed_top_k(session, 0, allowed, 5, 9, found, NULL, V, &count));
    EXPECT(count == 3);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT(found[i] == 22 || found[i] == 3 || found[i] == 9);
      EXPECT(i == 0 || p[found[i - 1]] >= p[found[i]]);
    }
    EXPECT_OK(kinglet_session_allowed_probability(session, 0, NULL, 0, &total));
    EXPECT(total == 0);
    EXPECT_OK(kinglet_session_allowed_top_k(session, 0, NULL, 0, 3, NULL, NULL, 0, &count));
    EXPECT(count == 0);

    // "the", "<eos>", "<unk>", "w3", "w4", ..
    for (uint32_t i = 3; i < V; ++i) words += (double)p[i];
    EXPECT_OK(kinglet_session_prefix_probability(session, 0, "wx", 1, &total));
    EXPECT(total == words);
    EXPECT_OK(kinglet_session_prefix_probability(session, 0, NULL, 0, &total));
    EXPECT(total == sum);
    EXPECT_OK(kinglet_session_prefix_probability(session, 0, "\xFF", 1, &total));
    EXPECT(total == 0);
    EXPECT_OK(kinglet_session_prefix_top_k(session, 0, "<", 1, 1, found, found_log_p, 1, &count));
    EXPECT(count == 1 && found[0] == (p[1] >= p[2] ? 1u : 2u));
    EXPECT_OK(kinglet_session_prefix_top_k(session, 0, "w", 1, 0, NULL, NULL, 0, &count));
    EXPECT(count == 0);

    uint32_t characters[V];
    double probabilities[V];
    EXPECT_OK(
        kinglet_session_next_characters(session, 0, "w1", 2, characters, probabilities, V, &count));
    EXPECT(count == 10 && characters[0] == '0' && characters[9] == '9');
    EXPECT(probabilities[4] == (double)p[14]);
    EXPECT_OK(kinglet_session_next_characters(session, 0, "the", 3, characters, probabilities, V,
                                              &count));
    EXPECT(count == 1 && characters[0] == KINGLET_NEXT_END && probabilities[0] == (double)p[0]);
  }
  kinglet_session_destroy(session);
  return NULL;
}

const char* TestWordQueryErrors(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 1);
  uint32_t ids[V], count = 99, word = 99;
  uint64_t low = 99, high = 99;
  double p = 99;
  EXPECT(kinglet_session_rank(session, 0, 0, &word) == KINGLET_NO_TOKEN_YET);
  EXPECT_OK(kinglet_session_step(session, 0, 1));
  EXPECT_INVALID(kinglet_session_top_p(session, 0, 0, ids, NULL, V, &count));
  EXPECT_INVALID(kinglet_session_top_p(session, 0, 1.5, ids, NULL, V, &count));
  EXPECT_INVALID(kinglet_session_top_p(session, 0, (double)NAN, ids, NULL, V, &count));
  EXPECT_INVALID(kinglet_session_top_p(session, 1, 0.5, ids, NULL, V, &count));
  EXPECT_INVALID(kinglet_session_top_p(NULL, 0, 0.5, ids, NULL, V, &count));
  EXPECT(count == 99);
  EXPECT(kinglet_session_top_p(session, 0, 1, ids, NULL, V - 1, &count) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT(count == V);
  EXPECT(kinglet_session_rank(session, 0, V, &word) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT_INVALID(kinglet_session_rank(session, 0, 0, NULL));
  EXPECT(kinglet_session_interval(session, 0, V, &low, &high) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT_INVALID(kinglet_session_interval(session, 0, 0, &low, NULL));
  EXPECT_INVALID(kinglet_session_word_at(session, 0, 0, NULL));
  EXPECT(low == 99 && high == 99 && word == 99);

  const uint32_t outside[] = {0, V};
  EXPECT(kinglet_session_allowed_probability(session, 0, outside, 2, &p) ==
         KINGLET_ID_OUT_OF_RANGE);
  EXPECT_INVALID(kinglet_session_allowed_probability(session, 0, NULL, 2, &p));
  EXPECT_INVALID(kinglet_session_allowed_top_k(session, 0, NULL, 1, 1, ids, NULL, V, &count));
  EXPECT_INVALID(kinglet_session_prefix_probability(session, 0, NULL, 1, &p));
  EXPECT_INVALID(kinglet_session_prefix_probability(session, 0, "t", UINT64_MAX, &p));
  EXPECT(p == 99);
  EXPECT(kinglet_session_prefix_top_k(session, 0, "w", 1, 9, ids, NULL, 8, &count) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT(count == 9);
  EXPECT(kinglet_session_next_characters(session, 0, "w", 1, ids, NULL, 1, &count) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT(count == 9);
  kinglet_session_destroy(session);

  session = StartTest(TEST_MODEL_IDS_ONLY, 1);
  EXPECT_OK(kinglet_session_step(session, 0, 1));
  EXPECT(kinglet_session_prefix_probability(session, 0, "t", 1, &p) == KINGLET_UNSUPPORTED);
  EXPECT(kinglet_session_prefix_top_k(session, 0, "t", 1, 1, ids, NULL, V, NULL) ==
         KINGLET_UNSUPPORTED);
  EXPECT(kinglet_session_next_characters(session, 0, "t", 1, NULL, NULL, 0, &count) ==
         KINGLET_UNSUPPORTED);
  kinglet_session_destroy(session);
  return NULL;
}
