#include <math.h>
#include <string.h>

#include "tests/runtime/c_api/expect.h"

_Static_assert(offsetof(kinglet_draw_options, top_k) == 4, "fixed");
_Static_assert(offsetof(kinglet_draw_options, temperature) == 8, "fixed");
_Static_assert(offsetof(kinglet_draw_options, top_p) == 16, "fixed");
_Static_assert(offsetof(kinglet_draw_options, excluded) == 24, "fixed");

enum { V = TEST_WORDS };

static kinglet_draw_options Defaults(void) {
  kinglet_draw_options options;
  kinglet_draw_options_init(&options, sizeof options);
  return options;
}

const char* TestDrawOptions(void) {
  struct {
    kinglet_draw_options known;
    uint64_t unknown;
  } newer;
  EXPECT_INVALID(kinglet_draw_options_init(NULL, sizeof newer.known));
  EXPECT_INVALID(kinglet_draw_options_init(&newer.known, 3));
  EXPECT_INVALID(kinglet_draw_options_init(&newer.known, 4097));
  memset(&newer, 7, sizeof newer);
  EXPECT_OK(kinglet_draw_options_init(&newer.known, sizeof newer));
  EXPECT(newer.known.struct_size == sizeof newer && newer.unknown == 0);
  EXPECT(newer.known.top_k == 0 && newer.known.temperature == 1 && newer.known.top_p == 1);
  EXPECT(newer.known.excluded == NULL && newer.known.excluded_count == 0);

  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 1);
  EXPECT_OK(kinglet_session_step(session, 0, 4));
  uint32_t word = 99;
  EXPECT_OK(kinglet_session_draw(session, 0, 1, &newer.known, &word));
  newer.unknown = 1;
  word = 99;
  EXPECT_INVALID(kinglet_session_draw(session, 0, 1, &newer.known, &word));
  const uint32_t sizes[] = {0, 4, sizeof newer.known - 1, 4097};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    newer.known.struct_size = sizes[i];
    EXPECT_INVALID(kinglet_session_draw(session, 0, 1, &newer.known, &word));
  }

  const double temperatures[] = {NAN, -NAN, INFINITY, -INFINITY, -1, -1e-300};
  for (size_t i = 0; i < sizeof temperatures / sizeof *temperatures; ++i) {
    kinglet_draw_options options = Defaults();
    options.temperature = temperatures[i];
    EXPECT_INVALID(kinglet_session_draw(session, 0, 1, &options, &word));
  }
  const double shares[] = {NAN, 0, -0.0, -0.5, 1.0000001, INFINITY, -INFINITY};
  for (size_t i = 0; i < sizeof shares / sizeof *shares; ++i) {
    kinglet_draw_options options = Defaults();
    options.top_p = shares[i];
    EXPECT_INVALID(kinglet_session_draw(session, 0, 1, &options, &word));
    EXPECT(strstr(kinglet_error_message(), "top-p") != NULL);
  }
  kinglet_draw_options options = Defaults();
  uint32_t all[V];
  for (uint32_t id = 0; id < V; ++id) all[id] = id;
  options.excluded_count = 1;
  EXPECT_INVALID(kinglet_session_draw(session, 0, 1, &options, &word));  // NULL
  options.excluded = all;
  options.excluded_count = UINT64_MAX;
  EXPECT_INVALID(kinglet_session_draw(session, 0, 1, &options, &word));
  options.excluded_count = V;
  EXPECT_INVALID(kinglet_session_draw(session, 0, 1, &options, &word));
  all[0] = V;
  EXPECT(kinglet_session_draw(session, 0, 1, &options, &word) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT_INVALID(kinglet_session_draw(NULL, 0, 1, NULL, &word));
  EXPECT_INVALID(kinglet_session_draw(session, 0, 1, NULL, NULL));
  EXPECT_INVALID(kinglet_session_draw(session, 1, 1, NULL, &word));
  EXPECT(word == 99);
  kinglet_session_destroy(session);
  return NULL;
}

const char* TestDraws(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 2);
  uint32_t word = 99, same = 98, best[V];
  EXPECT(kinglet_session_draw(session, 0, 1, NULL, &word) == KINGLET_NO_TOKEN_YET);
  for (uint32_t t = 0; t < 5; ++t) EXPECT_OK(kinglet_session_step(session, 0, 3 * t));
  EXPECT_OK(kinglet_session_fork(session, 0, 1));
  EXPECT_OK(kinglet_session_top_k(session, 0, V, best, NULL, V, NULL));

  const uint64_t seeds[] = {0, 1, 12345, UINT64_MAX};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_OK(kinglet_session_draw(session, 0, seeds[i], NULL, &word));
    EXPECT_OK(kinglet_session_draw(session, 1, seeds[i], NULL, &same));
    EXPECT(word == same && word < V);
    kinglet_draw_options options = Defaults();
    options.top_k = 1;
    EXPECT_OK(kinglet_session_draw(session, 0, seeds[i], &options, &word));
    EXPECT(word == best[0]);
    options = Defaults();
    options.top_p = 1e-9;
    EXPECT_OK(kinglet_session_draw(session, 0, seeds[i], &options, &word));
    EXPECT(word == best[0]);
    options = Defaults();
    options.temperature = 0;
    options.excluded = best;
    options.excluded_count = 3;
    EXPECT_OK(kinglet_session_draw(session, 0, seeds[i], &options, &word));
    EXPECT(word == best[3]);
  }

  // Several lanes: what each would draw alone.
  const uint32_t lanes[] = {1, 0};
  kinglet_draw_options options = Defaults();
  options.top_k = 9;
  options.top_p = 0.9;
  options.temperature = 1.5;
  uint32_t drawn[2] = {99, 99};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const uint64_t two[] = {seed, seed + 1};
    EXPECT_OK(kinglet_session_draw_lanes(session, lanes, two, 2, &options, drawn));
    EXPECT_OK(kinglet_session_draw(session, 1, seed, &options, &word));
    EXPECT(drawn[0] == word);
    EXPECT_OK(kinglet_session_draw(session, 0, seed + 1, &options, &word));
    EXPECT(drawn[1] == word);
  }
  const uint32_t twice[] = {0, 0};
  drawn[0] = drawn[1] = 99;
  EXPECT_INVALID(kinglet_session_draw_lanes(session, twice, seeds, 2, &options, drawn));
  EXPECT_INVALID(kinglet_session_draw_lanes(session, NULL, seeds, 2, &options, drawn));
  EXPECT_INVALID(kinglet_session_draw_lanes(session, lanes, NULL, 2, &options, drawn));
  EXPECT_INVALID(kinglet_session_draw_lanes(session, lanes, seeds, 2, &options, NULL));
  EXPECT_INVALID(kinglet_session_draw_lanes(NULL, lanes, seeds, 2, &options, drawn));
  EXPECT_OK(kinglet_session_draw_lanes(session, NULL, NULL, 0, NULL, NULL));
  EXPECT(drawn[0] == 99 && drawn[1] == 99);
  kinglet_session_destroy(session);
  return NULL;
}
