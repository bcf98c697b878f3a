#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/c_api/expect.h"

// Option structures are part of the binary interface: their layout may grow, never change.
_Static_assert(sizeof(kinglet_status) == 4, "status is 32 bits");
_Static_assert(offsetof(kinglet_model_options, struct_size) == 0, "first");
_Static_assert(offsetof(kinglet_model_options, reserved) == 4, "fixed");
_Static_assert(offsetof(kinglet_model_options, session_memory_limit) == 8, "fixed");
_Static_assert(offsetof(kinglet_model_options, backend) == 16, "fixed");
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(offsetof(kinglet_model_options, memory_limit) == 24, "fixed");
_Static_assert(offsetof(kinglet_model_options, log) == 32, "fixed");
_Static_assert(offsetof(kinglet_model_options, log_user) == 40, "fixed");
_Static_assert(sizeof(kinglet_model_options) == 48, "no padding at the end");
#endif

enum { UNKNOWN = 40 };
struct newer_options {
  kinglet_model_options known;
  uint8_t unknown[UNKNOWN];
};

static kinglet_status TryOptions(const kinglet_model_options* options) {
  const test_bytes bytes = TestModel(TEST_MODEL_PLAIN);
  kinglet_model* model = NULL;
  const kinglet_status status = kinglet_model_open_memory(bytes.data, bytes.size, options, &model);
  if ((status == KINGLET_OK) != (model != NULL)) return KINGLET_INTERNAL;
  kinglet_model_close(model);
  return status;
}

static void CountLines(void* user, int32_t level, const char* message) {
  uint32_t* lines = user;
  lines[0] += level == KINGLET_LOG_INFO && strchr(message, '\n') == NULL && strlen(message) > 0;
  lines[1] += level == KINGLET_LOG_WARNING;
}

const char* TestModelOptions(void) {
  struct newer_options newer;
  kinglet_model_options options;
  EXPECT_INVALID(kinglet_model_options_init(NULL, sizeof options));
  memset(&options, 7, sizeof options);
  for (uint32_t size = 0; size < 4; ++size) {
    EXPECT_INVALID(kinglet_model_options_init(&options, size));
  }
  EXPECT_INVALID(kinglet_model_options_init(&options, 4097));
  EXPECT_INVALID(kinglet_model_options_init(&options, UINT32_MAX));
  EXPECT(options.reserved == 0x07070707);
  EXPECT_OK(kinglet_model_options_init(&options, sizeof options));
  EXPECT(options.struct_size == sizeof options && options.reserved == 0);
  EXPECT(options.session_memory_limit == 0 && options.backend == NULL);
  EXPECT(options.memory_limit == 0 && options.log == NULL && options.log_user == NULL);
  EXPECT_OK(TryOptions(&options));

  // Of a newer program: longer, and zero where this library knows nothing.
  memset(&newer, 7, sizeof newer);
  EXPECT_OK(kinglet_model_options_init(&newer.known, sizeof newer));
  EXPECT(newer.unknown[UNKNOWN - 1] == 0);
  EXPECT_OK(TryOptions(&newer.known));
  for (int i = 0; i < UNKNOWN; ++i) {
    newer.unknown[i] = 1;
    EXPECT_INVALID(TryOptions(&newer.known));
    newer.unknown[i] = 0;
  }
  const uint32_t sizes[] = {0, 1, 4, 8, sizeof options - 1, 4097, UINT32_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    options.struct_size = sizes[i];
    EXPECT_INVALID(TryOptions(&options));
  }
  options.struct_size = sizeof options;
  options.reserved = 1;
  EXPECT_INVALID(TryOptions(&options));
  options.reserved = 0;
  options.backend = "abacus";
  EXPECT(TryOptions(&options) == KINGLET_UNSUPPORTED);
  const char* const backends[] = {"cpu", "ref", "ref64"};
  for (size_t i = 0; i < 3; ++i) {
    options.backend = backends[i];
    EXPECT_OK(TryOptions(&options));
  }

  uint32_t lines[2] = {0, 0};
  options.log = CountLines;
  options.log_user = lines;
  EXPECT_OK(TryOptions(&options));
  EXPECT(lines[0] > 0);
  lines[0] = 0;
  options.memory_limit = 1;
  EXPECT(TryOptions(&options) == KINGLET_OUT_OF_MEMORY);
  options.memory_limit = UINT64_MAX;
  EXPECT_OK(TryOptions(&options));
  return NULL;
}

