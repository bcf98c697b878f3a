#include "runtime/spellings.h"

#include <algorithm>
#include <optional>

#include "format/vocabulary.h"
#include "runtime/special_words.h"
#include "runtime/text/model_text.h"

namespace kinglet {

Result<Spellings> Spellings::Of(const Model& model) {
  if (model.vocabulary() == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "session", "text",
                           "a model file with the texts of words", "ids only");
  }
  const Vocabulary& vocabulary = *model.vocabulary();
  const SpecialWords special = SpecialWordsOf(model);
  Spellings made;
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    Spelling spelling = {"", true, true};
    if (id == special.end_of_line) {
      spelling.text = "\n";
    } else if (id != special.begin) {
      spelling = model.text() == nullptr ? Spelling{vocabulary.Word(id), false, false}
                                         : model.text()->Spell(id);
      if (id == special.unknown) spelling.text.clear();
    }
    if (!spelling.text.empty()) {
      (spelling.joins_before ? made.joining_ : made.spaced_).push_back(id);
    }
    made.longest_ = std::max(made.longest_, spelling.text.size());
    made.spellings_.push_back(std::move(spelling));
  }
  for (Order* const order : {&made.joining_, &made.spaced_}) {
    std::stable_sort(order->begin(), order->end(), [&made](uint32_t a, uint32_t b) {
      return made.spellings_[a].text < made.spellings_[b].text;
    });
  }
  return made;
}

std::string Spellings::Text(uint32_t id, bool joined) const {
  const Spelling& spelling = spellings_[id];
  return (joined || spelling.joins_before ? "" : " ") + spelling.text;
}

std::span<const uint32_t> Spellings::WithPrefix(const Order& order, std::string_view prefix) const {
  const auto beginning = [&](uint32_t id) {
    return std::string_view(spellings_[id].text).substr(0, prefix.size());
  };
  const auto first = std::partition_point(order.begin(), order.end(),
                                          [&](uint32_t id) { return beginning(id) < prefix; });
  const auto last = std::partition_point(first, order.end(),
                                         [&](uint32_t id) { return beginning(id) == prefix; });
  return {first, last};
}

std::span<const uint32_t> Spellings::Equal(const Order& order, std::string_view text) const {
  const auto first = std::partition_point(order.begin(), order.end(),
                                          [&](uint32_t id) { return spellings_[id].text < text; });
  const auto last = std::partition_point(first, order.end(),
                                         [&](uint32_t id) { return spellings_[id].text == text; });
  return {first, last};
}

// `space`: 1 if a space stands before each of these tokens, else 0.
void Spellings::Find(const Order& order, std::string_view text, uint32_t space,
                     Beginnings& found) const {
  if (space == 1 && text.front() != ' ') return;
  const std::string_view rest = text.substr(space);
  const std::span<const uint32_t> whole = WithPrefix(order, rest);
  found.whole.insert(found.whole.end(), whole.begin(), whole.end());
  for (size_t length = 1; length < rest.size() && length <= longest_; ++length) {
    for (const uint32_t id : Equal(order, rest.substr(0, length))) {
      found.parts.push_back({id, static_cast<uint32_t>(length) + space});
    }
  }
}

Spellings::Beginnings Spellings::Of(std::string_view text, bool joined) const {
  Beginnings found;
  Find(joining_, text, 0, found);
  Find(spaced_, text, joined ? 0 : 1, found);
  std::sort(found.parts.begin(), found.parts.end(),
            [](const Part& a, const Part& b) { return a.id < b.id; });
  return found;
}

}  // namespace kinglet
