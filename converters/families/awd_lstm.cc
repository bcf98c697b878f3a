#include "converters/families/awd_lstm.h"

#include <string>
#include <vector>

#include "converters/families/recurrent_model.h"
#include "converters/sources/derived_weights.h"
#include "converters/sources/saved_module.h"

namespace kinglet {
namespace {

// The training code splits the softmax of larger vocabularies.
constexpr uint64_t kMaxWordsUnsplit = 75'000;

class Names {
 public:
  explicit Names(std::span<const SourceTensor> weights) : weights_(weights) {}

  bool Has(const std::string& name) const { return HasTensor(weights_, name); }
  bool HasPrefix(const std::string& prefix) const { return HasTensorUnder(weights_, prefix); }
  // The prefix of the module inside a weight drop, or `prefix` if there is no weight drop.
  std::string Inside(const std::string& prefix) const {
    return HasPrefix(prefix + "module.") ? prefix + "module." : prefix;
  }
  // The name of the trained weight. With weight drop, `name` itself is a leftover.
  std::string Trained(const std::string& name, std::vector<std::string>& leftovers) const {
    std::string trained =
        TrainedName(name, [this](const std::string& other) { return Has(other); });
    if (trained != name) leftovers.push_back(name);
    return trained;
  }

 private:
  std::span<const SourceTensor> weights_;
};

RecurrentLayerNames LayerNames(const Names& names, const std::string& prefix, bool qrnn) {
  RecurrentLayerNames layer;
  if (qrnn) {
    const std::string linear = names.Inside(prefix + "linear.");
    layer.input_weight = names.Trained(linear + "weight", layer.leftovers);
    layer.input_bias = linear + "bias";
    return layer;
  }
  const std::string module = names.Inside(prefix);
  layer.input_weight = names.Trained(module + "weight_ih_l0", layer.leftovers);
  layer.input_bias = module + "bias_ih_l0";
  layer.recurrent_weight = names.Trained(module + "weight_hh_l0", layer.leftovers);
  layer.recurrent_bias = module + "bias_hh_l0";
  return layer;
}

// The first words of the tails. The criterion's list has 0 before them and a number above all words
// behind them.
Result<std::vector<uint64_t>> SplitsOf(const FamilyInput& input) {
  std::vector<uint64_t> splits;
  const PickleNode* criterion = input.modules.criterion;
  const NodeRef node = criterion == nullptr ? nullptr : ModuleAttribute(*criterion, "splits");
  const auto* list = node == nullptr ? nullptr : node->As<PickleList>();
  if (list == nullptr) return splits;
  for (size_t i = 1; i + 1 < list->items.size(); ++i) {
    const auto* split = list->items[i]->As<int64_t>();
    if (split == nullptr || *split <= 0) {
      return Status::Refusal(
          KINGLET_INVALID_CHECKPOINT, input.checkpoint, "splits of the criterion", "words above 0",
          split == nullptr ? list->items[i]->Describe() : std::to_string(*split));
    }
    splits.push_back(static_cast<uint64_t>(*split));
  }
  return splits;
}

// Refuses QRNN layers whose evaluation differs. The training code itself makes none.
Status CheckQrnnLayer(const FamilyInput& input, size_t index) {
  if (input.modules.network == nullptr) return {};
  const std::string path = "rnns." + std::to_string(index);
  const NodeRef layer = Submodule(*input.modules.network, path);
  if (layer == nullptr) return {};
  const auto refuse = [&](const char* what, const char* expected, const std::string& found) {
    return Status::Refusal(KINGLET_UNSUPPORTED, input.checkpoint, path + ", " + what, expected,
                           found);
  };
  if (const NodeRef zoneout = ModuleAttribute(*layer, "zoneout"); zoneout != nullptr) {
    const auto* real = zoneout->As<double>();
    const auto* integer = zoneout->As<int64_t>();
    if ((real != nullptr && *real != 0) || (integer != nullptr && *integer != 0)) {
      return refuse("zoneout", "0", "another number");
    }
  }
  if (const NodeRef gate = ModuleAttribute(*layer, "output_gate"); gate != nullptr) {
    const bool* on = gate->As<bool>();
    if (on != nullptr && !*on) return refuse("output gate", "one", "none");
  }
  return {};
}

}  // namespace

bool LooksLikeAwdLstm(std::span<const SourceTensor> weights) {
  const Names names(weights);
  return names.Has("encoder.weight") && names.HasPrefix("rnns.0.");
}

Result<LoadedModel> LoadAwdLstm(const FamilyInput& input) {
  const Names found(input.weights);
  RecurrentNames names;
  names.network = "an " + std::string(kAwdLstmFamily) + " network";
  KINGLET_ASSIGN_OR_RETURN(names.splits, SplitsOf(input));
  const bool qrnn = found.HasPrefix("rnns.0.linear.");
  if (qrnn) names.cell = RecurrentCell::kQrnn;
  std::string prefix = "rnns.0.";
  do {
    if (qrnn) KINGLET_RETURN_IF_ERROR(CheckQrnnLayer(input, names.layers.size()));
    names.layers.push_back(LayerNames(found, prefix, qrnn));
    prefix = "rnns." + std::to_string(names.layers.size()) + ".";
  } while (found.HasPrefix(prefix));
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadRecurrent(names, input.weights));
  const uint32_t words = model.draft.description.vocabulary_size;
  if (input.modules.criterion == nullptr && words > kMaxWordsUnsplit) {
    model.notes.push_back("the checkpoint has no criterion: the softmax over " +
                          std::to_string(words) + " words is taken to be unsplit");
  }
  return model;
}

}  // namespace kinglet
