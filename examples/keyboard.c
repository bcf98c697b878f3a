// A keyboard's words: completes each word of a sentence as its letters come, and learns it.
//
//   keyboard MODEL.kgl WORDS SENTENCE      WORDS: a file of the person's own words, made if missing
#include <kinglet/kinglet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 3, MOST = 64 };  // words; letters of one

static void check(kinglet_status status) {
  if (status == KINGLET_OK) return;
  fprintf(stderr, "keyboard: %s: %s\n", kinglet_status_name(status), kinglet_error_message());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: keyboard MODEL.kgl WORDS SENTENCE\n"), 2;
  kinglet_model* model;
  kinglet_session* session;
  kinglet_typing* typing;
  check(kinglet_model_open(argv[1], NULL, &model));
  check(kinglet_session_create(model, NULL, &session));
  check(kinglet_typing_create(model, &typing));
  check(kinglet_typing_open_words(typing, argv[2]));
  check(kinglet_session_step(session, 0, 0));  // a token before the sentence

  // A keyboard gives each touch the keys around it: distance^2 / (2 deviation^2) of each. Here a
  // touch is the letter itself, at no cost.
  uint32_t begins[MOST + 1] = {0}, characters[MOST], ids[MOST], found;
  double costs[MOST] = {0};
  uint64_t offsets[SHOWN + 1], tokens;
  char texts[1024];
  kinglet_typing_input input;
  check(kinglet_typing_input_init(&input, sizeof input));
  input.begins = begins;
  input.characters = characters;
  input.costs = costs;
  input.deadline = 50000;  // microseconds
  for (char* word = strtok(argv[3], " "); word != NULL; word = strtok(NULL, " ")) {
    const uint32_t length = (uint32_t)strlen(word);
    for (uint32_t count = input.touches = 0; count < length && count < MOST; ++count) {
      check(kinglet_typing_find(typing, session, 0, &input, SHOWN, texts, sizeof texts, NULL,
                                offsets, NULL, NULL, NULL, &found, NULL));
      printf("%-16.*s", (int)count, word);
      for (uint32_t i = 0; i < found; ++i) printf("  %s", texts + offsets[i]);
      printf("\n");
      characters[count] = (unsigned char)word[count];  // ASCII
      begins[count + 1] = input.touches = count + 1;
    }
    check(kinglet_model_tokenize(model, word, length, ids, NULL, MOST, &tokens));
    for (uint64_t i = 0; i < tokens; ++i) check(kinglet_session_step(session, 0, ids[i]));
    const kinglet_status learned = kinglet_typing_learn(typing, input.before, word);
    if (learned != KINGLET_INVALID_ARGUMENT) check(learned);  // a dash is no word to learn
    input.before = word;
  }
  kinglet_typing_destroy(typing);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
}
