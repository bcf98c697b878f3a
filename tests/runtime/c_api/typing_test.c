// Typing in C.
#define _POSIX_C_SOURCE 200809L  // mkstemp

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/runtime/c_api/expect.h"

_Static_assert(offsetof(kinglet_typing_input, touches) == 4, "fixed");
_Static_assert(offsetof(kinglet_typing_input, begins) == 8, "fixed");
_Static_assert(offsetof(kinglet_typing_input, insertion) == 32, "fixed");
_Static_assert(offsetof(kinglet_typing_input, capitals) == 72, "fixed");
_Static_assert(offsetof(kinglet_typing_input, deadline) == 80, "fixed");
_Static_assert(offsetof(kinglet_typing_input, before) == 88, "fixed");
_Static_assert(sizeof(kinglet_typing_input) == 96, "fixed");

enum { ROOM = 4096, MOST = 40, LAST_TOUCH = 64 };

// The letters of a text, each as one touch without doubt.
typedef struct letters_typed {
  uint32_t begins[LAST_TOUCH + 2], characters[LAST_TOUCH + 1];
  double costs[LAST_TOUCH + 1];
  kinglet_typing_input input;
} letters_typed;

static void Type(letters_typed* out, const char* letters) {
  kinglet_typing_input_init(&out->input, sizeof out->input);
  out->begins[0] = 0;
  for (uint32_t i = 0; letters[i] != '\0'; ++i) {
    out->characters[i] = (unsigned char)letters[i];
    out->costs[i] = 0;
    out->begins[i + 1] = i + 1;
    out->input.touches = i + 1;
  }
  out->input.begins = out->begins;
  out->input.characters = out->characters;
  out->input.costs = out->costs;
  out->input.finished = 1;
}

// Nothing beyond the size that the caller states is written.
static const char* TestTypingInputSize(void) {
  unsigned char bytes[sizeof(kinglet_typing_input)];
  memset(bytes, 7, sizeof bytes);
  EXPECT_OK(kinglet_typing_input_init((kinglet_typing_input*)(void*)bytes, 8));
  for (size_t i = 8; i < sizeof bytes; ++i) EXPECT(bytes[i] == 7);
  return NULL;
}

// A person's own words, in memory and in a file.
static const char* TestWordsOfAPerson(kinglet_typing* typing, kinglet_session* session) {
  char path[] = "/tmp/kinglet-c-words-XXXXXX";
  const int made = mkstemp(path);
  EXPECT(made >= 0 && close(made) == 0);
  EXPECT_OK(kinglet_typing_open_words(typing, path));
  EXPECT_OK(kinglet_typing_learn(typing, "the", "w15"));
  EXPECT_OK(kinglet_typing_learn(typing, "the", "Kinglet"));
  EXPECT_OK(kinglet_typing_learn(typing, NULL, "Kinglet"));
  EXPECT(kinglet_typing_open_words(typing, "/") != KINGLET_OK);  // and there are no words then
  uint64_t number = 9, needed = 0, uses[2] = {0, 0}, offsets[3];
  EXPECT_OK(kinglet_typing_list(typing, 0, NULL, 0, NULL, NULL, NULL, &number));
  EXPECT(number == 0);
  EXPECT_OK(kinglet_typing_open_words(typing, path));
  char texts[ROOM];
  EXPECT_OK(kinglet_typing_list(typing, 2, texts, ROOM, &needed, offsets, uses, &number));
  EXPECT(number == 2 && needed == 12 && memcmp(texts, "Kinglet\0w15", 12) == 0);
  EXPECT(uses[0] == 2 && uses[1] == 1 && offsets[1] == 8 && offsets[2] == 12);
  EXPECT(kinglet_typing_list(typing, 2, texts, 3, NULL, NULL, NULL, NULL) ==
         KINGLET_BUFFER_TOO_SMALL);

  letters_typed typed;
  Type(&typed, "kin");
  typed.input.finished = 0;
  typed.input.before = "the";
  uint32_t kinds[1] = {9}, count = 0;
  double with_before[1], without[1];
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, 1, texts, ROOM, NULL, NULL,
                                with_before, NULL, kinds, &count, NULL));
  EXPECT(count == 1 && strcmp(texts, "Kinglet") == 0 && kinds[0] == KINGLET_TYPING_USER_WORD);
  typed.input.before = "w3";
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, 1, texts, ROOM, NULL, NULL,
                                without, NULL, kinds, &count, NULL));
  EXPECT_OK(kinglet_typing_set_weights(typing, 0.5, 0.001));
  typed.input.before = "the";
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, 1, texts, ROOM, NULL, NULL,
                                without, NULL, kinds, &count, NULL));
  EXPECT(without[0] > with_before[0]);
  EXPECT_OK(kinglet_typing_unlearn(typing, "kinglet", &number));
  EXPECT(number == 1);
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, 1, texts, ROOM, NULL, NULL, NULL,
                                NULL, NULL, &count, NULL));
  EXPECT(count == 1 && strcmp(texts, "Kinglet") != 0);
  EXPECT_OK(kinglet_typing_forget(typing));
  EXPECT_OK(kinglet_typing_list(typing, 0, NULL, 0, NULL, NULL, NULL, &number));
  EXPECT(number == 0 && remove(path) == 0);

  const double bad_weights[][2] = {{-1, 0}, {0, NAN}, {0.5, 0.5}, {INFINITY, 0}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_INVALID(kinglet_typing_set_weights(typing, bad_weights[i][0], bad_weights[i][1]));
  }
  EXPECT_INVALID(kinglet_typing_set_weights(NULL, 0, 0));
  const char* const bad_words[] = {"", "no word", "\xFF", "...", NULL};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_INVALID(kinglet_typing_learn(typing, NULL, bad_words[i]));
  }
  EXPECT_INVALID(kinglet_typing_learn(NULL, NULL, "a"));
  EXPECT_INVALID(kinglet_typing_unlearn(typing, NULL, NULL));
  EXPECT_INVALID(kinglet_typing_unlearn(NULL, "a", NULL));
  EXPECT_INVALID(kinglet_typing_forget(NULL));
  EXPECT_INVALID(kinglet_typing_list(NULL, 0, NULL, 0, NULL, NULL, NULL, NULL));
  EXPECT_INVALID(kinglet_typing_open_words(typing, NULL));
  EXPECT_INVALID(kinglet_typing_open_words(NULL, path));
  return NULL;
}

