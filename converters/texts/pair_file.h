// Source sentences with their translations, as token ids, on which a translation model is
// evaluated.
#ifndef KINGLET_CONVERTERS_TEXTS_PAIR_FILE_H_
#define KINGLET_CONVERTERS_TEXTS_PAIR_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

class Model;
class Session;

struct SentencePair {
  std::vector<uint32_t> source;  // at least one id
  std::vector<uint32_t> target;  // without the start token; at least one id
};

// Reads a file with one pair per line: the source's ids, "|||", `start_token` and the target's ids.
// Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY; KINGLET_INVALID_ARGUMENT
// naming the line, also for a file without pairs.
Result<std::vector<SentencePair>> ReadPairs(const std::string& path, uint32_t start_token);

// Checks that the model can read the pair: ids inside the vocabularies, a source that fits the
// encoder's window, and no more target ids than the decoder has positions (after that many tokens
// a stream starts again from an empty state). Errors: KINGLET_ID_OUT_OF_RANGE,
// KINGLET_INVALID_ARGUMENT. REQUIRES: a model with an encoder.
Status CheckPair(const SentencePair& pair, const Model& model);

// Encodes the source on the session's lane 0, then feeds the start token and all target ids but the
// last. After each step `expected` is called with the target id that should follow, so that it can
// query the session about that id. Errors: those of CheckPair, Session and `expected`.
// REQUIRES: a model with an encoder.
Status FeedPair(const SentencePair& pair, Session& session,
                const std::function<Status(uint32_t id)>& expected);
// `status` with "sentence INDEX: " before its message.
Status InSentence(size_t index, const Status& status);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_PAIR_FILE_H_
