// How one stream of tokens was scored.
#ifndef KINGLET_TOOLS_SCORE_PROTOCOL_H_
#define KINGLET_TOOLS_SCORE_PROTOCOL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/model.h"

namespace kinglet {

// The end of every protocol: "; digest ...", and before the digest how exact the backend's numbers
// are, if they are not `ref`'s to the last bit.
std::string ProtocolEnd(const Model& model);

// What another program must do to get the same numbers. `block`, `context`: the tokens of text
// blocks with a fresh state each, and the number of them that are fed again; without blocks the
// state is carried. `complete`: blocks of complete sentences. `empty_cache`: "reference" or
// "normalised".
std::string StreamProtocol(const Model& model, const std::optional<uint64_t>& block,
                           uint64_t context, const std::string& empty_cache, bool complete = false);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SCORE_PROTOCOL_H_