// Words are "the", "<eos>", "<unk>", "w3", .. "w22".
const char* TestTyping(void) {
  const char* const size = TestTypingInputSize();
  if (size != NULL) return size;
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  kinglet_typing* typing = NULL;
  EXPECT_OK(kinglet_typing_create(model, &typing));
  kinglet_session* session = NULL;
  EXPECT_OK(kinglet_session_create(model, NULL, &session));
  EXPECT_OK(kinglet_session_step(session, 0, 0));
  kinglet_model_close(model);  // the decoder keeps it
  float p[TEST_WORDS];
  EXPECT_OK(kinglet_session_log_probabilities(session, 0, p, TEST_WORDS));
  EXPECT_OK(kinglet_typing_prepare(typing, session, 0));

  char texts[ROOM];
  uint64_t needed = 0, offsets[MOST + 1];
  double log_probabilities[MOST], costs[MOST];
  uint32_t kinds[MOST], count = 99;
  int32_t complete = 9;
  letters_typed typed;
  Type(&typed, "w15");
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, 3, texts, ROOM, &needed, offsets,
                                log_probabilities, costs, kinds, &count, &complete));
  EXPECT(count >= 1 && complete == 1 && offsets[count] == needed);
  EXPECT(strcmp(texts, "w15") == 0 && costs[0] == 0 && kinds[0] == KINGLET_TYPING_WORD);
  EXPECT(fabs(log_probabilities[0] - (double)p[15]) < 1e-4);
  typed.input.capitals = KINGLET_CAPITALS_ALL;
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, 1, texts, ROOM, NULL, NULL, NULL,
                                NULL, NULL, NULL, NULL));
  EXPECT(strcmp(texts, "W15") == 0);

  // A missing space; the decoder steps a stream of its own.
  Type(&typed, "thew15");
  typed.input.missing_space = 0;
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, 1, texts, ROOM, NULL, NULL,
                                log_probabilities, costs, kinds, &count, NULL));
  EXPECT(strcmp(texts, "the w15") == 0 && kinds[0] == KINGLET_TYPING_TWO_WORDS);
  uint64_t position = 0;
  float after[TEST_WORDS];
  EXPECT_OK(kinglet_session_position(session, 0, &position));
  EXPECT_OK(kinglet_session_log_probabilities(session, 0, after, TEST_WORDS));
  EXPECT(position == 1 && memcmp(p, after, sizeof p) == 0);
  EXPECT_OK(kinglet_session_step(session, 0, 0));
  EXPECT_OK(kinglet_session_log_probabilities(session, 0, after, TEST_WORDS));
  EXPECT(fabs(log_probabilities[0] - ((double)p[0] + (double)after[15])) < 1e-4);

  // Letters that are no word.
  Type(&typed, "zz");
  typed.input.insertion = typed.input.deletion = typed.input.substitution = INFINITY;
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, 3, texts, ROOM, NULL, NULL,
                                log_probabilities, costs, kinds, &count, NULL));
  EXPECT(count == 1 && strcmp(texts, "zz") == 0 && kinds[0] == KINGLET_TYPING_LETTERS);
  EXPECT(log_probabilities[0] < (double)after[2]);

  // No touches: completions. All words blocked; an allowed one; a deadline.
  Type(&typed, "");
  typed.input.finished = 0;
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, MOST, texts, ROOM, NULL, NULL,
                                NULL, NULL, NULL, &count, NULL));
  EXPECT(count > 1 && count <= TEST_WORDS - 2);
  const uint32_t all = count;
  const uint64_t words[] = {0, 3, 6};
  EXPECT_OK(kinglet_typing_set_allowed(typing, "theW15", words, 2));
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, MOST, NULL, 0, NULL, NULL, NULL,
                                NULL, NULL, &count, NULL));
  EXPECT(count == 2);
  EXPECT_OK(kinglet_typing_set_blocked(typing, "THEw15", words, 2));
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, MOST, NULL, 0, &needed, NULL,
                                NULL, NULL, NULL, &count, &complete));
  EXPECT(count == 0 && needed == 0 && complete == 1);
  EXPECT_OK(kinglet_typing_set_blocked(typing, NULL, NULL, 0));
  EXPECT_OK(kinglet_typing_set_allowed(typing, NULL, NULL, 0));
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, MOST, NULL, 0, NULL, NULL, NULL,
                                NULL, NULL, &count, NULL));
  EXPECT(count == all);
  Type(&typed, "thethethethethethethethethethethethethet");  // 40 letters
  typed.input.deadline = 1;
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, 3, NULL, 0, NULL, NULL, NULL,
                                NULL, NULL, &count, &complete));
  EXPECT(complete == 0);
  typed.input.deadline = UINT64_MAX;
  EXPECT_OK(kinglet_typing_find(typing, session, 0, &typed.input, 3, NULL, 0, NULL, NULL, NULL,
                                NULL, NULL, &count, &complete));
  EXPECT(complete == 1);
  const char* const own_words = TestWordsOfAPerson(typing, session);
  if (own_words != NULL) return own_words;
  kinglet_session_destroy(session);
  kinglet_typing_destroy(typing);
  kinglet_typing_destroy(NULL);
  return NULL;
}

