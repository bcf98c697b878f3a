#include <math.h>
#include <string.h>

#include "tests/runtime/c_api/expect.h"

_Static_assert(offsetof(kinglet_work, struct_size) == 0, "first");
_Static_assert(offsetof(kinglet_work, cache_computed) == 4, "fixed");
_Static_assert(offsetof(kinglet_work, clusters_opened) == 8, "fixed");
_Static_assert(offsetof(kinglet_work, multiplications) == 16, "fixed");
_Static_assert(offsetof(kinglet_work, additions) == 24, "fixed");
_Static_assert(offsetof(kinglet_work, others) == 32, "fixed");
_Static_assert(offsetof(kinglet_work, cluster_count) == 40, "fixed");
_Static_assert(sizeof(kinglet_work) == 48, "no padding at the end");

enum { V = TEST_WORDS };

const char* TestQueries(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 2);
  for (uint32_t t = 0; t < 12; ++t) {
    const uint32_t lane = t % 2;
    EXPECT_OK(kinglet_session_step(session, lane, (7 * t) % V));
    float all[V + 1], probabilities[V + 1];
    all[V] = probabilities[V] = 5;
    EXPECT_OK(kinglet_session_log_probabilities(session, lane, all, V + 1));
    EXPECT_OK(kinglet_session_probabilities(session, lane, probabilities, V + 1));
    EXPECT(all[V] == 5 && probabilities[V] == 5);  // elements beyond the words are left alone
    double sum = 0;
    for (uint32_t i = 0; i < V; ++i) {
      double one = 5;
      EXPECT_OK(kinglet_session_log_probability(session, lane, i, &one));
      EXPECT(one == (double)all[i]);
      EXPECT(fabs((double)probabilities[i] - exp(one)) < 1e-6);
      sum += exp(one);
    }
    EXPECT(t < 2 ? sum < 0.9999 : fabs(sum - 1) < 1e-5);  // the cache is empty at first

    const uint32_t ids[] = {22, 0, 22, 22, 13, 0};
    double some[7] = {0, 0, 0, 0, 0, 0, 5};
    EXPECT_OK(kinglet_session_log_probabilities_of(session, lane, ids, 6, some));
    for (int i = 0; i < 6; ++i) EXPECT(some[i] == (double)all[ids[i]]);
    EXPECT(some[6] == 5);
    EXPECT_OK(kinglet_session_log_probabilities_of(session, lane, NULL, 0, NULL));

    // No other word is more probable than one of the k.
    const uint32_t ks[] = {0, 1, 5, V, V + 1, UINT32_MAX};
    for (int i = 0; i < 6; ++i) {
      uint32_t best[V + 1], count = 99;
      double best_of[V + 1];
      uint8_t seen[V] = {0};
      best[V] = 99;
      EXPECT_OK(kinglet_session_top_k(session, lane, ks[i], best, best_of, V, &count));
      EXPECT(count == (ks[i] < V ? ks[i] : V) && best[V] == 99);
      for (uint32_t j = 0; j < count; ++j) {
        EXPECT(best[j] < V && !seen[best[j]] && best_of[j] == (double)all[best[j]]);
        seen[best[j]] = 1;
        if (j == 0) continue;
        EXPECT(best_of[j - 1] > best_of[j] ||
               (best_of[j - 1] == best_of[j] && best[j - 1] < best[j]));
      }
      for (uint32_t word = 0; word < V && count > 0; ++word) {
        EXPECT(seen[word] || (double)all[word] < best_of[count - 1] ||
               ((double)all[word] == best_of[count - 1] && word > best[count - 1]));
      }
    }
  }
  kinglet_session_destroy(session);
  return NULL;
}

