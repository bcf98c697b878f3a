// Prints the most probable continuations of a text, found by beam search.
//
//   beam MODEL.kgl WORD...         for example: beam model.kgl the war of
//
// A hypothesis is a number. Extending one costs nothing; the query for the best next words runs the
// network for all hypotheses together, so that each weight of the model is read once for the whole
// beam.
#include <kinglet/kinglet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEAM = 4, WORDS = 5, LONGEST_WORD = 4096 };

// A continuation, its log-probability and its last word.
typedef struct {
  double log_probability;
  uint64_t number;
  uint32_t word;
} hypothesis;

static void check(kinglet_status status) {
  if (status != KINGLET_OK) {
    fprintf(stderr, "beam: %s: %s\n", kinglet_status_name(status), kinglet_error_message());
    exit(1);
  }
}

static int more_probable_first(const void* a, const void* b) {
  const double x = ((const hypothesis*)a)->log_probability;
  const double y = ((const hypothesis*)b)->log_probability;
  return (x < y) - (x > y);
}

// Extends each of `count` hypotheses by its BEAM most probable next words, and keeps the BEAM best
// of all extensions. Returns how many are kept.
static uint32_t extend(kinglet_beam* search, hypothesis* beam, uint32_t count) {
  hypothesis all[BEAM * BEAM];
  uint64_t from[BEAM], to[BEAM];
  uint32_t ids[BEAM * BEAM], each = 0, n = 0;
  double log_probabilities[BEAM * BEAM];
  for (uint32_t i = 0; i < count; ++i) from[i] = beam[i].number;
  check(kinglet_beam_top_k(search, from, count, BEAM, ids, log_probabilities, BEAM * BEAM, &each));
  for (; n < count * each; ++n) {
    all[n] = (hypothesis){beam[n / each].log_probability + log_probabilities[n],
                          beam[n / each].number, ids[n]};
  }
  qsort(all, n, sizeof *all, more_probable_first);
  const uint32_t kept = n < BEAM ? n : BEAM;
  uint64_t before[BEAM];
  for (uint32_t i = 0; i < kept; ++i) {
    before[i] = all[i].number;
    ids[i] = all[i].word;
  }
  check(kinglet_beam_step(search, before, ids, kept, to));
  check(kinglet_beam_drop(search, from, count));
  for (uint32_t i = 0; i < kept; ++i) {
    beam[i] = all[i];
    beam[i].number = to[i];
  }
  return kept;
}

// Prints the words after the first `given`.
static void print(const kinglet_model* model, const kinglet_beam* search, const hypothesis* of,
                  uint64_t given) {
  uint64_t count = 0;
  check(kinglet_beam_tokens(search, of->number, NULL, 0, &count));
  uint32_t* ids = malloc(count * sizeof *ids);
  if (ids == NULL) exit(1);
  check(kinglet_beam_tokens(search, of->number, ids, count, NULL));
  printf("%8.4f%%", 100 * exp(of->log_probability));
  for (uint64_t i = given; i < count; ++i) {
    char word[LONGEST_WORD];
    check(kinglet_model_token_text(model, ids[i], word, sizeof word, NULL));
    printf(" %s", word);
  }
  printf("\n");
  free(ids);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: beam MODEL.kgl WORD...\n");
    return 2;
  }
  kinglet_model* model = NULL;
  kinglet_beam* search = NULL;
  check(kinglet_model_open(argv[1], NULL, &model));
  check(kinglet_beam_create(model, NULL, &search));

  hypothesis beam[BEAM] = {{.log_probability = 0}};
  check(kinglet_beam_begin(search, NULL, &beam[0].number));
  for (int i = 2; i < argc; ++i) {
    uint32_t id = 0;
    check(kinglet_model_find_token(model, argv[i], strlen(argv[i]), &id));
    check(kinglet_beam_step(search, &beam[0].number, &id, 1, &beam[0].number));
  }
  uint32_t count = 1;
  for (int length = 0; length < WORDS; ++length) count = extend(search, beam, count);
  for (uint32_t i = 0; i < count; ++i) print(model, search, &beam[i], (uint64_t)argc - 2);

  kinglet_beam_destroy(search);
  kinglet_model_close(model);
  return 0;
}
