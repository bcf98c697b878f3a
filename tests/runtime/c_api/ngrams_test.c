#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/runtime/c_api/expect.h"

static kinglet_ngrams* OpenTestNgrams(void) {
  const char* const path = TestNgramFile();
  kinglet_ngrams* ngrams = NULL;
  kinglet_ngrams_open(path, &ngrams);
  remove(path);
  return ngrams;
}

// A word's score depends on the words before; states are values.
const char* TestNgrams(void) {
  kinglet_ngrams* ngrams = OpenTestNgrams();
  uint32_t word = 99, unknown = 99;
  EXPECT_OK(kinglet_ngrams_word(ngrams, "w3 and more", 2, &word));
  EXPECT_OK(kinglet_ngrams_word(ngrams, "no such word", 12, &unknown));
  EXPECT(word != unknown);
  kinglet_ngram_state states[2], after[2];
  EXPECT_OK(kinglet_ngrams_begin(ngrams, 1, &states[0]));
  EXPECT_OK(kinglet_ngrams_begin(ngrams, 0, &states[1]));
  const uint32_t words[] = {word, word};
  double found[2] = {5, 5}, again = 5;
  EXPECT_OK(kinglet_ngrams_score(ngrams, states, words, 2, after, found));
  // "<s> w3" is an n-gram of the test's file: log10 -0.25; "w3" alone has -1.
  EXPECT(fabs(found[0] - -0.25 * log(10)) < 1e-7);
  EXPECT(fabs(found[1] - -1 * log(10)) < 1e-7);
  EXPECT(memcmp(&after[0], &after[1], sizeof after[0]) == 0);
  EXPECT_OK(kinglet_ngrams_score(ngrams, states, words, 1, states, &again));
  EXPECT(again == found[0] && memcmp(&states[0], &after[0], sizeof states[0]) == 0);
  EXPECT_OK(kinglet_ngrams_score(ngrams, NULL, NULL, 0, NULL, NULL));
  kinglet_ngrams_destroy(ngrams);
  kinglet_ngrams_destroy(NULL);
  return NULL;
}

// A beam's answers are those of the scorer that it was created with.
const char* TestScorers(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_TEXT);
  kinglet_ngrams* ngrams = OpenTestNgrams();
  kinglet_scorer* scorer = NULL;
  EXPECT_OK(kinglet_scorer_create(model, 2, -3, &scorer));
  EXPECT_OK(kinglet_scorer_add_ngrams(scorer, ngrams, KINGLET_NGRAMS_ADDED, 0.5));
  const uint32_t phrase[] = {3, 5};
  EXPECT_OK(kinglet_scorer_add_phrase(scorer, phrase, 2, 1));
  kinglet_beam_options options;
  EXPECT_OK(kinglet_beam_options_init(&options, sizeof options));
  kinglet_beam *plain = NULL, *beam = NULL;
  EXPECT_OK(kinglet_beam_create(model, &options, &plain));
  options.scorer = scorer;
  EXPECT_OK(kinglet_beam_create(model, &options, &beam));
  // What comes later has no effect.
  EXPECT_OK(kinglet_scorer_add_ngrams(scorer, ngrams, KINGLET_NGRAMS_MIXED, 1));
  kinglet_scorer_destroy(scorer);
  kinglet_ngrams_destroy(ngrams);

  uint64_t at[2] = {0, 0};
  const uint32_t end = 1, first = 3, asked[] = {3, 2, 5};
  double networks[3] = {0}, scores[3] = {0};
  uint64_t repeated[3];
  for (int i = 0; i < 2; ++i) {
    kinglet_beam* const one = i == 0 ? plain : beam;
    EXPECT_OK(kinglet_beam_begin(one, NULL, &at[i]));
    EXPECT_OK(kinglet_beam_step(one, &at[i], &end, 1, &at[i]));
    for (int j = 0; j < 3; ++j) repeated[j] = at[i];
    EXPECT_OK(kinglet_beam_log_probability(one, repeated, asked, 3, i == 0 ? networks : scores));
  }
  EXPECT(fabs(scores[0] - (2 * networks[0] + 0.5 * -0.25 * log(10) + 1)) < 1e-6);
  // "<s>" has a back-off weight of 0, <unk> has log10 -2.
  EXPECT(fabs(scores[1] - (2 * networks[1] + 0.5 * -2 * log(10) - 3)) < 1e-6);
  EXPECT_OK(kinglet_beam_step(beam, &at[1], &first, 1, &at[1]));
  EXPECT_OK(kinglet_beam_step(plain, &at[0], &first, 1, &at[0]));
  EXPECT_OK(kinglet_beam_log_probability(beam, &at[1], phrase + 1, 1, scores));
  EXPECT_OK(kinglet_beam_log_probability(plain, &at[0], phrase + 1, 1, networks));
  // The back-off weight of "w3" is 0.5; "w5" is unknown to the n-grams; the phrase is complete.
  EXPECT(fabs(scores[0] - (2 * networks[0] + 0.5 * (0.5 - 2) * log(10) + 1)) < 1e-6);
  kinglet_beam_destroy(beam);
  kinglet_beam_destroy(plain);
  kinglet_model_close(model);
  return NULL;
}

