#include "tools/text_tokens.h"

#include <utility>
#include <vector>

#include "runtime/text/model_text.h"
#include "tools/words.h"

namespace kinglet {

Result<TokenInput> OpenTextTokens(const std::string& text, const std::string& ids,
                                  const std::shared_ptr<const ModelFile>& file, uint64_t max_kept) {
  const auto of_memory = [](std::vector<uint32_t> tokens) {
    const auto shared = std::make_shared<const std::vector<uint32_t>>(std::move(tokens));
    return TokenInput([shared](const auto& take) { return take(*shared); });
  };
  if (text.empty()) {
    KINGLET_ASSIGN_OR_RETURN(TokenSequence sequence,
                             ReadIdSequence(ids, file->description().vocabulary_size));
    return of_memory(std::move(sequence.ids));
  }
  KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const ModelText> splitter, ModelText::Of(*file));
  std::vector<uint32_t> tokens;
  bool is_kept = true;
  const bool is_read_once = !RefusePipe("text", text).ok();
  KINGLET_RETURN_IF_ERROR(
      ForEachTextPiece(text, splitter.get(), [&](const TokenSequence& piece) -> Status {
        if (is_kept) tokens.insert(tokens.end(), piece.ids.begin(), piece.ids.end());
        if (tokens.size() <= max_kept || is_read_once) return {};
        is_kept = false;
        tokens = {};
        return {};
      }));
  if (is_kept) return of_memory(std::move(tokens));
  return TokenInput([text, file, splitter = std::move(splitter)](const auto& take) {
    return ForEachTextPiece(text, splitter.get(),
                            [&](const TokenSequence& piece) { return take(piece.ids); });
  });
}

}  // namespace kinglet
