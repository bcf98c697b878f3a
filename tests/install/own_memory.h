// What the programs of small_library_test.py and typing_memory_test.py share.
#ifndef KINGLET_TESTS_INSTALL_OWN_MEMORY_H_
#define KINGLET_TESTS_INSTALL_OWN_MEMORY_H_

#include <kinglet/kinglet.h>
#include <stdio.h>
#include <stdlib.h>

// Ends the program with the error, if there is one.
static void check(kinglet_status status) {
  if (status != KINGLET_OK) {
    printf("%s: %s\n", kinglet_status_name(status), kinglet_error_message());
    exit(1);
  }
}

// Bytes that this process alone has and that no file backs, so not the library's code; 0 if the
// system does not tell.
static long private_bytes(void) {
  FILE* const file = fopen("/proc/self/smaps_rollup", "r");
  if (file == NULL) return 0;
  char line[256];
  long dirty = 0;
  while (fgets(line, sizeof line, file) != NULL &&
         sscanf(line, "Private_Dirty: %ld", &dirty) != 1) {
  }
  fclose(file);
  return 1024 * dirty;
}

#endif  // KINGLET_TESTS_INSTALL_OWN_MEMORY_H_