const char* TestNgramErrors(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_TEXT);
  kinglet_model* other = OpenTest(TEST_MODEL_IDS_ONLY);
  kinglet_ngrams* ngrams = OpenTestNgrams();
  kinglet_ngrams* none = NULL;
  EXPECT(kinglet_ngrams_open("no/such/file.kng", &none) == KINGLET_NOT_FOUND);
  EXPECT(strstr(kinglet_error_message(), "no/such/file.kng") != NULL);
  EXPECT_INVALID(kinglet_ngrams_open(NULL, &none));
  EXPECT_INVALID(kinglet_ngrams_open("no/such/file.kng", NULL));
  EXPECT(none == NULL);
  const test_bytes bytes = TestModel(TEST_MODEL_TEXT);
  const char* const path = TestFile(bytes);
  EXPECT(kinglet_ngrams_open(path, &none) == KINGLET_CORRUPT);
  remove(path);

  uint32_t word = 9;
  kinglet_ngram_state state;
  double score = 5;
  EXPECT_INVALID(kinglet_ngrams_word(NULL, "w3", 2, &word));
  EXPECT_INVALID(kinglet_ngrams_word(ngrams, NULL, 2, &word));
  EXPECT_INVALID(kinglet_ngrams_word(ngrams, "w3", 2, NULL));
  EXPECT_INVALID(kinglet_ngrams_begin(NULL, 1, &state));
  EXPECT_INVALID(kinglet_ngrams_begin(ngrams, 2, &state));
  EXPECT_INVALID(kinglet_ngrams_begin(ngrams, 1, NULL));
  EXPECT_OK(kinglet_ngrams_begin(ngrams, 1, &state));
  EXPECT(kinglet_ngrams_score(ngrams, &state, &word, 1, &state, &score) == KINGLET_ID_OUT_OF_RANGE);
  word = 0;
  EXPECT_INVALID(kinglet_ngrams_score(NULL, &state, &word, 1, &state, &score));
  EXPECT_INVALID(kinglet_ngrams_score(ngrams, NULL, &word, 1, &state, &score));
  EXPECT_INVALID(kinglet_ngrams_score(ngrams, &state, NULL, 1, &state, &score));
  memset(&state, 1, sizeof state);
  EXPECT_INVALID(kinglet_ngrams_score(ngrams, &state, &word, 1, &state, &score));
  EXPECT(score == 5);

  kinglet_scorer *scorer = NULL, *of_ids = NULL;
  EXPECT_INVALID(kinglet_scorer_create(NULL, 1, 0, &scorer));
  EXPECT_INVALID(kinglet_scorer_create(model, 1, 0, NULL));
  EXPECT_INVALID(kinglet_scorer_create(model, NAN, 0, &scorer));
  EXPECT_OK(kinglet_scorer_create(model, 1, 0, &scorer));
  EXPECT_OK(kinglet_scorer_create(other, 1, 0, &of_ids));
  EXPECT_INVALID(kinglet_scorer_add_ngrams(NULL, ngrams, KINGLET_NGRAMS_ADDED, 1));
  EXPECT_INVALID(kinglet_scorer_add_ngrams(scorer, NULL, KINGLET_NGRAMS_ADDED, 1));
  EXPECT_INVALID(kinglet_scorer_add_ngrams(scorer, ngrams, 2, 1));
  EXPECT_INVALID(kinglet_scorer_add_ngrams(scorer, ngrams, KINGLET_NGRAMS_MIXED, 1.5));
  EXPECT(kinglet_scorer_add_ngrams(of_ids, ngrams, KINGLET_NGRAMS_ADDED, 1) == KINGLET_UNSUPPORTED);
  const uint32_t beyond = TEST_WORDS;
  EXPECT_INVALID(kinglet_scorer_add_phrase(NULL, &word, 1, 1));
  EXPECT_INVALID(kinglet_scorer_add_phrase(scorer, NULL, 1, 1));
  EXPECT_INVALID(kinglet_scorer_add_phrase(scorer, &word, 0, 1));
  EXPECT(kinglet_scorer_add_phrase(scorer, &beyond, 1, 1) == KINGLET_ID_OUT_OF_RANGE);
  kinglet_beam_options options;
  kinglet_beam* beam = NULL;
  EXPECT_OK(kinglet_beam_options_init(&options, sizeof options));
  options.scorer = of_ids;
  EXPECT_INVALID(kinglet_beam_create(model, &options, &beam));
  EXPECT(strstr(kinglet_error_message(), "a scorer of this model") != NULL);
  kinglet_scorer_destroy(of_ids);
  kinglet_scorer_destroy(scorer);
  kinglet_scorer_destroy(NULL);
  kinglet_ngrams_destroy(ngrams);
  kinglet_model_close(other);
  kinglet_model_close(model);
  return NULL;
}
