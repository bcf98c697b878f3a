#include "tests/runtime/c_api_test.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kinglet/kinglet.h"

// Option structures are part of the binary interface: their layout may grow, never change.
_Static_assert(sizeof(kinglet_status) == 4, "status is 32 bits");
_Static_assert(offsetof(kinglet_model_options, struct_size) == 0, "first");
_Static_assert(offsetof(kinglet_model_options, reserved) == 4, "fixed");
_Static_assert(offsetof(kinglet_model_options, session_memory_limit) == 8, "fixed");
_Static_assert(offsetof(kinglet_model_options, backend) == 16, "fixed");
_Static_assert(sizeof(kinglet_model_options) == 16 + sizeof(uint64_t), "no padding at the end");
_Static_assert(offsetof(kinglet_session_options, struct_size) == 0, "first");
_Static_assert(offsetof(kinglet_session_options, empty_cache) == 4, "fixed");
_Static_assert(sizeof(kinglet_session_options) == 8, "no padding at the end");

#define EXPECT(condition)                \
  do {                                   \
    if (!(condition)) return #condition; \
  } while (0)

const char* UseInterfaceFromC(const void* bytes, uint64_t size) {
  kinglet_model_options model_options;
  EXPECT(kinglet_model_options_init(&model_options, sizeof model_options) == KINGLET_OK);
  EXPECT(model_options.struct_size == sizeof model_options && model_options.backend == NULL);
  model_options.backend = "ref";
  kinglet_model* model = NULL;
  EXPECT(kinglet_model_open_memory(bytes, size, &model_options, &model) == KINGLET_OK);

  uint32_t words = 0;
  EXPECT(kinglet_model_vocabulary_size(model, &words) == KINGLET_OK && words > 3);
  uint32_t the = 0;
  EXPECT(kinglet_model_find_token(model, "the", strlen("the"), &the) == KINGLET_OK);
  char text[16];
  uint64_t needed = 0;
  EXPECT(kinglet_model_token_text(model, the, text, sizeof text, &needed) == KINGLET_OK);
  EXPECT(needed == 4 && strcmp(text, "the") == 0);

  kinglet_session_options session_options;
  EXPECT(kinglet_session_options_init(&session_options, sizeof session_options) == KINGLET_OK);
  kinglet_session* session = NULL;
  EXPECT(kinglet_session_create(model, &session_options, &session) == KINGLET_OK);
  kinglet_model_close(model);

  EXPECT(kinglet_session_step(session, the) == KINGLET_OK);
  float* all = malloc(words * sizeof *all);
  EXPECT(all != NULL);
  EXPECT(kinglet_session_log_probabilities(session, all, words) == KINGLET_OK);
  double total = 0;
  for (uint32_t i = 0; i < words; ++i) total += exp(all[i]);
  EXPECT(fabs(total - 1) < 1e-5);
  uint32_t best[2] = {0, 0};
  double log_probabilities[2] = {0, 0};
  uint32_t count = 0;
  EXPECT(kinglet_session_top_k(session, 2, best, log_probabilities, 2, &count) == KINGLET_OK);
  EXPECT(count == 2 && best[0] != best[1] && log_probabilities[0] >= log_probabilities[1]);
  EXPECT((double)all[best[0]] == log_probabilities[0]);
  double again = 0;
  EXPECT(kinglet_session_log_probability(session, best[1], &again) == KINGLET_OK);
  EXPECT(again == log_probabilities[1]);
  free(all);

  EXPECT(kinglet_session_step(session, words) == KINGLET_ID_OUT_OF_RANGE);
  EXPECT(strlen(kinglet_error_message()) > 0);
  uint64_t position = 0;
  EXPECT(kinglet_session_position(session, &position) == KINGLET_OK && position == 1);
  kinglet_session_destroy(session);
  return NULL;
}
