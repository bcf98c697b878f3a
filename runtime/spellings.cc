#include "runtime/spellings.h"

#include <algorithm>
#include <optional>

#include "format/vocabulary.h"
#include "runtime/special_tokens.h"
#include "runtime/text/model_text.h"

namespace kinglet {
namespace {

// Whether a line begins after the token.
bool StartsLine(const SpecialTokens& special, uint32_t id) {
  return id == special.end_of_line || (id == special.begin && id != special.unknown);
}

}  // namespace

Spelling Spellings::OfToken(const Model& model, const SpecialTokens& special, uint32_t id) {
  if (id == special.end_of_line) return {"\n", true, true};
  if (StartsLine(special, id)) return {"", true, true};
  Spelling spelling = model.text() == nullptr ? Spelling{model.vocabulary()->Word(id), false, false}
                                              : model.text()->Spell(id);
  if (id == special.unknown) spelling.text.clear();
  // People write a part that a word rule splits off a word together with that word.
  if (model.text() != nullptr && model.text()->tokenizer().WritesTogether(spelling.text)) {
    spelling.joins_before = true;
  }
  return spelling;
}

Result<Spellings> Spellings::Of(const Model& model) {
  if (model.vocabulary() == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "session", "text",
                           "a model file with the texts of words", "ids only");
  }
  const Vocabulary& vocabulary = *model.vocabulary();
  const SpecialTokens special = SpecialTokensOf(model);
  if (vocabulary.word_bytes() > kMostBytes) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "session", "text",
                           "words of at most " + std::to_string(kMostBytes) + " bytes together",
                           std::to_string(vocabulary.word_bytes()));
  }
  // A spelling is at most a word. The lists of ids may have grown to twice their size.
  constexpr uint64_t kEach = sizeof(Spelling) + sizeof(Before) + 4 * sizeof(uint32_t) + 24;
  Spellings made;
  KINGLET_ASSIGN_OR_RETURN(
      made.memory_, ClaimMemory(model.budget(), vocabulary.size() * kEach + vocabulary.word_bytes(),
                                "session", "spellings"));
  made.spellings_.reserve(vocabulary.size());
  made.after_.reserve(vocabulary.size());
  if (model.text() != nullptr) {
    made.drops_space_ = model.text()->tokenizer().drops_first_space();
    made.drops_spaces_ = model.text()->tokenizer().drops_first_spaces();
  }
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    Spelling spelling = OfToken(model, special, id);
    const bool line_starts = StartsLine(special, id);
    if (!spelling.text.empty()) {
      (spelling.joins_before ? made.joining_ : made.spaced_).push_back(id);
    }
    if (spelling.joins_before && spelling.text.starts_with(' ')) {
      if (spelling.text.size() == 1) {
        made.single_spaces_.push_back(id);
      } else {
        made.marks_spaces_ = true;
      }
    }
    made.longest_ = std::max(made.longest_, spelling.text.size());
    made.after_.push_back(line_starts            ? Before::kLineStart
                          : spelling.joins_after ? Before::kJoined
                                                 : Before::kWord);
    made.spellings_.push_back(std::move(spelling));
  }
  for (Order* const order : {&made.joining_, &made.spaced_}) {
    std::stable_sort(order->begin(), order->end(), [&made](uint32_t a, uint32_t b) {
      return made.spellings_[a].text < made.spellings_[b].text;
    });
  }
  return made;
}

std::string Spellings::Text(uint32_t id, Before before) const {
  const Spelling& spelling = spellings_[id];
  if (!spelling.joins_before) return (before == Before::kWord ? " " : "") + spelling.text;
  return spelling.text.substr(Drops(before) && spelling.text.starts_with(' ') ? 1 : 0);
}

// Narrows the order byte by byte to the tokens that begin with the bytes of `spelled` so far.
// Tokens that end there come first.
void Spellings::Find(const Order& order, std::string_view spelled, int more,
                     Beginnings& found) const {
  const auto text = [this](uint32_t id) -> std::string_view { return spellings_[id].text; };
  auto first = order.begin(), last = order.end();
  for (size_t at = 0; at < spelled.size() && first != last; ++at) {
    // The token's byte at this index; -1, below all bytes, where the token has ended.
    const auto byte = [&](uint32_t id) {
      return text(id).size() > at ? static_cast<unsigned char>(text(id)[at]) : -1;
    };
    const int wanted = static_cast<unsigned char>(spelled[at]);
    if (byte(*first) != wanted) {
      first = std::partition_point(first, last, [&](uint32_t id) { return byte(id) < wanted; });
    }
    if (first != last && byte(*(last - 1)) != wanted) {
      last = std::partition_point(first, last, [&](uint32_t id) { return byte(id) == wanted; });
    }
    if (at + 1 == spelled.size()) break;
    const auto added = static_cast<uint32_t>(static_cast<int64_t>(at) + 1 + more);
    if (added == 0 && drops_spaces_) continue;  // a dropped space could repeat without end
    for (auto ends = first; ends != last && text(*ends).size() == at + 1; ++ends) {
      found.parts.push_back({*ends, added});
    }
  }
  found.whole.insert(found.whole.end(), first, last);
}

Spellings::Beginnings Spellings::Of(std::string_view text, Before before) const {
  Beginnings found;
  if (text.empty()) {
    if (!Drops(before) || drops_spaces_) return found;
    for (const uint32_t id : single_spaces_) found.parts.push_back({id, 0});
    return found;
  }
  text = text.substr(0, longest_ + 2);  // no token adds more than longest_ + 1 bytes
  const bool begins_with_space = text.front() == ' ';
  if (before != Before::kWord) {
    Find(spaced_, text, 0, found);
  } else if (begins_with_space) {
    Find(spaced_, text.substr(1), 1, found);
  }
  if (!Drops(before)) {
    Find(joining_, text, 0, found);
  } else {
    if (!begins_with_space) Find(joining_, text, 0, found);
    Find(joining_, " " + std::string(text), -1, found);
  }
  std::sort(found.parts.begin(), found.parts.end(),
            [](const Part& a, const Part& b) { return a.id < b.id; });
  return found;
}

}  // namespace kinglet
