#include "tools/first_stage.h"

#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include "converters/texts/text_size.h"
#include "tools/loss_totals.h"

namespace kinglet {

Result<FirstStage> FirstStage::Open(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(auto model, NgramModel::Open(path));
  std::vector<std::pair<typing::Letters, uint32_t>> words;
  for (uint32_t id = 0; id < model->header().counts[0]; ++id) {
    words.emplace_back(typing::LowerLetters(model->WordOf(id)), id);
  }
  return FirstStage(std::move(model), typing::LetterModel(words));
}

double FirstStage::RankOf(std::string_view text) const {
  const NgramSentenceScore score = model_->ScoreSentence(text);
  double loss = -score.log10 * std::numbers::ln10;
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  for (size_t begin = 0; score.unknown > 0;) {
    begin = text.find_first_not_of(kBlanks, begin);
    if (begin == text.npos) break;
    const std::string_view word = text.substr(begin, text.find_first_of(kBlanks, begin) - begin);
    if (model_->IdOf(word) == model_->unknown_word()) {
      loss -= letters_.LogProbability(typing::LowerLetters(word));
    }
    begin += word.size();
  }
  return InBits(loss / static_cast<double>(text.size() + kEndOfLineSize.bytes));
}

}  // namespace kinglet
