// Opens a model, types a text, learns its words and forgets them; prints what the process's own
// memory grew by. For typing_memory_test.py.
//
//   typing_memory MODEL.kgl TEXT WORDS
#include <kinglet/kinglet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "own_memory.h"

enum { MOST_WORDS = 300, MOST_TOUCHES = 64, MOST_BYTES = 65536, SHOWN = 3 };

// The words that the letters may mean, with each letter's neighbours on the keyboard.
static uint32_t find(kinglet_typing* typing, kinglet_session* session, const char* before,
                     const char* word, uint32_t count) {
  static const char* const rows = "qwertyuiopasdfghjklzxcvbnm";
  kinglet_typing_input input;
  check(kinglet_typing_input_init(&input, sizeof input));
  uint32_t begins[MOST_TOUCHES + 1] = {0}, characters[3 * MOST_TOUCHES], all = 0;
  double costs[3 * MOST_TOUCHES];
  for (uint32_t i = 0; i < count; ++i) {
    const char* const key = strchr(rows, word[i] | 32);
    const size_t place = key == NULL || *key == '\0' ? 0 : (size_t)(key - rows);
    const char letters[3] = {word[i], rows[(place + 1) % 26], rows[(place + 25) % 26]};
    for (int j = 0; j < 3; ++j) {
      characters[all] = (unsigned char)letters[j];
      costs[all++] = j == 0 ? 0.3 : 2;
    }
    begins[i + 1] = all;
  }
  input.touches = count;
  input.begins = begins;
  input.characters = characters;
  input.costs = costs;
  input.before = before;
  char texts[1024];
  uint32_t found = 0;
  check(kinglet_typing_find(typing, session, 0, &input, SHOWN, texts, sizeof texts, NULL, NULL,
                            NULL, NULL, NULL, &found, NULL));
  return found;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  static char text[MOST_BYTES];
  FILE* const file = fopen(argv[2], "rb");
  if (file == NULL || fread(text, 1, sizeof text - 1, file) == 0) return 2;
  fclose(file);
  printf("typing\n");
  fflush(stdout);

  const long before = private_bytes();
  kinglet_model* model = NULL;
  kinglet_session* session = NULL;
  kinglet_typing* typing = NULL;
  check(kinglet_model_open(argv[1], NULL, &model));
  const long opened = private_bytes();
  check(kinglet_session_create(model, NULL, &session));
  check(kinglet_session_step(session, 0, 0));
  const long started = private_bytes();
  check(kinglet_typing_create(model, &typing));
  const long made = private_bytes();
  check(kinglet_typing_open_words(typing, argv[3]));
  const char* last = "";
  uint32_t words = 0, candidates = 0;
  for (char* word = strtok(text, " \n"); word != NULL && words < MOST_WORDS;
       word = strtok(NULL, " \n"), ++words) {
    const uint32_t length = (uint32_t)strlen(word);
    for (uint32_t count = 0; count <= length && count < MOST_TOUCHES; ++count) {
      candidates += find(typing, session, last, word, count);
    }
    uint32_t ids[MOST_TOUCHES];
    uint64_t tokens = 0;
    check(kinglet_model_tokenize(model, word, length, ids, NULL, MOST_TOUCHES, &tokens));
    for (uint64_t i = 0; i < tokens; ++i) check(kinglet_session_step(session, 0, ids[i]));
    const kinglet_status learned = kinglet_typing_learn(typing, last, word);
    if (learned != KINGLET_INVALID_ARGUMENT) check(learned);
    last = word;
  }
  const long typed = private_bytes();
  check(kinglet_typing_forget(typing));
  printf("%u words, %u candidates\n", words, candidates);
  printf("opened %ld, started %ld, made %ld, typed %ld bytes\n", opened - before, started - before,
         made - before, typed - before);
  printf("grown %ld bytes\n", private_bytes() - before);
  kinglet_typing_destroy(typing);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return 0;
}
