// All words at once, and the special ones.
#include <string.h>

#include "tests/runtime/c_api/expect.h"

const char* TestAllTexts(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  kinglet_model* ids_only = OpenTest(TEST_MODEL_IDS_ONLY);
  enum { ROOM = 256 };
  char texts[ROOM], one[ROOM];
  uint64_t offsets[TEST_WORDS + 2], needed = 0, length = 0;
  EXPECT_INVALID(kinglet_model_token_texts(NULL, NULL, 0, &needed, NULL));
  EXPECT(kinglet_model_token_texts(ids_only, NULL, 0, &needed, NULL) == KINGLET_UNSUPPORTED);
  EXPECT(needed == 0);
  memset(texts, '*', sizeof texts);
  memset(offsets, 7, sizeof offsets);
  const uint64_t untouched = offsets[0];
  EXPECT_OK(kinglet_model_token_texts(model, NULL, 0, &needed, offsets));
  EXPECT(needed > TEST_WORDS && needed < ROOM && offsets[0] == untouched);
  const uint64_t size = needed;
  needed = 0;
  EXPECT(kinglet_model_token_texts(model, texts, size - 1, &needed, offsets) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT(needed == size && texts[0] == '*' && offsets[0] == untouched);
  EXPECT_OK(kinglet_model_token_texts(model, texts, size, NULL, NULL));
  EXPECT_OK(kinglet_model_token_texts(model, texts, size, NULL, offsets));
  EXPECT(texts[size] == '*' && offsets[0] == 0 && offsets[TEST_WORDS] == size);
  EXPECT(offsets[TEST_WORDS + 1] == untouched);
  for (uint32_t id = 0; id < TEST_WORDS; ++id) {
    EXPECT_OK(kinglet_model_token_text(model, id, one, sizeof one, &length));
    EXPECT(offsets[id + 1] - offsets[id] == length);
    EXPECT(memcmp(texts + offsets[id], one, length) == 0);
  }
  kinglet_model_close(ids_only);
  kinglet_model_close(model);
  return NULL;
}

const char* TestSpecialTokens(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_CACHE);
  kinglet_model* ids_only = OpenTest(TEST_MODEL_IDS_ONLY);
  kinglet_model* positioned = OpenTest(TEST_MODEL_POSITIONS);
  uint32_t id = 99;
  EXPECT_INVALID(kinglet_model_special_token(NULL, KINGLET_TOKEN_UNKNOWN, &id));
  EXPECT_INVALID(kinglet_model_special_token(model, KINGLET_TOKEN_UNKNOWN, NULL));
  const uint32_t unheard[] = {0, 4, UINT32_MAX};
  for (size_t i = 0; i < 3; ++i)
    EXPECT_INVALID(kinglet_model_special_token(model, unheard[i], &id));
  for (uint32_t which = KINGLET_TOKEN_UNKNOWN; which <= KINGLET_TOKEN_END_OF_LINE; ++which) {
    EXPECT(kinglet_model_special_token(ids_only, which, &id) == KINGLET_UNSUPPORTED);
  }
  EXPECT(id == 99);
  EXPECT_OK(kinglet_model_special_token(model, KINGLET_TOKEN_UNKNOWN, &id));
  EXPECT(id == 2);
  EXPECT_OK(kinglet_model_special_token(model, KINGLET_TOKEN_BEGIN, &id));
  EXPECT(id == 1);
  EXPECT_OK(kinglet_model_special_token(model, KINGLET_TOKEN_END_OF_LINE, &id));
  EXPECT(id == 1);
  EXPECT_OK(kinglet_model_special_token(positioned, KINGLET_TOKEN_BEGIN, &id));
  EXPECT(id == 2);  // the start token
  kinglet_model_close(positioned);
  kinglet_model_close(ids_only);
  kinglet_model_close(model);
  return NULL;
}