static kinglet_status Find(kinglet_typing* typing, kinglet_session* session,
                           const kinglet_typing_input* input) {
  return kinglet_typing_find(typing, session, 0, input, 3, NULL, 0, NULL, NULL, NULL, NULL, NULL,
                             NULL, NULL);
}

const char* TestTypingErrors(void) {
  kinglet_typing* typing = NULL;
  const enum test_model others[] = {TEST_MODEL_IDS_ONLY, TEST_MODEL_CLASSIFIER,
                                    TEST_MODEL_TRANSLATION, TEST_MODEL_MASKED};
  for (size_t i = 0; i < 4; ++i) {
    kinglet_model* other = OpenTest(others[i]);
    EXPECT(kinglet_typing_create(other, &typing) == KINGLET_UNSUPPORTED);
    kinglet_model_close(other);
  }
  EXPECT_INVALID(kinglet_typing_create(NULL, &typing));
  EXPECT(typing == NULL);
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  EXPECT_INVALID(kinglet_typing_create(model, NULL));
  EXPECT_OK(kinglet_typing_create(model, &typing));
  kinglet_session* session = NULL;
  EXPECT_OK(kinglet_session_create(model, NULL, &session));
  kinglet_model_close(model);
  EXPECT_INVALID(kinglet_typing_input_init(NULL, sizeof(kinglet_typing_input)));

  letters_typed good;
  Type(&good, "w15");
  EXPECT(Find(typing, session, &good.input) == KINGLET_NO_TOKEN_YET);
  EXPECT(kinglet_typing_prepare(typing, session, 0) == KINGLET_NO_TOKEN_YET);
  EXPECT_OK(kinglet_session_step(session, 0, 0));
  EXPECT_INVALID(kinglet_typing_prepare(NULL, session, 0));
  EXPECT_INVALID(kinglet_typing_prepare(typing, NULL, 0));
  EXPECT_INVALID(kinglet_typing_prepare(typing, session, 1));
  EXPECT_INVALID(Find(NULL, session, &good.input));
  EXPECT_INVALID(Find(typing, NULL, &good.input));
  EXPECT_INVALID(Find(typing, session, NULL));

  kinglet_session* other = StartTest(TEST_MODEL_OTHER, 1);
  EXPECT_OK(kinglet_session_step(other, 0, 0));
  EXPECT(Find(typing, other, &good.input) == KINGLET_MISMATCH);
  kinglet_session_destroy(other);

  const double bad_costs[] = {-1, NAN, -INFINITY};
  double* const fields[] = {&good.input.insertion,     &good.input.deletion,
                            &good.input.transposition, &good.input.substitution,
                            &good.input.missing_space, &good.costs[1]};
  for (size_t i = 0; i < 18; ++i) {
    Type(&good, "w15");
    *fields[i % 6] = bad_costs[i / 6];
    EXPECT_INVALID(Find(typing, session, &good.input));
  }
  Type(&good, "w15");
  const uint32_t bad_characters[] = {0xD800, 0x110000, UINT32_MAX};
  for (size_t i = 0; i < 3; ++i) {
    good.characters[0] = bad_characters[i];
    EXPECT_INVALID(Find(typing, session, &good.input));
  }
  Type(&good, "w15");
  good.begins[1] = 3;  // and descends
  EXPECT_INVALID(Find(typing, session, &good.input));
  Type(&good, "w15");
  good.begins[0] = 1;
  EXPECT_INVALID(Find(typing, session, &good.input));
  for (int wrong = 0; wrong < 8; ++wrong) {
    Type(&good, "w15");
    kinglet_typing_input* const input = &good.input;
    if (wrong == 0) input->touches = 65;
    if (wrong == 1) input->touches = UINT32_MAX;
    if (wrong == 2) input->capitals = 3;
    if (wrong == 3) input->finished = 2;
    if (wrong == 4) input->begins = NULL;
    if (wrong == 5) input->characters = NULL;
    if (wrong == 6) input->costs = NULL;
    if (wrong == 7) input->struct_size = 8;
    EXPECT_INVALID(Find(typing, session, input));
  }
  const uint64_t descending[] = {0, 3, 1}, ascending[] = {0, 3};
  EXPECT_INVALID(kinglet_typing_set_blocked(typing, "the", descending, 2));
  EXPECT_INVALID(kinglet_typing_set_allowed(typing, "the", descending, 2));
  EXPECT_INVALID(kinglet_typing_set_blocked(typing, NULL, ascending, 1));
  EXPECT_INVALID(kinglet_typing_set_blocked(typing, "the", NULL, 1));
  EXPECT_INVALID(kinglet_typing_set_blocked(typing, "the", ascending, UINT64_MAX));
  EXPECT_INVALID(kinglet_typing_set_blocked(NULL, "the", ascending, 1));
  EXPECT_INVALID(kinglet_typing_set_allowed(NULL, "the", ascending, 1));

  // Too little room changes nothing but the sizes.
  Type(&good, "w15");
  char room[4] = "*";
  uint64_t needed = 0;
  uint32_t count = 0;
  EXPECT(kinglet_typing_find(typing, session, 0, &good.input, 3, room, 3, &needed, NULL, NULL, NULL,
                             NULL, &count, NULL) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT(room[0] == '*' && needed >= 4 && count >= 1);
  // Cancelled; the next call is not.
  EXPECT_OK(kinglet_session_cancel(session));
  EXPECT(Find(typing, session, &good.input) == KINGLET_CANCELLED);
  EXPECT_OK(Find(typing, session, &good.input));
  EXPECT_OK(kinglet_session_cancel(session));
  EXPECT(Find(typing, session, &good.input) == KINGLET_CANCELLED);
  EXPECT_OK(Find(typing, session, &good.input));
  kinglet_session_destroy(session);
  kinglet_typing_destroy(typing);
  return NULL;
}
