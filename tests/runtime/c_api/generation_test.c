#include <math.h>
#include <string.h>

#include "tests/runtime/c_api/expect.h"

_Static_assert(offsetof(kinglet_generation_options, streams) == 4, "fixed");
_Static_assert(offsetof(kinglet_generation_options, tokens) == 8, "fixed");
_Static_assert(offsetof(kinglet_generation_options, seed) == 16, "fixed");
_Static_assert(offsetof(kinglet_generation_options, draw) == 24, "fixed");

enum { TOKENS = 8, ROOM = 200 };

static kinglet_generation_options Options(void) {
  kinglet_generation_options options;
  kinglet_generation_options_init(&options, sizeof options);
  return options;
}

// All of a stream's words, and how it ends.
static const char* RunToTheEnd(kinglet_generation* generation) {
  int32_t more = 1, ended = 0;
  while (more == 1) EXPECT_OK(kinglet_generation_next(generation, &more));
  EXPECT(more == 0);
  EXPECT_OK(kinglet_generation_next(generation, &more));
  EXPECT(more == 0);
  EXPECT_OK(kinglet_generation_ended(generation, 0, &ended));
  EXPECT(ended == 1);
  return NULL;
}

const char* TestGeneration(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  const uint32_t prompt[] = {0, 5, 3};
  kinglet_draw_options draw;
  EXPECT_OK(kinglet_draw_options_init(&draw, sizeof draw));
  const uint32_t unknown = 2;
  draw.top_k = 15;
  draw.excluded = &unknown;
  draw.excluded_count = 1;
  kinglet_generation_options options = Options();
  options.streams = 2;
  options.tokens = TOKENS;
  options.seed = UINT64_MAX;
  options.draw = &draw;
  kinglet_generation* generation = NULL;
  EXPECT_OK(kinglet_generation_create(model, &options, prompt, 3, &generation));

  // Before the first word.
  uint64_t count = 9;
  int32_t ended = 9;
  char text[ROOM] = "*";
  EXPECT_OK(kinglet_generation_ids(generation, 1, NULL, 0, &count));
  EXPECT_OK(kinglet_generation_ended(generation, 1, &ended));
  EXPECT_OK(kinglet_generation_text(generation, 1, text, sizeof text, NULL));
  EXPECT(count == 0 && ended == 0 && strcmp(text, "") == 0);
  EXPECT_PASSES(RunToTheEnd(generation));

  // What a session draws.
  kinglet_session* session = NULL;
  EXPECT_OK(kinglet_session_create(model, NULL, &session));
  for (size_t i = 0; i < 3; ++i) EXPECT_OK(kinglet_session_step(session, 0, prompt[i]));
  uint32_t ids[TOKENS] = {0};
  char expected[ROOM] = "";
  EXPECT_OK(kinglet_generation_ids(generation, 0, ids, TOKENS, &count));
  EXPECT(count == TOKENS);
  for (size_t i = 0; i < TOKENS; ++i) {
    uint32_t word = 99;
    char spelt[8];
    EXPECT_OK(kinglet_session_draw(session, 0, UINT64_MAX, &draw, &word));
    EXPECT(word == ids[i] && word != unknown);
    EXPECT_OK(kinglet_session_step(session, 0, word));
    EXPECT_OK(kinglet_model_token_text(model, word, spelt, sizeof spelt, NULL));
    if (i == 0 || ids[i - 1] != 1) strcat(expected, word == 1 ? "" : " ");
    strcat(expected, word == 1 ? "\n" : spelt);
  }
  EXPECT_OK(kinglet_generation_text(generation, 0, text, sizeof text, &count));
  EXPECT(strcmp(text, expected) == 0 && count == strlen(expected) + 1);

  // Too little room.
  EXPECT(kinglet_generation_ids(generation, 0, ids, TOKENS - 1, &count) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT(count == TOKENS);
  EXPECT(kinglet_generation_text(generation, 0, text, 3, NULL) == KINGLET_BUFFER_TOO_SMALL);
  kinglet_generation_destroy(generation);

  // Alone, and without a prompt.
  uint32_t alone[TOKENS] = {0};
  options.streams = 1;
  options.threads = 2;
  EXPECT_OK(kinglet_generation_create(model, &options, prompt, 3, &generation));
  EXPECT_PASSES(RunToTheEnd(generation));
  EXPECT_OK(kinglet_generation_ids(generation, 0, alone, TOKENS, NULL));
  EXPECT(memcmp(alone, ids, sizeof ids) == 0);
  kinglet_generation_destroy(generation);
  EXPECT_OK(kinglet_generation_create(model, NULL, NULL, 0, &generation));
  EXPECT_PASSES(RunToTheEnd(generation));
  EXPECT_OK(kinglet_generation_ids(generation, 0, NULL, 0, &count));
  EXPECT(count == 100);
  kinglet_generation_destroy(generation);

  // A stop text, which need not end with a NUL.
  options.stop = " and more";
  options.stop_length = 1;
  EXPECT_OK(kinglet_generation_create(model, &options, prompt, 3, &generation));
  kinglet_model_close(model);  // the generation keeps what it needs
  EXPECT_PASSES(RunToTheEnd(generation));
  EXPECT_OK(kinglet_generation_text(generation, 0, text, sizeof text, NULL));
  EXPECT(strchr(text, ' ') == NULL);
  kinglet_generation_destroy(generation);
  kinglet_generation_destroy(NULL);
  kinglet_session_destroy(session);
  return NULL;
}

const char* TestGenerationErrors(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_PLAIN);
  kinglet_model* ids_only = OpenTest(TEST_MODEL_IDS_ONLY);
  kinglet_generation* generation = NULL;
  const uint32_t prompt[] = {0, TEST_WORDS};
  kinglet_generation_options options = Options();
  EXPECT_INVALID(kinglet_generation_options_init(NULL, sizeof options));
  EXPECT_INVALID(kinglet_generation_create(NULL, &options, prompt, 1, &generation));
  EXPECT_INVALID(kinglet_generation_create(model, &options, NULL, 1, &generation));
  EXPECT_INVALID(kinglet_generation_create(model, &options, prompt, UINT64_MAX, &generation));
  EXPECT_INVALID(kinglet_generation_create(model, &options, prompt, 1, NULL));
  EXPECT(kinglet_generation_create(model, &options, prompt, 2, &generation) ==
         KINGLET_ID_OUT_OF_RANGE);
  options.reserved = 1;
  EXPECT_INVALID(kinglet_generation_create(model, &options, prompt, 1, &generation));
  options = Options();
  options.struct_size = 8;
  EXPECT_INVALID(kinglet_generation_create(model, &options, prompt, 1, &generation));
  options = Options();
  options.stop_length = 1;
  EXPECT_INVALID(kinglet_generation_create(model, &options, prompt, 1, &generation));
  options.stop = "x";
  EXPECT(kinglet_generation_create(ids_only, &options, prompt, 1, &generation) ==
         KINGLET_UNSUPPORTED);
  options = Options();
  options.streams = UINT32_MAX;
  EXPECT(kinglet_generation_create(model, &options, prompt, 1, &generation) ==
         KINGLET_OUT_OF_MEMORY);
  EXPECT(generation == NULL);

  int32_t more = 9;
  uint64_t count = 9;
  kinglet_draw_options draw;
  EXPECT_OK(kinglet_draw_options_init(&draw, sizeof draw));
  draw.temperature = NAN;
  options = Options();
  options.draw = &draw;
  EXPECT_OK(kinglet_generation_create(model, &options, prompt, 1, &generation));
  EXPECT_INVALID(kinglet_generation_next(generation, &more));
  EXPECT_INVALID(kinglet_generation_next(generation, NULL));
  EXPECT_INVALID(kinglet_generation_next(NULL, &more));
  EXPECT_INVALID(kinglet_generation_ended(generation, 1, &more));
  EXPECT_INVALID(kinglet_generation_ended(generation, 0, NULL));
  EXPECT_INVALID(kinglet_generation_ended(NULL, 0, &more));
  EXPECT_INVALID(kinglet_generation_ids(generation, 1, NULL, 0, &count));
  EXPECT_INVALID(kinglet_generation_ids(NULL, 0, NULL, 0, &count));
  EXPECT_INVALID(kinglet_generation_text(generation, 1, NULL, 0, &count));
  EXPECT_INVALID(kinglet_generation_text(NULL, 0, NULL, 0, &count));
  EXPECT(more == 9 && count == 9);
  kinglet_generation_destroy(generation);

  // No word of this model is known to begin a text.
  EXPECT_OK(kinglet_generation_create(ids_only, NULL, NULL, 0, &generation));
  EXPECT_INVALID(kinglet_generation_next(generation, &more));
  kinglet_generation_destroy(generation);
  kinglet_model_close(ids_only);
  kinglet_model_close(model);
  return NULL;
}
