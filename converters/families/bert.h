// The family `bert`: masked models of Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional
// Transformers for Language Understanding", as Hugging Face's BertForMaskedLM, BertForPreTraining,
// BertForSequenceClassification, BertForQuestionAnswering and BertModel save them. A folder has
// config.json and pytorch_model.bin or model.safetensors.
// Peculiarities:
//   - names begin with "bert." except in a BertModel
//   - files of 2018 and 2019 call a norm's weight and bias gamma and beta
//   - model.safetensors omits the decoder's weight and bias where they are the word table and
//     cls.predictions.bias; pytorch_model.bin stores both
//   - position_ids, which are not trained, are not read
//   - files of 2018 and 2019 with qa_outputs have a pooler, which is not used and not read
#ifndef KINGLET_CONVERTERS_FAMILIES_BERT_H_
#define KINGLET_CONVERTERS_FAMILIES_BERT_H_

#include <span>
#include <string_view>
#include <vector>

#include "converters/families/families.h"

namespace kinglet {

inline constexpr std::string_view kBertFamily = "bert";

bool LooksLikeBert(std::span<const CheckpointTensor> weights);

std::span<const OptionTable> BertOptions();

// Errors: KINGLET_INVALID_CHECKPOINT; KINGLET_UNSUPPORTED for options that the blocks cannot
// express (relative positions, a decoder) and unknown ones, by the option's name.
Result<LoadedModel> LoadBert(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_BERT_H_