const char* TestModelsOpen(void) {
  const test_bytes bytes = TestModel(TEST_MODEL_PLAIN);
  kinglet_model* model = NULL;
  EXPECT_INVALID(kinglet_model_open(NULL, NULL, &model));
  EXPECT_INVALID(kinglet_model_open("x", NULL, NULL));
  EXPECT_INVALID(kinglet_model_open_memory(NULL, bytes.size, NULL, &model));
  EXPECT_INVALID(kinglet_model_open_memory(bytes.data, bytes.size, NULL, NULL));
  EXPECT_INVALID(kinglet_model_open_memory(bytes.data, UINT64_MAX, NULL, &model));
  EXPECT_INVALID(kinglet_model_open_memory(bytes.data, (uint64_t)INT64_MAX + 1, NULL, &model));
  EXPECT(kinglet_model_open("no/such/model.kgl", NULL, &model) == KINGLET_NOT_FOUND);
  EXPECT(strstr(kinglet_error_message(), "no/such/model.kgl") != NULL);
  EXPECT(kinglet_model_open(".", NULL, &model) == KINGLET_IO_ERROR);
  EXPECT(kinglet_model_open_memory(bytes.data, 0, NULL, &model) == KINGLET_CORRUPT);
  EXPECT(kinglet_model_open_memory(bytes.data, bytes.size - 1, NULL, &model) == KINGLET_CORRUPT);
  EXPECT(model == NULL);

  const struct {
    enum test_model which;
    kinglet_status status;
  } refused[] = {{TEST_MODEL_DAMAGED, KINGLET_CORRUPT},
                 {TEST_MODEL_OF_ANOTHER_VERSION, KINGLET_UNSUPPORTED_VERSION},
                 {TEST_MODEL_SENSELESS, KINGLET_INVALID_MODEL}};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    const test_bytes bad = TestModel(refused[i].which);
    EXPECT(kinglet_model_open_memory(bad.data, bad.size, NULL, &model) == refused[i].status);
    const char* const path = TestFile(bad);
    const kinglet_status status = kinglet_model_open(path, NULL, &model);
    EXPECT(remove(path) == 0);
    EXPECT(status == refused[i].status && model == NULL);
  }

  const char* const path = TestFile(bytes);
  EXPECT_OK(kinglet_model_open(path, NULL, &model));
  EXPECT(remove(path) == 0);  // the file may vanish
  uint32_t words = 0;
  EXPECT_OK(kinglet_model_vocabulary_size(model, &words));
  EXPECT(words == TEST_WORDS);
  kinglet_model_close(model);
  kinglet_model_close(NULL);
  return NULL;
}

typedef kinglet_status TextFunction(const kinglet_model*, char*, uint64_t, uint64_t*);

