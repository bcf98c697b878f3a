// Queries about the text that follows, in C.
#include <string.h>

#include "tests/runtime/c_api/expect.h"

enum { V = TEST_WORDS, kTexts = 256 };

// Words are tokens here: "the", "<eos>", "<unk>", "w3", .., with spaces between them.
const char* TestTextQueries(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 2);
  float p[V];
  double found = 0, of_words = 0, log_probabilities[3];
  uint32_t characters[V], count = 99;
  double probabilities[V];
  uint64_t steps = 99, needed = 0, offsets[4];
  char texts[kTexts];
  EXPECT_OK(kinglet_session_step(session, 1, 0));
  EXPECT_OK(kinglet_session_probabilities(session, 1, p, V));
  EXPECT_OK(kinglet_session_text_probability(session, 1, " w3", 3, 10, &found, &steps));
  EXPECT(found == (double)p[3] && steps == 0);
  EXPECT_OK(kinglet_session_text_probability(session, 1, NULL, 0, 0, &found, NULL));
  EXPECT(found == 1);
  EXPECT_OK(kinglet_session_text_probability(session, 1, "w3", 2, 0, &found, NULL));
  EXPECT(found == 0);

  // Two words take a step.
  EXPECT(kinglet_session_text_probability(session, 1, " w3 w4", 6, 0, &found, &steps) ==
         KINGLET_TOO_MANY_STEPS);
  EXPECT(found == 0);
  EXPECT_OK(kinglet_session_text_probability(session, 1, " w3 w4", 6, 1, &found, &steps));
  EXPECT(found > 0 && found < (double)p[3] && steps == 1);
  uint64_t position = 0;
  EXPECT_OK(kinglet_session_position(session, 1, &position));
  EXPECT(position == 1);

  for (uint32_t i = 10; i < V; ++i) of_words += i < 20 ? (double)p[i] : 0;
  EXPECT_OK(kinglet_session_text_next_characters(session, 1, " w1", 3, 10, characters,
                                                 probabilities, V, &count, &steps));
  EXPECT(count == 10 && characters[0] == '0' && characters[9] == '9');
  EXPECT(probabilities[4] == (double)p[14] && steps == 0);
  double of_characters = 0;
  for (uint32_t i = 0; i < count; ++i) of_characters += probabilities[i];
  EXPECT(of_characters == of_words);
  EXPECT(kinglet_session_text_next_characters(session, 1, " w1", 3, 10, characters, NULL, 9, &count,
                                              NULL) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT(count == 10);

  EXPECT_OK(kinglet_session_text_words(session, 1, " w1", 3, 3, 8, 100, texts, kTexts, &needed,
                                       offsets, log_probabilities, &count, &steps));
  EXPECT(count == 3 && offsets[0] == 0 && offsets[3] == needed && steps > 0);
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT(strncmp(texts + offsets[i], " w1", 3) == 0);
    EXPECT(offsets[i + 1] - offsets[i] == 5 && texts[offsets[i + 1] - 1] == '\0');
    EXPECT(i == 0 || log_probabilities[i] <= log_probabilities[i - 1]);
  }
  EXPECT(kinglet_session_text_words(session, 1, " w1", 3, 3, 8, 100, texts, needed - 1, &needed,
                                    offsets, NULL, &count, NULL) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT(count == 3);
  EXPECT_OK(kinglet_session_text_words(session, 1, " w1", 3, 0, 8, 100, NULL, 0, &needed, NULL,
                                       NULL, &count, NULL));
  EXPECT(count == 0);
  kinglet_session_destroy(session);
  return NULL;
}

const char* TestTextQueryErrors(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 1);
  double p = 99;
  uint64_t needed = 99;
  uint32_t count = 99;
  EXPECT(kinglet_session_text_probability(session, 0, "t", 1, 1, &p, NULL) == KINGLET_NO_TOKEN_YET);
  EXPECT_OK(kinglet_session_step(session, 0, 1));
  EXPECT_INVALID(kinglet_session_text_probability(NULL, 0, "t", 1, 1, &p, NULL));
  EXPECT_INVALID(kinglet_session_text_probability(session, 1, "t", 1, 1, &p, NULL));
  EXPECT_INVALID(kinglet_session_text_probability(session, 0, NULL, 1, 1, &p, NULL));
  EXPECT_INVALID(kinglet_session_text_probability(session, 0, "t", 1, 1, NULL, NULL));
  EXPECT_INVALID(kinglet_session_text_words(session, 0, "t", 1, 3, 0, 1, NULL, 0, &needed, NULL,
                                            NULL, &count, NULL));
  EXPECT(p == 99 && needed == 99 && count == 99);
  kinglet_session_destroy(session);

  session = StartTest(TEST_MODEL_IDS_ONLY, 1);
  EXPECT_OK(kinglet_session_step(session, 0, 1));
  EXPECT(kinglet_session_text_probability(session, 0, "t", 1, 1, &p, NULL) == KINGLET_UNSUPPORTED);
  EXPECT(kinglet_session_text_next_characters(session, 0, "t", 1, 1, NULL, NULL, 0, &count, NULL) ==
         KINGLET_UNSUPPORTED);
  kinglet_session_destroy(session);
  return NULL;
}
