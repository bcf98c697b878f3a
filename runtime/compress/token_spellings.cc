#include "runtime/compress/token_spellings.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/special_tokens.h"
#include "runtime/text/model_text.h"

namespace kinglet::compress {
namespace {

bool SplitsWords(const Model& model) {
  return model.text() != nullptr && model.text()->splits_words();
}

// Which side of a token that joins no other has the space.
struct SpaceSides {
  bool before = false, after = false;
};

SpaceSides SidesOf(const ModelText& text, uint32_t size) {
  SpaceSides marked;
  for (uint32_t id = 0; id < size; ++id) {
    const Spelling spelling = text.Spell(id);
    marked.before |= spelling.joins_before;
    marked.after |= spelling.joins_after;
  }
  // A token that marks one side has no space there, so the others have one.
  return {marked.before, marked.after && !marked.before};
}

std::string PieceSpelling(const ModelText& text, const SpaceSides& sides, uint32_t id) {
  const Spelling spelling = text.Spell(id);
  if (spelling.text.empty()) return "";
  return (sides.before && !spelling.joins_before ? " " : "") + spelling.text +
         (sides.after && !spelling.joins_after ? " " : "");
}

}  // namespace

std::vector<TokenStyle> StylesOf(const Model& model) {
  if (model.vocabulary() == nullptr) return {};
  if (SplitsWords(model)) return {TokenStyle::kPieces};
  return {TokenStyle::kSpaced, TokenStyle::kTyped};
}

TokenSpellings::TokenSpellings(const Model& model, TokenStyle style) {
  const Vocabulary& vocabulary = *model.vocabulary();
  const SpecialTokens special = SpecialTokensOf(model);
  const uint32_t size = std::min(vocabulary.size(), model.vocabulary_size());
  const SpaceSides sides =
      style == TokenStyle::kPieces ? SidesOf(*model.text(), size) : SpaceSides();
  std::vector<std::pair<std::string, uint32_t>> spelt;
  spelt.reserve(size);
  for (uint32_t id = 0; id < size; ++id) {
    std::string text = style == TokenStyle::kPieces ? PieceSpelling(*model.text(), sides, id)
                                                    : vocabulary.Word(id);
    if (id == special.end_of_line) text = "\n";
    if (style == TokenStyle::kTyped) {
      if (text == "@-@") text = "-";
      if (id == special.unknown) text.clear();
    }
    if (!text.empty()) spelt.emplace_back(std::move(text), id);
  }
  std::sort(spelt.begin(), spelt.end());
  spelt.erase(std::unique(spelt.begin(), spelt.end(),
                          [](const auto& a, const auto& b) { return a.first == b.first; }),
              spelt.end());
  for (const auto& [text, id] : spelt) {
    ids_.push_back(id);
    begins_.push_back(static_cast<uint32_t>(bytes_.size()));
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }
  begins_.push_back(static_cast<uint32_t>(bytes_.size()));
}

}  // namespace kinglet::compress
