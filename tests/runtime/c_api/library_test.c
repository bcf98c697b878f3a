#include <string.h>

#include "tests/runtime/c_api/expect.h"

const char* TestLibrary(void) {
  EXPECT(strcmp(kinglet_error_message(), "") == 0);  // the first test of the process's thread
  EXPECT(kinglet_abi_version() == KINGLET_ABI_VERSION);
  EXPECT(strcmp(kinglet_version_string(), "0.") > 0 && strchr(kinglet_version_string(), '.'));

  const struct {
    kinglet_status status;
    const char* name;
  } statuses[] = {
      {KINGLET_OK, "KINGLET_OK"},
      {KINGLET_INVALID_ARGUMENT, "KINGLET_INVALID_ARGUMENT"},
      {KINGLET_ID_OUT_OF_RANGE, "KINGLET_ID_OUT_OF_RANGE"},
      {KINGLET_UNKNOWN_WORD, "KINGLET_UNKNOWN_WORD"},
      {KINGLET_BUFFER_TOO_SMALL, "KINGLET_BUFFER_TOO_SMALL"},
      {KINGLET_NOT_FOUND, "KINGLET_NOT_FOUND"},
      {KINGLET_IO_ERROR, "KINGLET_IO_ERROR"},
      {KINGLET_CORRUPT, "KINGLET_CORRUPT"},
      {KINGLET_UNSUPPORTED_VERSION, "KINGLET_UNSUPPORTED_VERSION"},
      {KINGLET_INVALID_MODEL, "KINGLET_INVALID_MODEL"},
      {KINGLET_INVALID_CHECKPOINT, "KINGLET_INVALID_CHECKPOINT"},
      {KINGLET_OUT_OF_MEMORY, "KINGLET_OUT_OF_MEMORY"},
      {KINGLET_TOO_MANY_STEPS, "KINGLET_TOO_MANY_STEPS"},
      {KINGLET_NO_TOKEN_YET, "KINGLET_NO_TOKEN_YET"},
      {KINGLET_CANCELLED, "KINGLET_CANCELLED"},
      {KINGLET_NO_SOURCE_YET, "KINGLET_NO_SOURCE_YET"},
      {KINGLET_UNSUPPORTED, "KINGLET_UNSUPPORTED"},
      {KINGLET_NOT_FINITE, "KINGLET_NOT_FINITE"},
      {KINGLET_MISMATCH, "KINGLET_MISMATCH"},
      {KINGLET_INTERNAL, "KINGLET_INTERNAL"},
  };
  int32_t named = 0;
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; ++i) {
    EXPECT(strcmp(kinglet_status_name(statuses[i].status), statuses[i].name) == 0);
  }
  for (kinglet_status status = -1000; status <= 1000; ++status) {
    named += strcmp(kinglet_status_name(status), "unknown status") != 0;
  }
  EXPECT(named == sizeof statuses / sizeof *statuses);
  EXPECT(strcmp(kinglet_status_name(INT32_MIN), "unknown status") == 0);
  EXPECT(strcmp(kinglet_status_name(INT32_MAX), "unknown status") == 0);

  EXPECT_INVALID(kinglet_model_vocabulary_size(NULL, NULL));
  EXPECT(strcmp(kinglet_error_message(),
                "kinglet_model_vocabulary_size: model: expected a pointer, found NULL") == 0);
  return NULL;
}
