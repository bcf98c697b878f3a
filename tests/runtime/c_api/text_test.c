#include <string.h>

#include "tests/runtime/c_api/expect.h"

const char* TestTokenize(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_TEXT);
  uint32_t ids[4] = {99, 99, 99, 99};
  uint64_t ranges[8] = {0}, count = 0;
  EXPECT_OK(kinglet_model_tokenize(model, "the w3 qq?", 9, NULL, NULL, 0, &count));
  EXPECT(count == 3);
  EXPECT_OK(kinglet_model_tokenize(model, "the w3 qq?", 9, ids, ranges, 3, &count));
  EXPECT(count == 3 && ids[0] == 0 && ids[1] == 3 && ids[2] == 2 && ids[3] == 99);
  EXPECT(ranges[0] == 0 && ranges[1] == 3 && ranges[4] == 7 && ranges[5] == 9);
  EXPECT_OK(kinglet_model_tokenize(model, "", 0, ids, NULL, 3, &count));
  EXPECT(count == 0);
  EXPECT_OK(kinglet_model_tokenize(model, "\xEF\xBB\xBFthe w3\r", 10, ids, ranges, 3, &count));
  EXPECT(count == 2 && ids[0] == 0 && ids[1] == 3);
  EXPECT(ranges[0] == 3 && ranges[1] == 6 && ranges[2] == 7 && ranges[3] == 9);

  char text[16];
  EXPECT_OK(kinglet_model_detokenize(model, ids, 2, text, sizeof text, &count));
  EXPECT(strcmp(text, "the w3") == 0 && count == 7);
  EXPECT_OK(kinglet_model_detokenize(model, ids, 0, text, sizeof text, NULL));
  EXPECT(strcmp(text, "") == 0);
  kinglet_model_close(model);

  // A model without a tokenizer.
  model = OpenTest(TEST_MODEL_PLAIN);
  EXPECT_OK(kinglet_model_tokenize(model, "the w3 qq?", 9, ids, ranges, 3, &count));
  EXPECT(count == 3 && ids[0] == 0 && ids[1] == 3 && ids[2] == 2 && ranges[5] == 9);
  EXPECT_OK(kinglet_model_detokenize(model, ids, 2, text, sizeof text, &count));
  EXPECT(strcmp(text, "the w3") == 0);
  kinglet_model_close(model);
  return NULL;
}

const char* TestTokenizeErrors(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_TEXT);
  kinglet_model* plain = OpenTest(TEST_MODEL_IDS_ONLY);
  uint32_t ids[4] = {TEST_WORDS, 0, 0, 0};
  uint64_t count = 0;
  char text[4];
  EXPECT_INVALID(kinglet_model_tokenize(NULL, "the", 3, ids, NULL, 4, &count));
  EXPECT_INVALID(kinglet_model_tokenize(model, NULL, 3, ids, NULL, 4, &count));
  EXPECT_INVALID(kinglet_model_tokenize(model, "the", UINT64_MAX, ids, NULL, 4, &count));
  EXPECT(kinglet_model_tokenize(plain, "the", 3, ids, NULL, 4, &count) == KINGLET_UNSUPPORTED);
  EXPECT(kinglet_model_tokenize(model, "the the", 7, ids, NULL, 1, &count) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT(count == 2 && ids[0] == TEST_WORDS);
  EXPECT_INVALID(kinglet_model_detokenize(NULL, ids, 1, text, sizeof text, &count));
  EXPECT_INVALID(kinglet_model_detokenize(model, NULL, 1, text, sizeof text, &count));
  EXPECT_INVALID(kinglet_model_detokenize(model, ids, UINT64_MAX, text, sizeof text, &count));
  EXPECT(kinglet_model_detokenize(model, ids, 1, text, sizeof text, &count) ==
         KINGLET_ID_OUT_OF_RANGE);
  EXPECT(kinglet_model_detokenize(plain, ids, 1, text, sizeof text, &count) == KINGLET_UNSUPPORTED);
  EXPECT(kinglet_model_detokenize(model, ids + 1, 3, text, sizeof text, &count) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT(count == 12);
  kinglet_model_close(plain);
  kinglet_model_close(model);
  return NULL;
}
