// Feeds a text to a model, word by word, and prints the most probable next words after each.
//
//   stream MODEL.kgl [TEXT]        TEXT is a file of words separated by white space; default: stdin
//
// As in WikiText-2, every line ends with the token <eos>, and words that are not in the model's
// vocabulary become <unk>.
#define _POSIX_C_SOURCE 200112L  // clock_gettime

#include <kinglet/kinglet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BEST = 3, LONGEST_WORD = 4096 };

// Ends this program if a call failed.
static void check(kinglet_status status) {
  if (status != KINGLET_OK) {
    fprintf(stderr, "stream: %s: %s\n", kinglet_status_name(status), kinglet_error_message());
    exit(1);
  }
}

static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

// Reads the next token to `word`: a word, or <eos> where a line ends. Returns its length; 0 at the
// end of the text.
static size_t next_token(FILE* text, int* in_line, char word[LONGEST_WORD]) {
  size_t length = 0;
  for (;;) {
    const int c = getc(text);
    const int line_ends = c == '\n' || c == EOF;
    if (!line_ends && strchr(" \t\r\f\v", c) == NULL) {
      if (length < LONGEST_WORD) word[length++] = (char)c;
      *in_line = 1;
    } else if (length > 0) {
      if (line_ends) ungetc(c, text);
      return length;
    } else if (c == '\n' || (c == EOF && *in_line)) {
      *in_line = 0;
      memcpy(word, "<eos>", 5);
      return 5;
    } else if (c == EOF) {
      return 0;
    }
  }
}

static uint32_t token_id(const kinglet_model* model, const char* word, size_t length) {
  uint32_t id = 0;
  const kinglet_status status = kinglet_model_find_token(model, word, length, &id);
  check(status == KINGLET_UNKNOWN_WORD ? kinglet_model_find_token(model, "<unk>", 5, &id) : status);
  return id;
}

static void print_expectations(const kinglet_model* model, uint32_t token, uint32_t count,
                               const uint32_t* ids, const double* log_probabilities) {
  char word[LONGEST_WORD];
  check(kinglet_model_token_text(model, token, word, sizeof word, NULL));
  printf("%-20s", word);
  for (uint32_t i = 0; i < count; ++i) {
    check(kinglet_model_token_text(model, ids[i], word, sizeof word, NULL));
    printf("  %-14s %5.1f%%", word, 100 * exp(log_probabilities[i]));
  }
  printf("\n");
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: stream MODEL.kgl [TEXT]\n");
    return 2;
  }
  FILE* text = argc == 3 ? fopen(argv[2], "rb") : stdin;
  if (text == NULL) {
    fprintf(stderr, "stream: cannot read %s\n", argv[2]);
    return 1;
  }

  kinglet_model* model = NULL;
  kinglet_session* session = NULL;
  check(kinglet_model_open(argv[1], NULL, &model));
  check(kinglet_session_create(model, NULL, &session));

  char word[LONGEST_WORD];
  size_t length = 0;
  int in_line = 0;
  uint64_t tokens = 0;
  double negative_log_likelihood = 0;
  double busy = 0;
  while ((length = next_token(text, &in_line, word)) > 0) {
    const uint32_t token = token_id(model, word, length);
    uint32_t ids[BEST];
    uint32_t count = 0;
    double best[BEST];
    double log_probability = 0;

    const double start = microseconds();
    if (tokens > 0) check(kinglet_session_log_probability(session, 0, token, &log_probability));
    check(kinglet_session_step(session, 0, token));
    check(kinglet_session_top_k(session, 0, BEST, ids, best, BEST, &count));
    busy += microseconds() - start;

    negative_log_likelihood -= log_probability;
    ++tokens;
    print_expectations(model, token, count, ids, best);
  }

  if (ferror(text)) {
    fprintf(stderr, "stream: cannot read the text\n");
    return 1;
  }
  if (tokens > 1) {  // the first token has no prediction
    const double mean = negative_log_likelihood / (double)(tokens - 1);
    printf("\n%llu tokens, mean negative log-likelihood %.4f, perplexity %.2f, %.1f us per token\n",
           (unsigned long long)tokens, mean, exp(mean), busy / (double)tokens);
  }
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  if (text != stdin) fclose(text);
  return 0;
}
