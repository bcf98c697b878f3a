// An n-gram model that ranks documents before a network does, so that the network scores only the
// better ones.
#ifndef KINGLET_TOOLS_FIRST_STAGE_H_
#define KINGLET_TOOLS_FIRST_STAGE_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kinglet/status.h"
#include "runtime/ngrams/ngram_model.h"
#include "runtime/typing/letter_model.h"

namespace kinglet {

class FirstStage {
 public:
  // Errors: those of NgramModel::Open.
  static Result<FirstStage> Open(const std::string& path);

  const std::string& digest() const { return model_->digest(); }
  // Bits per byte, with the letters of unknown words as the model's words are spelt. ASCII white
  // space separates words.
  double RankOf(std::string_view text) const;

 private:
  FirstStage(std::shared_ptr<const NgramModel> model, typing::LetterModel letters)
      : model_(std::move(model)), letters_(std::move(letters)) {}

  std::shared_ptr<const NgramModel> model_;
  typing::LetterModel letters_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_FIRST_STAGE_H_
