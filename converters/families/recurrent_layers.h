// The recurrent layers of a checkpoint, one fed with the output of the one before: claimed by name,
// their sizes read off the tensors, and described as a block. A family says what the tensors are
// called.
#ifndef KINGLET_CONVERTERS_FAMILIES_RECURRENT_LAYERS_H_
#define KINGLET_CONVERTERS_FAMILIES_RECURRENT_LAYERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "converters/families/draft_builder.h"
#include "converters/sources/source_weights.h"
#include "format/blocks.h"

namespace kinglet {

struct RecurrentLayerNames {
  std::string input_weight, input_bias;
  std::string recurrent_weight, recurrent_bias;  // a QRNN has none; an LSTM may lack the bias
  std::vector<std::string> leftovers;            // may be there and say nothing
};

class RecurrentLayers {
 public:
  // Without a cell, the rows of each recurrent weight tell LSTM from GRU. REQUIRES: the builder
  // outlives it.
  RecurrentLayers(DraftBuilder& builder, std::optional<RecurrentCell> cell)
      : builder_(builder), cell_(cell) {}

  // The embedding's width, once it is known and before any layer is claimed.
  void SetInputs(uint64_t inputs) { inputs_ = width_ = inputs; }
  // The next layer's tensors. What cannot be known is not checked, because the tensor that would
  // tell it is among the faults.
  void Claim(const RecurrentLayerNames& names);
  // Units of the last layer claimed, or the embedding's width; 0 where that cannot be known.
  uint64_t width() const { return width_; }
  // The block, without a name; its tensors go to the draft. REQUIRES: CheckNames found nothing.
  RecurrentDecoder Describe();

 private:
  // A layer's tensors; null where there are none or they are at fault.
  struct Sources {
    RecurrentCell cell = RecurrentCell::kLstm;
    uint64_t units = 0, inputs = 0;
    bool previous_input = false;  // a QRNN whose window is two tokens
    const SourceTensor* input_weight = nullptr;
    const SourceTensor* input_bias = nullptr;
    const SourceTensor* recurrent_weight = nullptr;
    const SourceTensor* recurrent_bias = nullptr;
  };

  void ClaimRecurrent(const RecurrentLayerNames& names, Sources& layer);
  void FindCell(Sources& layer);
  void ClaimQrnn(const RecurrentLayerNames& names, Sources& layer);
  RecurrentLayer DescribeLayer(const Sources& from);

  DraftBuilder& builder_;
  std::optional<RecurrentCell> cell_;
  uint64_t inputs_ = 0;
  uint64_t width_ = 0;
  std::vector<Sources> layers_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_RECURRENT_LAYERS_H_
