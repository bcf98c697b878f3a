// The functions of the C interface about the library itself.
#include "kinglet/kinglet.h"
#include "runtime/c_api/guard.h"

static_assert(KINGLET_SOVERSION == KINGLET_ABI_VERSION,
              "the project's major version and KINGLET_ABI_VERSION change together");

uint32_t kinglet_abi_version(void) { return KINGLET_ABI_VERSION; }

const char* kinglet_version_string(void) { return KINGLET_VERSION; }

const char* kinglet_status_name(kinglet_status status) {
  switch (static_cast<kinglet_status_code>(status)) {
    case KINGLET_OK:
      return "KINGLET_OK";
    case KINGLET_INVALID_ARGUMENT:
      return "KINGLET_INVALID_ARGUMENT";
    case KINGLET_ID_OUT_OF_RANGE:
      return "KINGLET_ID_OUT_OF_RANGE";
    case KINGLET_UNKNOWN_WORD:
      return "KINGLET_UNKNOWN_WORD";
    case KINGLET_BUFFER_TOO_SMALL:
      return "KINGLET_BUFFER_TOO_SMALL";
    case KINGLET_NOT_FOUND:
      return "KINGLET_NOT_FOUND";
    case KINGLET_IO_ERROR:
      return "KINGLET_IO_ERROR";
    case KINGLET_CORRUPT:
      return "KINGLET_CORRUPT";
    case KINGLET_UNSUPPORTED_VERSION:
      return "KINGLET_UNSUPPORTED_VERSION";
    case KINGLET_INVALID_MODEL:
      return "KINGLET_INVALID_MODEL";
    case KINGLET_INVALID_CHECKPOINT:
      return "KINGLET_INVALID_CHECKPOINT";
    case KINGLET_OUT_OF_MEMORY:
      return "KINGLET_OUT_OF_MEMORY";
    case KINGLET_NO_TOKEN_YET:
      return "KINGLET_NO_TOKEN_YET";
    case KINGLET_CANCELLED:
      return "KINGLET_CANCELLED";
    case KINGLET_TOO_MANY_STEPS:
      return "KINGLET_TOO_MANY_STEPS";
    case KINGLET_NO_SOURCE_YET:
      return "KINGLET_NO_SOURCE_YET";
    case KINGLET_UNSUPPORTED:
      return "KINGLET_UNSUPPORTED";
    case KINGLET_NOT_FINITE:
      return "KINGLET_NOT_FINITE";
    case KINGLET_MISMATCH:
      return "KINGLET_MISMATCH";
    case KINGLET_INTERNAL:
      return "KINGLET_INTERNAL";
  }
  return "unknown status";
}

const char* kinglet_error_message(void) { return kinglet::ErrorText(); }
