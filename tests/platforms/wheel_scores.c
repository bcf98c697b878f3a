// Prints the bits of what the library computes with the demo model: the log-probabilities of 300
// words, and after them those of the ten best.
//
//   wheel_scores MODEL.kgl
#include <inttypes.h>
#include <kinglet/kinglet.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 300, BEST = 10 };

static void print(uint32_t id, double value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  printf("%" PRIu32 " %016" PRIx64 "\n", id, bits);
}

int main(int argc, char** argv) {
  kinglet_model* model = NULL;
  kinglet_session* session = NULL;
  uint32_t ids[WORDS], best[BEST];
  double scores[WORDS], best_scores[BEST];
  for (uint32_t i = 0; i < WORDS; ++i) ids[i] = (i + 1) * 7919 % 33278;
  kinglet_status status = kinglet_model_open(argc > 1 ? argv[1] : "", NULL, &model);
  if (!status) status = kinglet_session_create(model, NULL, &session);
  if (!status) status = kinglet_session_step_many(session, 0, ids, WORDS, scores, NULL);
  if (!status) status = kinglet_session_top_k(session, 0, BEST, best, best_scores, BEST, NULL);
  if (status) {
    fprintf(stderr, "%s\n", kinglet_error_message());
    return 1;
  }
  for (int i = 1; i < WORDS; ++i) print(ids[i], scores[i]);
  for (int i = 0; i < BEST; ++i) print(best[i], best_scores[i]);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return 0;
}
