#include "converters/texts/masked_file.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "converters/checkpoints/text_input.h"
#include "converters/texts/token_file.h"
#include "format/input_file.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "runtime/text/model_text.h"

namespace kinglet {

Result<std::vector<MaskedText>> ReadMaskedIds(const std::string& ids, const std::string& segments) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<std::vector<uint32_t>> lines, ReadIdLines(ids));
  std::vector<std::vector<uint32_t>> numbers(lines.size());
  if (!segments.empty()) {
    KINGLET_ASSIGN_OR_RETURN(numbers, ReadIdLines(segments));
    if (numbers.size() != lines.size()) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, segments, "lines",
                             std::to_string(lines.size()) + ", as in " + ids,
                             std::to_string(numbers.size()));
    }
  }
  std::vector<MaskedText> texts;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!segments.empty() && numbers[i].size() != lines[i].size()) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, segments, "line " + std::to_string(i + 1),
                             std::to_string(lines[i].size()) + " segments",
                             std::to_string(numbers[i].size()));
    }
    texts.push_back({std::move(lines[i]), std::move(numbers[i])});
  }
  return texts;
}

Result<MaskedLines> ReadMaskedLines(const std::string& path, const TextTables& tokenizer,
                                    std::span<const std::string> vocabulary, uint32_t window) {
  KINGLET_ASSIGN_OR_RETURN(const VocabularySegments segments, Vocabulary::Pack(vocabulary));
  KINGLET_ASSIGN_OR_RETURN(const Vocabulary words,
                           Vocabulary::FromSegments(static_cast<uint32_t>(vocabulary.size()),
                                                    segments.words, segments.ranks));
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelText> text,
                           ModelText::Create(tokenizer, words));
  KINGLET_ASSIGN_OR_RETURN(const std::string whole, ReadWholeText(path));
  MaskedLines read;
  uint64_t number = 0;
  for (const std::string_view line : LinesOf(whole)) {
    number += 1;
    if (line.find_first_not_of(" \t") == line.npos) continue;
    Result<TokenizedText> tokenized = text->Encode(line);
    if (!tokenized.ok())
      return InFile(path + ", line " + std::to_string(number), tokenized.status());
    MaskedText masked = MaskedTextOf(*tokenized);
    if (masked.ids.empty()) continue;
    if (masked.ids.size() > window) {
      read.shortened += 1;
      for (std::vector<uint32_t>* numbers : {&masked.ids, &masked.segments}) {
        if (numbers->empty()) continue;
        (*numbers)[window - 1] = numbers->back();
        numbers->resize(window);
      }
    }
    read.texts.push_back(std::move(masked));
  }
  if (!read.texts.empty()) return read;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "text", path, "at least one word",
                         "an empty file");
}

MaskedText WithMasks(const MaskedText& text, const MaskTokens& words, uint64_t line) {
  constexpr uint64_t kEvery = 7;
  MaskedText masked = text;
  uint64_t next = line % kEvery;
  for (uint32_t& id : masked.ids) {
    if (!IsScored(id, words)) continue;
    if (next == 0) id = words.mask;
    next = (next + kEvery - 1) % kEvery;
  }
  return masked;
}

Status ReadMasked(std::span<const MaskedText> texts, Session& session,
                  const std::function<Status(const MaskedText& text)>& read) {
  const Result<MaskTokens> words = MaskTokensOf(session.model(), "calibration");
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto encode = [&](const MaskedText& text) -> Status {
      KINGLET_RETURN_IF_ERROR(session.Encode(text.ids, text.segments, 0));
      return read(text);
    };
    Status status = encode(texts[i]);
    if (status.ok() && words.ok()) status = encode(WithMasks(texts[i], *words, i));
    if (!status.ok()) {
      return Status(status.code(), "text " + std::to_string(i) + ": " + status.message());
    }
  }
  return {};
}

}  // namespace kinglet
