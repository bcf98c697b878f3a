// The ids of a text that is run over many times.
#ifndef KINGLET_TOOLS_TEXT_TOKENS_H_
#define KINGLET_TOOLS_TEXT_TOKENS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "converters/planning/sensitivity.h"
#include "format/model_file.h"
#include "kinglet/status.h"

namespace kinglet {

// How many ids are kept in memory; a longer text is read again for each run.
inline constexpr uint64_t kKeptTokens = uint64_t{1} << 24;

// Reads the ids of a text file, tokenized as the model tokenizes text, or, without `text`, of
// a file of ids. The ids of a pipe, and of standard input, are all kept. Errors: those of reading
// the file; KINGLET_UNSUPPORTED for a text and a model without words.
Result<TokenInput> OpenTextTokens(const std::string& text, const std::string& ids,
                                  const std::shared_ptr<const ModelFile>& file,
                                  uint64_t max_kept = kKeptTokens);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TEXT_TOKENS_H_
