// Sentences with their translations, as token ids.
#ifndef KINGLET_CONVERTERS_PAIR_FILE_H_
#define KINGLET_CONVERTERS_PAIR_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

struct SentencePair {
  std::vector<uint32_t> source;  // at least one
  std::vector<uint32_t> target;  // behind the start token: at least one
};

// One pair on each line: ids of the source, "|||", then `start_token` and ids of the target.
// Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY; KINGLET_INVALID_ARGUMENT
// naming the line, also for a file without pairs.
Result<std::vector<SentencePair>> ReadPairs(const std::string& path, uint32_t start_token);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PAIR_FILE_H_
