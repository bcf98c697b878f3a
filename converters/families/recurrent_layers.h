// The recurrent layers of a checkpoint, each fed with the previous one's output. A family gives the
// tensors' names; sizes follow from the shapes.
#ifndef KINGLET_CONVERTERS_FAMILIES_RECURRENT_LAYERS_H_
#define KINGLET_CONVERTERS_FAMILIES_RECURRENT_LAYERS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/network/network.h"
#include "format/blocks.h"

namespace kinglet {

// An upper bound of the magnitude of a forget bias, which a cell adds when it runs.
inline constexpr double kLargestForgetBias = 1000;

struct RecurrentLayerNames {
  std::string input_weight, input_bias;
  std::string recurrent_weight, recurrent_bias;  // a QRNN has none; an LSTM may lack the bias
  std::vector<std::string> leftovers;            // tensors that may exist and are not used
  std::string projection = {};                   // of an LSTM that has one
};

// The names of a torch.nn.LSTM, GRU or RNN of one direction: "<module>weight_ih_l0", .. for as many
// layers as `weights` has, at least one.
std::vector<RecurrentLayerNames> TorchLayers(const std::string& module,
                                             std::span<const CheckpointTensor> weights);

class RecurrentLayers {
 public:
  // Without a cell, the shape of each recurrent weight tells LSTM from GRU. REQUIRES: the network
  // outlives it.
  RecurrentLayers(Network& network, std::optional<RecurrentCell> cell)
      : network_(network), cell_(cell) {}

  // Sets the embedding's width. Call before claiming a layer, if the width is known.
  void SetInputs(uint64_t inputs) { inputs_ = width_ = inputs; }
  // Claims the next layer's tensors. Sizes that follow from a faulty tensor are unknown and not
  // checked.
  void Claim(const RecurrentLayerNames& names);
  // The outputs of the last layer claimed, or, before the first, the embedding's width. 0: unknown.
  uint64_t width() const { return width_; }
  // The units of each claimed layer.
  std::vector<uint64_t> Units() const;
  // The block, without a name; its tensors go to the draft. REQUIRES: CheckNames found nothing.
  RecurrentDecoder Describe();

 private:
  // A layer's tensors; nullptr if the layer has none or the tensor is faulty.
  struct ClaimedLayer {
    RecurrentCell cell = RecurrentCell::kLstm;
    uint64_t units = 0, outputs = 0, inputs = 0;
    bool previous_input = false;  // a QRNN whose window is two tokens
    const CheckpointTensor* input_weight = nullptr;
    const CheckpointTensor* input_bias = nullptr;
    const CheckpointTensor* recurrent_weight = nullptr;
    const CheckpointTensor* recurrent_bias = nullptr;
    const CheckpointTensor* projection = nullptr;
  };

  void ClaimRecurrent(const RecurrentLayerNames& names, ClaimedLayer& layer);
  void FindCell(ClaimedLayer& layer);
  void ClaimQrnn(const RecurrentLayerNames& names, ClaimedLayer& layer);
  RecurrentLayer DescribeLayer(const ClaimedLayer& from);

  Network& network_;
  std::optional<RecurrentCell> cell_;
  uint64_t inputs_ = 0;
  uint64_t width_ = 0;
  std::vector<ClaimedLayer> layers_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_RECURRENT_LAYERS_H_