// The rule for buffers, on a function that writes `text`.
static const char* TestText(TextFunction function, const kinglet_model* model, const char* text) {
  const uint64_t size = strlen(text) + 1;
  uint64_t needed = 0;
  char buffer[64];
  EXPECT(size < sizeof buffer);
  EXPECT_INVALID(function(NULL, buffer, sizeof buffer, &needed));
  EXPECT(needed == 0);
  EXPECT_OK(function(model, NULL, 0, &needed));
  EXPECT(needed == size);
  EXPECT_OK(function(model, NULL, 0, NULL));
  memset(buffer, '*', sizeof buffer);
  needed = 0;
  EXPECT(function(model, buffer, size - 1, &needed) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT(needed == size && buffer[0] == '*');
  EXPECT(function(model, buffer, 0, NULL) == KINGLET_BUFFER_TOO_SMALL);
  EXPECT_OK(function(model, buffer, size, NULL));
  EXPECT(strcmp(buffer, text) == 0 && buffer[size] == '*');
  return NULL;
}

static kinglet_status FirstWord(const kinglet_model* model, char* buffer, uint64_t capacity,
                                uint64_t* needed) {
  return kinglet_model_token_text(model, 0, buffer, capacity, needed);
}

const char* TestModelsAnswer(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  kinglet_model* ids_only = OpenTest(TEST_MODEL_IDS_ONLY);
  uint32_t words = 0;
  EXPECT_INVALID(kinglet_model_vocabulary_size(NULL, &words));
  EXPECT_INVALID(kinglet_model_vocabulary_size(model, NULL));
  EXPECT_OK(kinglet_model_vocabulary_size(ids_only, &words));
  EXPECT(words == TEST_WORDS);

  uint32_t fact = 77;
  kinglet_model* positioned = OpenTest(TEST_MODEL_POSITIONS);
  EXPECT_INVALID(kinglet_model_start_token(NULL, &fact));
  EXPECT_INVALID(kinglet_model_start_token(model, NULL));
  EXPECT(kinglet_model_start_token(model, &fact) == KINGLET_UNSUPPORTED);
  EXPECT_INVALID(kinglet_model_positions(NULL, &fact));
  EXPECT_INVALID(kinglet_model_positions(model, NULL));
  EXPECT(kinglet_model_positions(model, &fact) == KINGLET_UNSUPPORTED);
  EXPECT(fact == 77);
  EXPECT_OK(kinglet_model_start_token(positioned, &fact));
  EXPECT(fact == 2);
  EXPECT_OK(kinglet_model_positions(positioned, &fact));
  EXPECT(fact == 5);
  kinglet_model_close(positioned);

  int32_t has_words = -1;
  EXPECT_INVALID(kinglet_model_has_words(NULL, &has_words));
  EXPECT_INVALID(kinglet_model_has_words(model, NULL));
  EXPECT_OK(kinglet_model_has_words(model, &has_words));
  EXPECT(has_words == 1);
  EXPECT_OK(kinglet_model_has_words(ids_only, &has_words));
  EXPECT(has_words == 0);

  char text[40];
  EXPECT_PASSES(TestText(FirstWord, model, "the"));
  EXPECT(kinglet_model_token_text(model, TEST_WORDS, text, sizeof text, NULL) ==
         KINGLET_ID_OUT_OF_RANGE);
  EXPECT(kinglet_model_token_text(model, UINT32_MAX, NULL, 0, NULL) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT(kinglet_model_token_text(ids_only, 0, text, sizeof text, NULL) == KINGLET_UNSUPPORTED);

  uint32_t id = 999;
  int32_t spells = 1;
  EXPECT_INVALID(kinglet_model_spells(NULL, &spells));
  EXPECT_INVALID(kinglet_model_spells(model, NULL));
  EXPECT_OK(kinglet_model_spells(model, &spells));
  EXPECT(spells == 0);
  EXPECT_INVALID(kinglet_model_spell(NULL, "the", 3, &id));
  EXPECT_INVALID(kinglet_model_spell(model, NULL, 3, &id));
  EXPECT_INVALID(kinglet_model_spell(model, "the", 3, NULL));
  EXPECT(kinglet_model_spell(model, "the", 3, &id) == KINGLET_UNSUPPORTED);
  EXPECT_INVALID(kinglet_model_find_token(NULL, "the", 3, &id));
  EXPECT_INVALID(kinglet_model_find_token(model, NULL, 3, &id));
  EXPECT_INVALID(kinglet_model_find_token(model, "the", 3, NULL));
  EXPECT_INVALID(kinglet_model_find_token(model, "the", UINT64_MAX, &id));
  EXPECT(kinglet_model_find_token(model, "th", 2, &id) == KINGLET_UNKNOWN_WORD);
  EXPECT(kinglet_model_find_token(model, "the", 4, &id) == KINGLET_UNKNOWN_WORD);  // with its NUL
  EXPECT(kinglet_model_find_token(model, "", 0, &id) == KINGLET_UNKNOWN_WORD);
  EXPECT(kinglet_model_find_token(ids_only, "the", 3, &id) == KINGLET_UNSUPPORTED);
  EXPECT(id == 999);
  EXPECT_OK(kinglet_model_find_token(model, "w3 and more", 2, &id));
  EXPECT(id == 3);

  char digest[33], other[33];
  EXPECT_OK(kinglet_model_digest(model, digest, sizeof digest, NULL));
  EXPECT(strlen(digest) == 32 && strspn(digest, "0123456789abcdef") == 32);
  EXPECT_PASSES(TestText(kinglet_model_digest, model, digest));
  EXPECT_OK(kinglet_model_digest(ids_only, other, sizeof other, NULL));
  EXPECT(strcmp(digest, other) != 0);
  EXPECT_PASSES(TestText(kinglet_model_backend, model, "cpu"));

  uint64_t bytes = 0;
  EXPECT_INVALID(kinglet_model_lane_bytes(NULL, &bytes));
  EXPECT_INVALID(kinglet_model_lane_bytes(model, NULL));
  EXPECT_INVALID(kinglet_model_state_bytes(NULL, &bytes));
  EXPECT_INVALID(kinglet_model_state_bytes(model, NULL));
  EXPECT(bytes == 0);
  EXPECT_OK(kinglet_model_lane_bytes(model, &bytes));
  EXPECT(bytes > 0);
  EXPECT_OK(kinglet_model_state_bytes(model, &bytes));
  EXPECT(bytes > 64);
  kinglet_model_close(ids_only);
  kinglet_model_close(model);
  return NULL;
}
