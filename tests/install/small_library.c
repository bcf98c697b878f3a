// Opens a model, reads a text and prints every log-probability exactly, then what the memory of the
// process grew by. Linked with the ordinary library and with the small one, for
// small_library_test.py.
//
//   small_library MODEL.kgl TEXT [BACKEND, or archives: makes a compressor,
//                                 or omitted: prints what the functions that it lacks answer]
#include <kinglet/kinglet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "own_memory.h"

enum { MOST_TOKENS = 400, MOST_BYTES = 65536, BEST = 10 };

// The small library makes no decoder and no beam, so that there is none for the other functions.
static void ask_omitted(const kinglet_model* model) {
  kinglet_typing* typing = NULL;
  kinglet_beam* beam = NULL;
#define ASK(function, ...)                                                    \
  do {                                                                        \
    const kinglet_status status = function(__VA_ARGS__);                      \
    printf("%s: %s\n", kinglet_status_name(status), kinglet_error_message()); \
  } while (0)
  ASK(kinglet_typing_create, model, &typing);
  ASK(kinglet_typing_set_blocked, typing, NULL, NULL, 0);
  ASK(kinglet_typing_set_allowed, typing, NULL, NULL, 0);
  ASK(kinglet_typing_prepare, typing, NULL, 0);
  ASK(kinglet_typing_find, typing, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL,
      NULL);
  ASK(kinglet_typing_open_words, typing, "words");
  ASK(kinglet_typing_learn, typing, NULL, "word");
  ASK(kinglet_typing_unlearn, typing, "word", NULL);
  ASK(kinglet_typing_forget, typing);
  ASK(kinglet_typing_list, typing, 0, NULL, 0, NULL, NULL, NULL, NULL);
  ASK(kinglet_typing_set_weights, typing, 0, 0);
  ASK(kinglet_beam_create, model, NULL, &beam);
  ASK(kinglet_beam_begin, beam, NULL, NULL);
  ASK(kinglet_beam_step, beam, NULL, NULL, 0, NULL);
  ASK(kinglet_beam_hold, beam, NULL, 0);
  ASK(kinglet_beam_drop, beam, NULL, 0);
  ASK(kinglet_beam_tokens, beam, 0, NULL, 0, NULL);
  ASK(kinglet_beam_save, beam, 0, NULL);
  ASK(kinglet_beam_log_probability, beam, NULL, NULL, 0, NULL);
  ASK(kinglet_beam_log_probabilities, beam, NULL, 0, NULL, 0);
  ASK(kinglet_beam_top_k, beam, NULL, 0, 1, NULL, NULL, 0, NULL);
  ASK(kinglet_beam_stepped, beam, NULL);
  ASK(kinglet_beam_cancel, beam);
  ASK(kinglet_session_score_tree, NULL, NULL, NULL, 0, NULL, NULL);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  static char text[MOST_BYTES];
  FILE* const file = fopen(argv[2], "rb");
  if (file == NULL) return 2;
  const size_t bytes = fread(text, 1, sizeof text, file);
  fclose(file);

  const long before = private_bytes();
  kinglet_model_options options;
  check(kinglet_model_options_init(&options, sizeof options));
  const int archives = argc > 3 && strcmp(argv[3], "archives") == 0;
  const int asks = argc > 3 && strcmp(argv[3], "omitted") == 0;
  if (argc > 3 && !archives && !asks) options.backend = argv[3];
  kinglet_model* model = NULL;
  check(kinglet_model_open(argv[1], &options, &model));
  if (asks) {
    ask_omitted(model);
    kinglet_model_close(model);
    return 0;
  }
  if (archives) {
    kinglet_coder* coder = NULL;
    check(kinglet_compressor_create(model, NULL, &coder));
    kinglet_coder_destroy(coder);
  }
  kinglet_session* session = NULL;
  check(kinglet_session_create(model, NULL, &session));
  uint64_t needed = 0;
  check(kinglet_model_tokenize(model, text, bytes, NULL, NULL, 0, &needed));
  uint32_t* const ids = malloc(needed * sizeof *ids);
  if (ids == NULL) return 2;
  check(kinglet_model_tokenize(model, text, bytes, ids, NULL, needed, NULL));
  if (needed > MOST_TOKENS) needed = MOST_TOKENS;

  for (uint64_t i = 0; i < needed; ++i) {
    double log_probability = 0, best[BEST];
    uint32_t found[BEST], count = 0;
    if (i > 0) check(kinglet_session_log_probability(session, 0, ids[i], &log_probability));
    check(kinglet_session_step(session, 0, ids[i]));
    check(kinglet_session_top_k(session, 0, BEST, found, best, BEST, &count));
    printf("%u %a", ids[i], log_probability);
    for (uint32_t b = 0; b < count; ++b) printf(" %u %a", found[b], best[b]);
    putchar('\n');
  }
  check(kinglet_session_reset(session, 0));
  printf("grown %ld kB\n", (private_bytes() - before) / 1024);
  free(ids);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return 0;
}
