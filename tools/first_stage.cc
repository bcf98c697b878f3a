#include "tools/first_stage.h"

#include <cstdint>
#include <numbers>

#include "converters/texts/text_size.h"
#include "tools/loss_totals.h"

namespace kinglet {

Result<FirstStage> FirstStage::Open(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(auto model, NgramModel::Open(path));
  typing::WordList words;
  for (uint32_t id = 0; id < model->header().counts[0]; ++id) {
    words.Add(typing::LowerLetters(model->WordOf(id)), id);
  }
  return FirstStage(std::move(model), typing::LetterModel(words));
}

double FirstStage::RankOf(std::string_view text) const {
  double spelling = 0;
  const NgramSentenceScore score = model_->ScoreSentence(text, [&](std::string_view word) {
    spelling -= letters_.LogProbability(typing::LowerLetters(word));
  });
  const double loss = spelling - score.log10 * std::numbers::ln10;
  return InBits(loss / static_cast<double>(text.size() + kEndOfLineSize.bytes));
}

}  // namespace kinglet
