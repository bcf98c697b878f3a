#include <math.h>

#include "tests/runtime/c_api/expect.h"

enum { V = TEST_WORDS, WIDTH = 6, CLASSES = 4 };

static kinglet_embedding* Embed(enum test_model which) {
  kinglet_model* model = OpenTest(which);
  kinglet_embedding* embedding = NULL;
  kinglet_embedding_create(model, &embedding);
  kinglet_model_close(model);  // the embedding outlives the handle
  return embedding;
}

const char* TestEmbeddings(void) {
  kinglet_embedding* embedding = Embed(TEST_MODEL_CLASSIFIER);
  uint32_t width = 0, classes = 0;
  EXPECT_OK(kinglet_embedding_width(embedding, &width));
  EXPECT_OK(kinglet_embedding_classes(embedding, &classes));
  EXPECT(width == WIDTH && classes == CLASSES);
  const uint32_t ids[] = {22, 0, 22};
  float vectors[3 * WIDTH + 1], one[WIDTH];
  vectors[3 * WIDTH] = 5;
  EXPECT_OK(kinglet_embedding_vectors(embedding, ids, 3, vectors, 3 * WIDTH + 1));
  EXPECT(vectors[3 * WIDTH] == 5);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_OK(kinglet_embedding_vectors(embedding, ids + i, 1, one, WIDTH));
    for (uint32_t j = 0; j < WIDTH; ++j) EXPECT(vectors[i * WIDTH + j] == one[j]);
  }
  EXPECT(vectors[0] != vectors[WIDTH]);
  EXPECT_OK(kinglet_embedding_vectors(embedding, NULL, 0, NULL, 0));

  // The scores of a list; padding, word 0, changes nothing.
  const uint32_t list[] = {3, 9, 3}, padded[] = {3, 0, 9, 3, 0};
  double logits[CLASSES + 1], same[CLASSES], log_probabilities[CLASSES];
  logits[CLASSES] = 5;
  EXPECT_OK(kinglet_embedding_classify(embedding, list, 3, logits, log_probabilities, CLASSES + 1));
  EXPECT(logits[CLASSES] == 5);
  EXPECT_OK(kinglet_embedding_classify(embedding, padded, 5, same, NULL, CLASSES));
  double sum = 0;
  for (int i = 0; i < CLASSES; ++i) {
    EXPECT(logits[i] == same[i]);
    EXPECT(fabs(logits[i] - logits[0] - (log_probabilities[i] - log_probabilities[0])) < 1e-5);
    sum += exp(log_probabilities[i]);
  }
  EXPECT(fabs(sum - 1) < 1e-6);
  EXPECT_OK(kinglet_embedding_classify(embedding, list, 3, NULL, same, CLASSES));
  EXPECT(same[0] == log_probabilities[0]);
  EXPECT_OK(kinglet_embedding_classify(embedding, list, 3, NULL, NULL, 0));
  kinglet_embedding_destroy(embedding);
  kinglet_embedding_destroy(NULL);

  embedding = Embed(TEST_MODEL_CACHE);  // any model has vectors
  EXPECT_OK(kinglet_embedding_classes(embedding, &classes));
  EXPECT_OK(kinglet_embedding_width(embedding, &width));
  EXPECT(classes == 0 && width == 8);
  kinglet_embedding_destroy(embedding);
  return NULL;
}

const char* TestEmbeddingErrors(void) {
  kinglet_model* model = OpenTest(TEST_MODEL_CLASSIFIER);
  kinglet_session* session = NULL;
  kinglet_embedding* embedding = NULL;
  EXPECT(kinglet_session_create(model, NULL, &session) == KINGLET_UNSUPPORTED && session == NULL);
  EXPECT_INVALID(kinglet_embedding_create(NULL, &embedding));
  EXPECT_INVALID(kinglet_embedding_create(model, NULL));
  kinglet_model_close(model);
  EXPECT(embedding == NULL);
  embedding = Embed(TEST_MODEL_CLASSIFIER);

  uint32_t number = 99;
  float vector[WIDTH] = {5}, many[2 * WIDTH] = {5};
  double scores[CLASSES] = {5};
  const uint32_t ids[] = {1, V}, padding[] = {0, 0};
  EXPECT_INVALID(kinglet_embedding_width(NULL, &number));
  EXPECT_INVALID(kinglet_embedding_width(embedding, NULL));
  EXPECT_INVALID(kinglet_embedding_classes(NULL, &number));
  EXPECT_INVALID(kinglet_embedding_classes(embedding, NULL));
  EXPECT_INVALID(kinglet_embedding_vectors(NULL, ids, 1, vector, WIDTH));
  EXPECT_INVALID(kinglet_embedding_vectors(embedding, NULL, 1, vector, WIDTH));
  EXPECT_INVALID(kinglet_embedding_vectors(embedding, ids, 1, NULL, WIDTH));
  EXPECT_INVALID(kinglet_embedding_vectors(embedding, ids, UINT64_MAX, vector, UINT64_MAX));
  EXPECT(kinglet_embedding_vectors(embedding, ids, 1, vector, WIDTH - 1) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT(kinglet_embedding_vectors(embedding, ids, 2, many, 2 * WIDTH) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT_INVALID(kinglet_embedding_classify(NULL, ids, 1, scores, NULL, CLASSES));
  EXPECT_INVALID(kinglet_embedding_classify(embedding, NULL, 1, scores, NULL, CLASSES));
  EXPECT_INVALID(kinglet_embedding_classify(embedding, NULL, 0, scores, NULL, CLASSES));
  EXPECT_INVALID(kinglet_embedding_classify(embedding, padding, 2, scores, NULL, CLASSES));
  EXPECT_INVALID(kinglet_embedding_classify(embedding, ids, UINT64_MAX, scores, NULL, CLASSES));
  EXPECT(kinglet_embedding_classify(embedding, ids, 1, NULL, scores, CLASSES - 1) ==
         KINGLET_BUFFER_TOO_SMALL);
  EXPECT(kinglet_embedding_classify(embedding, ids, 2, scores, NULL, CLASSES) ==
         KINGLET_ID_OUT_OF_RANGE);
  EXPECT(number == 99 && vector[0] == 5 && many[0] == 5 && scores[0] == 5);
  kinglet_embedding_destroy(embedding);

  embedding = Embed(TEST_MODEL_PLAIN);
  EXPECT(kinglet_embedding_classify(embedding, ids, 1, NULL, NULL, 0) == KINGLET_UNSUPPORTED);
  kinglet_embedding_destroy(embedding);
  embedding = Embed(TEST_MODEL_OVERFLOWS);
  float wide[8] = {5};
  EXPECT(kinglet_embedding_vectors(embedding, ids, 1, wide, 8) == KINGLET_NOT_FINITE);
  EXPECT(wide[0] == 5);
  kinglet_embedding_destroy(embedding);
  return NULL;
}
