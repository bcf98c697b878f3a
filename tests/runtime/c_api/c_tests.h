// The tests of the C interface that are written in strict C11, and the models that they use. Each
// test returns NULL, or the place and text of the first expectation that failed.
#ifndef KINGLET_TESTS_RUNTIME_C_API_C_TESTS_H_
#define KINGLET_TESTS_RUNTIME_C_API_C_TESTS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A model file's bytes, valid until the process ends; the tiny models of
// tests/support/model_builder.h with 23 words "the", "<eos>", "<unk>", "w3", ...
typedef struct test_bytes {
  const void* data;
  uint64_t size;
} test_bytes;

enum test_model {
  TEST_MODEL_PLAIN,
  TEST_MODEL_CACHE,  // a neural cache of 4 words
  TEST_MODEL_OTHER,  // the same shape, other weights
  TEST_MODEL_IDS_ONLY,
  TEST_MODEL_OVERFLOWS,           // its own values are not finite
  TEST_MODEL_DAMAGED,             // a flipped bit
  TEST_MODEL_OF_ANOTHER_VERSION,  // format version 2
  TEST_MODEL_SENSELESS,           // undamaged, but its description is invalid
  TEST_MODEL_CLASSIFIER,          // no language model: vectors of 6 and 4 classes, padding word 0
  TEST_MODEL_POSITIONS,           // start token 2, five positions; 17 words
  TEST_MODEL_TRANSLATION,         // an encoder of 7 positions, words "s0", "s1", ..; "<s>" is 2
  TEST_MODEL_TEXT,                // contains a tokenizer that splits at spaces
  // Masked models of 9 positions, 2 segments and 17 words "[PAD]", "[UNK]", "[CLS]", "[SEP]",
  // "[MASK]", "t5", ...
  TEST_MODEL_MASKED,          // predicts words; a pooled vector of 8, and 3 classes
  TEST_MODEL_MASKED_WORDS,    // predicts words only
  TEST_MODEL_MASKED_ANSWERS,  // finds answers only
  TEST_MODEL_MASKED_OVERFLOWS,
  TEST_MODELS,
};
enum { TEST_WORDS = 23, TEST_SOURCE_WORDS = 13 };

test_bytes TestModel(enum test_model which);
// Writes these bytes to a temporary file. The caller removes it.
const char* TestFile(test_bytes bytes);
// An n-gram file of bigrams, which the caller removes: log10 of "w3" is -1, with the back-off
// weight 0.5; of "<s> w3" -0.25; of <unk> -2.
const char* TestNgramFile(void);

const char* TestAllTexts(void);
const char* TestArchives(void);
const char* TestArchiveErrors(void);
const char* TestBeams(void);
const char* TestBeamErrors(void);
const char* TestDrawOptions(void);
const char* TestDraws(void);
const char* TestEmbeddings(void);
const char* TestEmbeddingErrors(void);
const char* TestGeneration(void);
const char* TestGenerationErrors(void);
const char* TestLaneQueries(void);
const char* TestLaneQueryErrors(void);
const char* TestLibrary(void);
const char* TestMasked(void);
const char* TestMaskedAnswers(void);
const char* TestMaskedErrors(void);
const char* TestModelOptions(void);
const char* TestModelsOpen(void);
const char* TestModelsAnswer(void);
const char* TestScorers(void);
const char* TestSessionOptions(void);
const char* TestMemoryLimits(void);
const char* TestSessions(void);
const char* TestSessionOutlivesHandle(void);
const char* TestCancel(void);
const char* TestCancelFromAnotherThread(void);
const char* TestQueries(void);
const char* TestQueryErrors(void);
const char* TestTemperatures(void);
const char* TestWordQueries(void);
const char* TestWordQueryErrors(void);
const char* TestTextQueries(void);
const char* TestTextQueryErrors(void);
const char* TestWork(void);
const char* TestNgrams(void);
const char* TestNgramErrors(void);
const char* TestNotFinite(void);
const char* TestSources(void);
const char* TestSpecialTokens(void);
const char* TestSourceErrors(void);
const char* TestTokenize(void);
const char* TestTokenizeErrors(void);
const char* TestTrees(void);
const char* TestManySteps(void);
const char* TestTreeErrors(void);
const char* TestTyping(void);
const char* TestTypingErrors(void);
const char* TestStates(void);
const char* TestStateBytes(void);
const char* TestStateErrors(void);

#ifdef __cplusplus
}
#endif

#endif  // KINGLET_TESTS_RUNTIME_C_API_C_TESTS_H_