// Every query of a bad lane, of a lane without a token, and with bad arguments.
const char* TestQueryErrors(void) {
  kinglet_session* session = StartTest(TEST_MODEL_PLAIN, 2);
  double one = 5, some[3] = {5, 5, 5};
  float all[V] = {5};
  uint32_t word = 99, words[V], count = 99;
  words[0] = 99;
  const uint32_t ids[] = {1, 2, 3};
  EXPECT_OK(kinglet_session_step(session, 0, 1));
  for (uint32_t lane = 1; lane < 4; ++lane) {  // lane 1 has no token, the others do not exist
    const kinglet_status status = lane == 1 ? KINGLET_NO_TOKEN_YET : KINGLET_INVALID_ARGUMENT;
    EXPECT(kinglet_session_log_probability(session, lane, 0, &one) == status);
    EXPECT(kinglet_session_log_probabilities(session, lane, all, V) == status);
    EXPECT(kinglet_session_log_probabilities_of(session, lane, ids, 3, some) == status);
    EXPECT(kinglet_session_log_probabilities_of(session, lane, NULL, 0, NULL) == status);
    EXPECT(kinglet_session_probabilities(session, lane, all, V) == status);
    EXPECT(kinglet_session_top_k(session, lane, 3, words, some, 3, &count) == status);
    EXPECT(kinglet_session_draw(session, lane, 1, NULL, &word) == status);
  }
  EXPECT_INVALID(kinglet_session_log_probability(NULL, 0, 0, &one));
  EXPECT_INVALID(kinglet_session_log_probability(session, 0, 0, NULL));
  EXPECT(kinglet_session_log_probability(session, 0, V, &one) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT_INVALID(kinglet_session_log_probabilities(NULL, 0, all, V));
  EXPECT_INVALID(kinglet_session_log_probabilities(session, 0, NULL, V));
  EXPECT(kinglet_session_log_probabilities(session, 0, all, V - 1) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT(kinglet_session_log_probabilities(session, 0, all, 0) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT_INVALID(kinglet_session_probabilities(NULL, 0, all, V));
  EXPECT_INVALID(kinglet_session_probabilities(session, 0, NULL, V));
  EXPECT(kinglet_session_probabilities(session, 0, all, V - 1) == KINGLET_BUFFER_TOO_SMALL);

  const uint32_t bad[] = {1, 2, V};
  EXPECT_INVALID(kinglet_session_log_probabilities_of(NULL, 0, ids, 3, some));
  EXPECT_INVALID(kinglet_session_log_probabilities_of(session, 0, NULL, 3, some));
  EXPECT_INVALID(kinglet_session_log_probabilities_of(session, 0, ids, 3, NULL));
  EXPECT_INVALID(kinglet_session_log_probabilities_of(session, 0, ids, UINT64_MAX, some));
  EXPECT_INVALID(
      kinglet_session_log_probabilities_of(session, 0, ids, ((uint64_t)1 << 61) + 1, some));
  EXPECT(kinglet_session_log_probabilities_of(session, 0, bad, 3, some) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT_INVALID(kinglet_session_top_k(NULL, 0, 1, words, some, 1, &count));
  EXPECT_INVALID(kinglet_session_draw(NULL, 0, 1, NULL, &word));
  EXPECT_INVALID(kinglet_session_draw(session, 0, 1, NULL, NULL));
  EXPECT(one == 5 && some[0] == 5 && all[0] == 5 && word == 99 && words[0] == 99 && count == 99);

  // Too little room: only the number of words is written.
  EXPECT(kinglet_session_top_k(session, 0, 3, words, NULL, 2, &count) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT(count == 3 && words[0] == 99);
  EXPECT(kinglet_session_top_k(session, 0, V + 1, NULL, some, 2, NULL) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT(some[0] == 5);
  EXPECT_OK(kinglet_session_top_k(session, 0, V + 1, NULL, NULL, 0, &count));
  EXPECT(count == V);
  EXPECT_OK(kinglet_session_top_k(session, 0, 3, words, NULL, 3, NULL));
  EXPECT_OK(kinglet_session_top_k(session, 0, 3, NULL, some, 3, NULL));
  EXPECT_OK(kinglet_session_log_probability(session, 0, words[2], &one));
  EXPECT(one == some[2]);
  kinglet_session_destroy(session);
  return NULL;
}

const char* TestTemperatures(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 2);
  for (uint32_t t = 0; t < 5; ++t) EXPECT_OK(kinglet_session_step(session, 0, 3 * t));
  uint32_t word = 99, best = 99;
  const double bad[] = {NAN, -NAN, INFINITY, -INFINITY, -1, -1e-300};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    EXPECT_INVALID(kinglet_session_draw(session, 0, 1, AT_TEMPERATURE(bad[i]), &word));
  }
  EXPECT(word == 99);
  EXPECT_OK(kinglet_session_top_k(session, 0, 1, &best, NULL, 1, NULL));
  const double cold[] = {0, -0.0, 1e-310};
  for (size_t i = 0; i < sizeof cold / sizeof *cold; ++i) {
    EXPECT_OK(kinglet_session_draw(session, 0, 1, AT_TEMPERATURE(cold[i]), &word));
    EXPECT(word == best);
  }

  // Drawn as often as probable: the largest deviation of 20,000 draws is a few times 1/sqrt(20,000)
  // at most. And the same again, on a lane that is a copy.
  enum { DRAWS = 20000 };
  float probabilities[V];
  uint32_t drawn[V] = {0};
  EXPECT_OK(kinglet_session_probabilities(session, 0, probabilities, V));
  EXPECT_OK(kinglet_session_fork(session, 0, 1));
  for (uint64_t seed = 0; seed < DRAWS; ++seed) {
    EXPECT_OK(kinglet_session_draw(session, 0, seed, NULL, &word));
    EXPECT(word < V);
    ++drawn[word];
    if (seed % 100 != 0) continue;
    uint32_t again = 99;
    EXPECT_OK(kinglet_session_draw(session, 1, seed, NULL, &again));
    EXPECT(again == word);
  }
  for (uint32_t i = 0; i < V; ++i) {
    EXPECT(fabs((double)drawn[i] / DRAWS - (double)probabilities[i]) < 0.015);
  }
  kinglet_session_destroy(session);
  return NULL;
}

static int IsNothing(const kinglet_work* work) {
  return work->cache_computed == 0 && work->clusters_opened == 0 && work->cluster_count == 0 &&
         work->multiplications == 0 && work->additions == 0 && work->others == 0;
}

const char* TestWork(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 2);
  struct {
    kinglet_work known;
    uint32_t unknown[2];
  } newer = {{.struct_size = sizeof newer}, {7, 7}};
  kinglet_work work = {.struct_size = sizeof work, .others = 5};
  EXPECT_INVALID(kinglet_session_last_work(NULL, 0, &work));
  EXPECT_INVALID(kinglet_session_last_work(session, 2, &work));
  EXPECT_INVALID(kinglet_session_last_work(session, 0, NULL));
  const uint32_t sizes[] = {0, 4, offsetof(kinglet_work, cluster_count) - 1, 4097};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    work.struct_size = sizes[i];
    EXPECT_INVALID(kinglet_session_last_work(session, 0, &work));
    EXPECT(work.struct_size == sizes[i] && work.others == 5);
  }
  work.struct_size = sizeof work;
  EXPECT_OK(kinglet_session_last_work(session, 0, &work));  // no query yet
  EXPECT(IsNothing(&work) && work.struct_size == sizeof work);
  // An older program's structure.
  work.struct_size = offsetof(kinglet_work, cluster_count);
  work.cluster_count = 9;
  EXPECT_OK(kinglet_session_last_work(session, 0, &work));
  EXPECT(work.cluster_count == 9);
  work.struct_size = sizeof work;
  work.cluster_count = 0;

  for (uint32_t t = 0; t < 3; ++t) EXPECT_OK(kinglet_session_step(session, 0, 4));
  EXPECT_OK(kinglet_session_last_work(session, 0, &work));
  EXPECT(IsNothing(&work));
  double one = 0;
  float all[V];
  EXPECT_OK(kinglet_session_log_probability(session, 0, 0, &one));  // a word of the head
  EXPECT_OK(kinglet_session_last_work(session, 0, &work));
  EXPECT(work.clusters_opened == 1 && work.cache_computed == 1);
  EXPECT(work.multiplications > 0 && work.additions > 0 && work.others > 0);
  EXPECT_OK(kinglet_session_log_probability(session, 0, V - 1, &one));  // a word of the last tail
  EXPECT_OK(kinglet_session_last_work(session, 0, &work));
  EXPECT((work.clusters_opened & 1) == 0 && work.clusters_opened != 0 && work.cache_computed == 0);
  const uint64_t tail = work.clusters_opened;
  EXPECT((tail & (tail - 1)) == 0);
  EXPECT_OK(kinglet_session_log_probabilities(session, 0, all, V));
  EXPECT_OK(kinglet_session_last_work(session, 0, &newer.known));
  EXPECT(newer.known.clusters_opened == tail - 2);  // the tails between
  uint64_t between = 0;
  for (uint64_t bits = tail - 2; bits != 0; bits &= bits - 1) ++between;
  EXPECT(newer.known.cluster_count == between);
  EXPECT(newer.known.struct_size == sizeof newer);
  EXPECT(newer.unknown[0] == 0 && newer.unknown[1] == 0);
  EXPECT_OK(kinglet_session_last_work(session, 1, &work));
  EXPECT(IsNothing(&work));
  EXPECT_OK(kinglet_session_fork(session, 1, 0));
  EXPECT_OK(kinglet_session_last_work(session, 0, &work));
  EXPECT(IsNothing(&work));
  kinglet_session_destroy(session);
  return NULL;
}

const char* TestNotFinite(void) {
  kinglet_session* session = StartTest(TEST_MODEL_OVERFLOWS, 1);
  double one = 5, some[2] = {5, 5};
  float all[V] = {5};
  uint32_t word = 99, count = 99;
  const uint32_t ids[] = {1, 2};
  EXPECT_OK(kinglet_session_step(session, 0, 1));
  EXPECT(kinglet_session_log_probability(session, 0, 2, &one) == KINGLET_NOT_FINITE);
  EXPECT(kinglet_session_log_probabilities(session, 0, all, V) == KINGLET_NOT_FINITE);
  EXPECT(kinglet_session_log_probabilities_of(session, 0, ids, 2, some) == KINGLET_NOT_FINITE);
  EXPECT(kinglet_session_probabilities(session, 0, all, V) == KINGLET_NOT_FINITE);
  EXPECT(kinglet_session_top_k(session, 0, 1, &word, some, 1, &count) == KINGLET_NOT_FINITE);
  EXPECT(kinglet_session_draw(session, 0, 1, NULL, &word) == KINGLET_NOT_FINITE);
  EXPECT(one == 5 && some[0] == 5 && all[0] == 5 && word == 99 && count == 99);
  kinglet_session_destroy(session);
  return NULL;
}
