#include "tools/phrase_list.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "converters/checkpoints/parse_number.h"
#include "format/message_text.h"
#include "tools/list_weights.h"

namespace kinglet {

Result<PhraseList> PhraseList::Parse(std::string_view text, const std::string& name) {
  PhraseList list;
  size_t number = 0;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    ++number;
    const size_t tab = line.find('\t');
    std::vector<uint32_t> units;
    for (const std::string_view word : WordsOf(line.substr(0, tab))) {
      const auto next = static_cast<uint32_t>(list.numbers_.size());
      units.push_back(list.numbers_.try_emplace(std::string(word), next).first->second);
    }
    if (units.empty() && WordsOf(line).empty()) continue;
    double bonus = 1;
    if (tab != std::string_view::npos) {
      std::string_view field = line.substr(tab + 1);
      if (field.ends_with('\r')) field.remove_suffix(1);
      bonus = ParseNumber<double>(std::string(field)).value_or(INFINITY);
    }
    if (units.empty() || !std::isfinite(bonus)) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, name, Numbered("line", number),
                             "PHRASE, or PHRASE<tab>BONUS with a finite number",
                             Quoted(std::string(line)));
    }
    list.phrases_.Add(units, bonus);
  }
  if (list.phrases_.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, name, "phrases", "at least one", "none");
  }
  list.phrases_.Link();
  return list;
}

uint32_t PhraseList::Number(std::string_view word) const {
  const auto found = numbers_.find(word);
  return found == numbers_.end() ? UINT32_MAX : found->second;
}

double PhraseList::BonusOf(std::string_view text) const {
  Phrases::State state = Phrases::kNone;
  double sum = 0;
  for (const std::string_view word : WordsOf(text)) {
    const Phrases::Step step = phrases_.Next(state, Number(word));
    sum += step.bonus;
    state = step.after;
  }
  return sum + phrases_.End(state);
}

}  // namespace kinglet
