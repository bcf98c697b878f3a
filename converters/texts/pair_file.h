// Sentences with their translations, as token ids.
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
  std::vector<uint32_t> source;  // at least one
  std::vector<uint32_t> target;  // behind the start token: at least one
};

// One pair on each line: ids of the source, "|||", then `start_token` and ids of the target.
// Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY; KINGLET_INVALID_ARGUMENT
// naming the line, also for a file without pairs.
Result<std::vector<SentencePair>> ReadPairs(const std::string& path, uint32_t start_token);

// Whether a session of the model can be fed the pair: ids in their vocabularies, a source that fits
// the encoder's window, and no more target ids than the decoder has positions, behind which a
// stream would start anew. Errors: KINGLET_ID_OUT_OF_RANGE, KINGLET_INVALID_ARGUMENT. REQUIRES: a
// model with an encoder.
Status CheckPair(const SentencePair& pair, const Model& model);

// Encodes the source on the session's first lane and feeds the start token and the target's ids but
// the last; whenever an id of the target is what comes next, `expected` is called with it. Errors:
// CheckPair's, Session's, and what `expected` returns. REQUIRES: a model with an encoder.
Status FeedPair(const SentencePair& pair, Session& session,
                const std::function<Status(uint32_t id)>& expected);
// The same refusal with the pair's number, from 0, in front.
Status InSentence(size_t index, const Status& status);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_PAIR_FILE_H_
