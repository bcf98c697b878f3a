// Prints the most probable continuations of a text, found by beam search.
//
//   beam MODEL.kgl WORD...         for example: beam model.kgl the war of
//
// Each hypothesis is a stream in a lane of one session. One step extends all hypotheses together,
// so that each weight of the model is read once for the whole beam. After each step, states copy
// the streams of the hypotheses that are kept to lanes of their own; states share the memory in
// which they are equal.
#include <kinglet/kinglet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEAM = 4, WORDS = 5, LONGEST_WORD = 4096 };

// The words of a continuation, their log-probability and the lane that holds its stream.
typedef struct {
  double log_probability;
  uint32_t lane;
  uint32_t words[WORDS];
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

// Extends each of `count` hypotheses of `length` words by its BEAM most probable next words, and
// keeps the BEAM best of all extensions. Returns how many are kept.
static uint32_t extend(kinglet_session* session, hypothesis* beam, uint32_t count,
                       uint32_t length) {
  hypothesis all[BEAM * BEAM];
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t ids[BEAM], found = 0;
    double log_probabilities[BEAM];
    check(kinglet_session_top_k(session, beam[i].lane, BEAM, ids, log_probabilities, BEAM, &found));
    for (uint32_t j = 0; j < found; ++j, ++n) {
      all[n] = beam[i];
      all[n].log_probability += log_probabilities[j];
      all[n].words[length] = ids[j];
    }
  }
  qsort(all, n, sizeof *all, more_probable_first);
  count = n < BEAM ? n : BEAM;
  memcpy(beam, all, count * sizeof *beam);
  return count;
}

// Gives each hypothesis a lane of its own: lane i to hypothesis i.
static void spread(kinglet_session* session, hypothesis* beam, uint32_t count) {
  kinglet_state* states[BEAM];
  for (uint32_t i = 0; i < count; ++i)
    check(kinglet_session_save(session, beam[i].lane, &states[i]));
  for (uint32_t i = 0; i < count; ++i) {
    check(kinglet_session_restore(session, i, states[i]));
    kinglet_state_destroy(states[i]);
    beam[i].lane = i;
  }
}

static void print(const kinglet_model* model, const hypothesis* of) {
  printf("%8.4f%%", 100 * exp(of->log_probability));
  for (uint32_t i = 0; i < WORDS; ++i) {
    char word[LONGEST_WORD];
    check(kinglet_model_token_text(model, of->words[i], word, sizeof word, NULL));
    printf(" %s", word);
  }
  printf("\n");
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: beam MODEL.kgl WORD...\n");
    return 2;
  }
  kinglet_model* model = NULL;
  kinglet_session* session = NULL;
  kinglet_session_options options;
  check(kinglet_session_options_init(&options, sizeof options));
  options.lanes = BEAM;
  check(kinglet_model_open(argv[1], NULL, &model));
  check(kinglet_session_create(model, &options, &session));

  for (int i = 2; i < argc; ++i) {
    uint32_t id = 0;
    check(kinglet_model_find_token(model, argv[i], strlen(argv[i]), &id));
    check(kinglet_session_step(session, 0, id));
  }
  hypothesis beam[BEAM] = {{.log_probability = 0, .lane = 0}};
  uint32_t count = extend(session, beam, 1, 0);
  for (uint32_t length = 1; length < WORDS; ++length) {
    uint32_t lanes[BEAM], ids[BEAM];
    spread(session, beam, count);
    for (uint32_t i = 0; i < count; ++i) {
      lanes[i] = beam[i].lane;
      ids[i] = beam[i].words[length - 1];
    }
    check(kinglet_session_step_lanes(session, lanes, ids, count));
    count = extend(session, beam, count, length);
  }
  for (uint32_t i = 0; i < count; ++i) print(model, &beam[i]);

  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return 0;
}
