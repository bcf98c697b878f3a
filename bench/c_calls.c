/* A step and a query of every token of a text through the C interface, for bench/python_calls.

       c_calls MODEL.kgl IDS

   IDS: ids between white space. Prints the microseconds that each token took, one a line. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kinglet/kinglet.h"

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void Check(kinglet_status status) {
  if (status == KINGLET_OK) return;
  fprintf(stderr, "c_calls: %s\n", kinglet_error_message());
  exit(1);
}

int main(int argc, char** argv) {
  FILE* file = argc == 3 ? fopen(argv[2], "r") : NULL;
  if (file == NULL) {
    fprintf(stderr, "usage: c_calls MODEL.kgl IDS\n");
    return 2;
  }
  kinglet_model* model = NULL;
  kinglet_session* session = NULL;
  Check(kinglet_model_open(argv[1], NULL, &model));
  Check(kinglet_session_create(model, NULL, &session));
  unsigned now = 0;
  unsigned next = 0;
  double sum = 0;
  for (int any = fscanf(file, "%u", &now); any == 1 && fscanf(file, "%u", &next) == 1; now = next) {
    const double begin = Now();
    double value = 0;
    Check(kinglet_session_step(session, 0, now));
    Check(kinglet_session_log_probability(session, 0, next, &value));
    printf("%.3f\n", Now() - begin);
    sum += value;
  }
  fprintf(stderr, "%.9g\n", sum);
  fclose(file);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
  return 0;
}
