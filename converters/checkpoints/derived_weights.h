// Weights that a module computes from trained tensors before it runs: weight drop, weight norm,
// spectral norm, pruning, parametrizations. A checkpoint has the trained tensors, and sometimes a
// copy of the weight as the last step of training computed it.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_DERIVED_WEIGHTS_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_DERIVED_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"

namespace kinglet {

struct DerivedWeight {
  std::string name;                  // of the weight; the checkpoint may lack it
  std::vector<std::string> trained;  // the tensors that it is computed from, all in the checkpoint
  // Whether the only trained tensor is the weight itself: weight drop changes it in training alone.
  bool dropped = false;
  // What kinglet computes: the product of the trained tensors (a mask of torch.nn.utils.prune), or
  // weight norm of a length and a direction. The other weights are refused.
  enum class Rule : uint8_t { kUnread, kProduct, kNorm };
  Rule rule = Rule::kUnread;
  // How the weight is computed, and what to do: "'m.weight' is computed from 'm.weight_g' and
  // 'm.weight_v' by weight norm (..)".
  std::string text;
};

// In the order of the checkpoint's tensors.
std::vector<DerivedWeight> DerivedWeights(std::span<const CheckpointTensor> weights);

// Replaces the trained tensors of each weight with a rule by the weight, computed in float64 and
// rounded once. Returns what was computed, for the user.
std::vector<std::string> ComputeWeights(CheckpointTensors& tensors);

// The name under which weight drop keeps the trained form of the weight `name`: "m.weight_raw" of
// "m.weight" (Salesforce's AWD-LSTM), or of "m.module.weight" (fastai). `name` itself if the
// checkpoint, whose names `has` knows, has neither.
std::string TrainedName(const std::string& name,
                        const std::function<bool(const std::string& name)>& has);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_DERIVED_WEIGHTS_H_
