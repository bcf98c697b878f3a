// SentencePiece's Normalizer::Normalize, as defined by SentencePiece's documentation and results.
#include "runtime/text/normaliser.h"

#include "format/message_text.h"
#include "format/utf8.h"

namespace kinglet {

Status RefuseLongText(uint64_t bytes) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "text", "size",
                         "fewer than " + BytesText(kMaxTextBytes), std::to_string(bytes));
}

Status RefuseTextMemory(uint64_t bytes) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, "text", "memory",
                         "a text that can be tokenized in what the model's memory limit leaves",
                         BytesText(bytes) + " or more; give it in parts");
}

Normaliser::Normaliser(const NormaliserTables& tables, bool space_suffix,
                       const std::vector<std::string_view>& kept)
    : tables_(&tables), space_suffix_(space_suffix) {
  std::vector<std::pair<std::string_view, uint32_t>> keys;
  keys.reserve(tables.rules.size());
  for (const auto& rule : tables.rules) {
    keys.emplace_back(rule.from, static_cast<uint32_t>(keys.size()));
  }
  rules_ = PrefixTrie(std::move(keys));
  keys.clear();
  for (const std::string_view text : kept) {
    keys.emplace_back(text, static_cast<uint32_t>(keys.size()));
  }
  kept_ = PrefixTrie(std::move(keys));
}

Normaliser::Replacement Normaliser::NextReplacement(std::string_view text) const {
  if (const size_t length = kept_.Longest(text).length; length > 0) {
    return {text.substr(0, length), length};
  }
  if (const PrefixTrie::Match match = rules_.Longest(text); match.length > 0) {
    return {tables_->rules[match.value].to, match.length};
  }
  const size_t length = CharacterLength(text);
  if (length == 0) return {kReplacementCharacter, 1};
  return {text.substr(0, length), length};
}

Result<NormalisedText> Normaliser::Normalise(std::string_view text, uint64_t most,
                                             TextPart& part) const {
  if (text.size() >= kMaxTextBytes) return RefuseLongText(text.size());
  NormalisedText out;
  const uint64_t grown = kMaxTextGrowth * text.size() + kFreeTextBytes;
  size_t at = 0;
  if (tables_->trim && part.begins) {
    while (at < text.size()) {
      const Replacement next = NextReplacement(text.substr(at));
      if (next.made != " ") break;
      at += next.taken;
    }
  }
  if (at == text.size()) return out;
  out.text.reserve(text.size() + text.size() / 4 + kSpaceMark.size());
  out.origins.reserve(out.text.capacity() + 1);
  const std::string_view space = tables_->escape ? kSpaceMark : std::string_view(" ");
  const auto append = [&](std::string_view made) {
    out.text += made;
    out.origins.resize(out.text.size(), static_cast<uint32_t>(at));
  };
  if (tables_->dummy_prefix && !space_suffix_ && part.begins) append(space);
  bool after_space = tables_->trim && (part.begins || part.after_space);
  part.begins = false;
  while (at < text.size()) {
    Replacement next = NextReplacement(text.substr(at));
    while (after_space && next.made.starts_with(' ')) next.made.remove_prefix(1);
    if (!next.made.empty()) {
      after_space = tables_->trim && next.made.ends_with(' ');
      for (const char& c : next.made) append(c == ' ' ? space : std::string_view(&c, 1));
      if (out.text.size() >= kMaxTextBytes) return RefuseLongText(out.text.size());
      if (out.text.size() > grown) {
        return Status::Refusal(KINGLET_INVALID_ARGUMENT, "text", "normalised",
                               "at most " + BytesText(grown) + ", " +
                                   std::to_string(kMaxTextGrowth) + " for each of the text",
                               "more: rules that replace single bytes by many");
      }
      if (out.text.size() > most) return RefuseTextMemory(out.text.size());
    }
    at += next.taken;
  }
  part.after_space = after_space;
  if (tables_->trim && part.ends) {
    while (out.text.ends_with(space)) {
      const size_t size = out.text.size() - space.size();
      at = out.origins[size];
      out.text.resize(size);
      out.origins.resize(size);
    }
  }
  if (tables_->dummy_prefix && space_suffix_ && part.ends) append(space);
  out.origins.push_back(static_cast<uint32_t>(at));
  return out;
}

}  // namespace kinglet
