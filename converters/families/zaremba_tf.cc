// The family `zaremba-tf`: LSTM language models of Zaremba et al. 2014 ("Recurrent Neural Network
// Regularization") from TensorFlow 1.
// Framework: the PTB tutorial's ptb_word_lm.py and lm/ptb_word_lm.py of
// chentingpc/dpq_embedding_compression, whose input may be a DPQ embedding (Chen, Li & Sun 2020).
// Files: TensorFlow's checkpoint, or an .npz of its variables (examples/tensorflow/export_npz.py).
// Peculiarities:
//   - a kernel [inputs + units, 4 units] multiplies the row [x; h]; its column blocks are in the
//     order i, j (candidate), f, o
//   - the cell adds its forget bias when it runs; the checkpoint does not store it
//   - the softmax weight is [units, words] and not tied to the embedding
//   - the options of a DPQ embedding (kdq_emb) are not in the file and follow from the shapes
//   - the file also holds the optimiser's slots and scalars (steps, learning rates)
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_path.h"
#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/checkpoints/config_file.h"
#include "converters/checkpoints/quoted.h"
#include "converters/families/config_options.h"
#include "converters/families/families.h"
#include "converters/families/recurrent_model.h"
#include "converters/network/network.h"
#include "converters/passes/dpq.h"
#include "converters/thread_shares.h"

namespace kinglet {
namespace {

constexpr std::string_view kCellScope = "Model/RNN/";
constexpr std::string_view kKernel = "lstm_cell/kernel";  // also of basic_lstm_cell
constexpr std::string_view kEmbedding = "Model/full_emb/embedding";
constexpr std::string_view kTutorialEmbedding = "Model/embedding";
constexpr std::string_view kQuery = "Model/kdq_emb/query_wemb";
constexpr std::string_view kKeys = "Model/kdq_emb/centroids_k";
constexpr std::string_view kValues = "Model/kdq_emb/centroids_v";
constexpr std::string_view kNormMean = "Model/kdq_emb/batch_normalization/moving_mean";
constexpr std::string_view kNormVariance = "Model/kdq_emb/batch_normalization/moving_variance";
constexpr double kNormEpsilon = 1e-3;  // of tf.layers.batch_normalization
constexpr std::string_view kSoftmaxWeight = "Model/softmax_w";
constexpr std::string_view kSoftmaxBias = "Model/softmax_b";
constexpr std::string_view kCudnnWeights = "Model/lstm_params";
constexpr uint64_t kGates = 4;
// Where the kernel has the column block of each gate in this project's order (i, f, candidate, o).
constexpr std::array<uint64_t, kGates> kBlockOf = {0, 2, 1, 3};
constexpr size_t kForget = 1;

// The number N of the last "layer_N" or "cell_N" on the path of a cell's kernel. 0 if there is
// neither, as in networks of one layer.
uint64_t LayerOf(std::string_view name) {
  uint64_t layer = 0;
  for (const std::string_view prefix : {"/layer_", "/cell_"}) {
    const size_t at = name.rfind(prefix);
    if (at == std::string_view::npos) continue;
    const std::string_view digits = name.substr(at + prefix.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), layer);
  }
  return layer;
}

// The framework's configurations and flags, which no checkpoint stores.
constexpr std::array<FixedOption, 1> kFixedOfZaremba = {{{"rnn_mode", "'basic'|'block'"}}};
constexpr OptionTable kZarembaConfig = {
    "`config.yaml`, `--config`",
    "forget_bias hidden_size num_layers vocab_size",
    kFixedOfZaremba,
    "batch_size data_path init_scale keep_prob learning_rate lr_decay max_epoch max_grad_norm "
    "max_max_epoch model num_gpus num_steps save_path use_fp16",
    {},
    "forget_bias hidden_size num_layers vocab_size"};

struct Layer {
  std::string kernel_name, bias_name;
  const CheckpointTensor* kernel = nullptr;  // [inputs + units, 4 units]
  const CheckpointTensor* bias = nullptr;    // [4 units]
  uint64_t inputs = 0, units = 0;
};

// Transposes rows of a kernel, [rows, 4 units], to [4 units, rows] and orders the gates as this
// project does.
std::vector<float> GateRows(std::span<const float> kernel, uint64_t units) {
  const uint64_t columns = kGates * units, rows = kernel.size() / columns;
  std::vector<float> out(kernel.size());
  for (uint64_t gate = 0; gate < kGates; ++gate) {
    for (uint64_t unit = 0; unit < units; ++unit) {
      const uint64_t column = kBlockOf[gate] * units + unit;
      for (uint64_t row = 0; row < rows; ++row) {
        out[(gate * units + unit) * rows + row] = kernel[row * columns + column];
      }
    }
  }
  return out;
}

// The tensors of a DPQ embedding, which replaces the full one.
struct DpqTensors {
  const CheckpointTensor* query = nullptr;
  const CheckpointTensor* keys = nullptr;
  const CheckpointTensor* values = nullptr;  // nullptr: the keys
  const CheckpointTensor* mean = nullptr;
  const CheckpointTensor* variance = nullptr;
};

struct DpqInput {
  DpqTraining training;
  DpqTensors tensors;
};

// The settings of a configuration, if there is one.
struct ZarembaSettings {
  std::optional<double> forget_bias;
  std::string path;
  std::vector<StatedSize> sizes;
};

Result<ZarembaSettings> ReadZarembaSettings(const FamilyInput& input) {
  ZarembaSettings settings;
  settings.path = input.config.empty() ? ConfigNextTo(input.checkpoint) : input.config;
  if (settings.path.empty()) return settings;
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ConfigFile::Read(settings.path));
  KINGLET_RETURN_IF_ERROR(CheckConfig(kZarembaConfig, file, input.ignored));
  for (const auto& [name, what] : {std::pair("hidden_size", StatedSize::kUnits),
                                   {"num_layers", StatedSize::kLayers},
                                   {"vocab_size", StatedSize::kWords}}) {
    if (!file.Has(name)) continue;
    KINGLET_ASSIGN_OR_RETURN(const int64_t size, file.Integer(name));
    settings.sizes.push_back({name, size, what});
  }
  if (input.config.empty() && !file.Has("forget_bias")) return settings;
  KINGLET_ASSIGN_OR_RETURN(const double bias, file.Number("forget_bias"));
  if (!(std::abs(bias) <= kLargestForgetBias)) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, settings.path, "forget_bias",
                           "a number from -1000 to 1000", std::to_string(bias));
  }
  settings.forget_bias = bias;
  return settings;
}

class ZarembaLoader {
 public:
  ZarembaLoader(const FamilyInput& input, const ZarembaSettings& settings)
      : weights_(input.weights),
        network_(input.weights, input.report),
        forget_bias_(settings.forget_bias.value_or(0)) {
    names_.configuration = settings.path;
    names_.stated = settings.sizes;
  }

  Result<LoadedModel> Load() {
    KINGLET_RETURN_IF_ERROR(FindLayers());
    ClaimEmbedding();
    for (Layer& layer : layers_) ClaimLayer(layer);
    ClaimSoftmax();
    ClaimLeftovers();
    KINGLET_RETURN_IF_ERROR(network_.CheckNames("a " + std::string(kZaremba.name) + " network"));
    KINGLET_RETURN_IF_ERROR(AssignCodes());
    DescribeAsTorch();
    KINGLET_ASSIGN_OR_RETURN(LoadedModel model, LoadRecurrent(names_, as_torch_));
    if (!note_.empty()) model.notes.push_back(std::move(note_));
    return model;
  }

 private:
  Status FindLayers() {
    std::map<uint64_t, std::string> kernels;
    for (const CheckpointTensor& tensor : weights_) {
      if (!tensor.name.starts_with(kCellScope) || !tensor.name.ends_with(kKernel)) continue;
      const auto [other, added] = kernels.emplace(LayerOf(tensor.name), tensor.name);
      if (!added) {
        return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint",
                               "layer " + std::to_string(other->first), "one cell",
                               QuotedName(other->second) + " and " + QuotedName(tensor.name));
      }
    }
    // A missing layer is reported under the name that the framework would give it.
    const uint64_t highest = kernels.empty() ? 0 : kernels.rbegin()->first;
    for (uint64_t i = 0; i <= highest && i <= kernels.size(); ++i) {
      const auto found = kernels.find(i);
      Layer layer;
      layer.kernel_name = found != kernels.end()
                              ? found->second
                              : std::string(kCellScope) + "layer_" + std::to_string(i) + "/rnn/" +
                                    std::string(kKernel);
      const std::string cell =
          layer.kernel_name.substr(0, layer.kernel_name.size() - std::string_view("kernel").size());
      layer.bias_name = cell + "bias";
      layers_.push_back(std::move(layer));
    }
    return {};
  }

  void ClaimEmbedding() {
    if (network_.Has(kQuery)) {
      ClaimDpq();
      return;
    }
    const bool tutorial = !network_.Has(kEmbedding) && network_.Has(kTutorialEmbedding);
    embedding_ = network_.ClaimUnshaped(std::string(tutorial ? kTutorialEmbedding : kEmbedding));
    if (embedding_ == nullptr) return;
    if (embedding_->shape.size() != 2 || embedding_->shape[0] == 0 || embedding_->shape[1] == 0) {
      network_.NoteMisshaped(*embedding_, "[words, width]");
      return;
    }
    words_ = embedding_->shape[0];
    width_ = embedding_->shape[1];
  }

  // The tensors of a DPQ embedding, [words, D * d_in], [D or 1, K, d_in] and [D or 1, K, d_out],
  // where D is the number of positions and K that of choices. DPQ-VQ has no values of its own. Rows
  // are as wide as the first layer's input: D values one after the other, or, additive, their mean.
  void ClaimDpq() {
    DpqTraining& dpq = dpq_.emplace().training;
    DpqTensors& tensors = dpq_->tensors;
    tensors.query = network_.ClaimUnshaped(std::string(kQuery));
    tensors.keys = network_.ClaimUnshaped(std::string(kKeys));
    if (network_.Has(kValues)) tensors.values = network_.ClaimUnshaped(std::string(kValues));
    const Shape query = tensors.query->shape;
    const Shape keys = tensors.keys == nullptr ? Shape() : tensors.keys->shape;
    const uint64_t choices = keys.size() == 3 ? keys[1] : 0;
    for (const auto& [name, tensor] :
         {std::pair(kNormMean, &tensors.mean), std::pair(kNormVariance, &tensors.variance)}) {
      *tensor = network_.Claim(std::string(name), {choices});
    }
    if (query.size() != 2 || Count(query) == 0) {
      network_.NoteMisshaped(*tensors.query, "[words, D n] for D positions");
      return;
    }
    words_ = query[0];
    if (tensors.keys == nullptr) return;
    if (keys.size() != 3 || Count(keys) == 0 || query[1] % keys[2] != 0 ||
        (keys[0] != 1 && keys[0] != query[1] / keys[2])) {
      network_.NoteMisshaped(
          *tensors.keys, "[D or 1, choices, n] for queries of D n = " + std::to_string(query[1]));
      return;
    }
    const Shape values = tensors.values == nullptr ? keys : tensors.values->shape;
    const uint64_t positions = query[1] / keys[2], network = NetworkInputs();
    const bool fits = values.size() == 3 && values[0] == keys[0] && values[1] == keys[1];
    dpq.additive = fits && positions > 1 && values[2] == network;
    width_ = fits ? (dpq.additive ? 1 : positions) * values[2] : 0;
    if (!fits || (network > 0 && width_ != network)) {
      network_.NoteMisshaped(tensors.values == nullptr ? *tensors.keys : *tensors.values,
                             "[" + std::to_string(keys[0]) + ", " + std::to_string(choices) +
                                 ", n] with n = " + std::to_string(network) + " or, of each of " +
                                 std::to_string(positions) + " positions, its part");
      width_ = 0;
      return;
    }
    dpq.response =
        tensors.values == nullptr ? DpqTraining::Response::kEuclidean : DpqTraining::Response::kDot;
    dpq.batch_norm = DpqTraining::BatchNorm::kPerChoice;
    dpq.epsilon = kNormEpsilon;
    dpq.shared = keys[0] == 1 && positions > 1;
    dpq.words = words_;
    dpq.positions = positions;
    dpq.choices = choices;
    dpq.key_length = keys[2];
    dpq.value_length = values[2];
  }

  // The inputs of the first layer, as its kernel [inputs + n, 4 n] has them; 0: unknown.
  uint64_t NetworkInputs() const {
    const CheckpointTensor* kernel = network_.Find(layers_.front().kernel_name);
    if (kernel == nullptr || kernel->shape.size() != 2) return 0;
    const uint64_t units = kernel->shape[1] / kGates;
    return kernel->shape[0] > units ? kernel->shape[0] - units : 0;
  }

  // Makes codes of a DPQ embedding, if that is the input.
  Status AssignCodes() {
    if (!dpq_) return {};
    DpqTraining& training = dpq_->training;
    const DpqTensors& tensors = dpq_->tensors;
    std::vector<float> query, keys, values, mean, variance;
    for (const auto& [from, to] :
         {std::pair(tensors.query, &query), std::pair(tensors.keys, &keys),
          std::pair(tensors.values, &values), std::pair(tensors.mean, &mean),
          std::pair(tensors.variance, &variance)}) {
      if (from == nullptr) continue;
      KINGLET_ASSIGN_OR_RETURN(*to, ReadFinite(*from));
    }
    training.query = query;
    training.keys = keys;
    training.values = values;
    training.mean = mean;
    training.variance = variance;
    KINGLET_ASSIGN_OR_RETURN(DpqCodes codes, AssignDpqCodes(training, MachineThreads()));
    note_ = NearCodesNote(codes, std::string(kQuery));
    names_.coded_input = std::move(codes.table);
    return {};
  }

  void ClaimLayer(Layer& layer) {
    layer.kernel = network_.ClaimUnshaped(layer.kernel_name);
    layer.inputs = width_;
    width_ = 0;
    if (layer.kernel != nullptr) {
      const Shape& shape = layer.kernel->shape;
      const uint64_t units = shape.size() == 2 && shape[1] % kGates == 0 ? shape[1] / kGates : 0;
      // inputs == 0: the previous layer is faulty, so its units are unknown.
      if (units > 0 && shape[0] > units &&
          (layer.inputs == 0 || shape[0] - units == layer.inputs)) {
        width_ = layer.units = units;
      } else {
        const std::string inputs = layer.inputs == 0 ? "m" : std::to_string(layer.inputs);
        network_.NoteMisshaped(*layer.kernel, "[" + inputs + " + n, 4 n] for n units");
      }
    }
    layer.bias = network_.Claim(layer.bias_name, {kGates * layer.units});
  }

  void ClaimSoftmax() {
    const std::string weight(kSoftmaxWeight), bias(kSoftmaxBias);
    softmax_weight_ = network_.Claim(weight, {width_, words_});
    softmax_bias_ = network_.Claim(bias, {words_});
  }

  // The name of an optimiser's slot is its variable's name, a slash and its own.
  void ClaimLeftovers() {
    for (const CheckpointTensor& tensor : weights_) {
      const std::string_view name = tensor.name;
      const bool slot = network_.Claimed(name.substr(0, std::min(name.size(), name.rfind('/'))));
      if (slot || tensor.shape.empty()) network_.ClaimUnshaped(tensor.name);
    }
  }

  void Add(std::string name, Shape shape, std::function<Result<std::vector<float>>()> values) {
    as_torch_.push_back({std::move(name), std::move(shape), std::move(values)});
  }

  // Adds the network's tensors with PyTorch's names, orientation and order of gates. Their values
  // are read after the loader is gone.
  void DescribeAsTorch() {
    names_.network = "a " + std::string(kZaremba.name) + " network";
    names_.cell = RecurrentCell::kLstm;
    if (embedding_ != nullptr) {
      Add("encoder.weight", embedding_->shape,
          [embedding = *embedding_] { return ReadFinite(embedding); });
      as_torch_.back().made = embedding_->made;
    }
    for (const Layer& layer : layers_) {
      const std::string suffix = "_l" + std::to_string(names_.layers.size());
      const RecurrentLayerNames names = {
          "rnn.weight_ih" + suffix, "rnn.bias_ih" + suffix, "rnn.weight_hh" + suffix, "", {}};
      const uint64_t rows = kGates * layer.units, units = layer.units;
      const uint64_t inputs = layer.kernel->shape[0] - units;
      Add(names.input_weight, {rows, inputs},
          [kernel = *layer.kernel, units, inputs] { return KernelPart(kernel, units, 0, inputs); });
      Add(names.recurrent_weight, {rows, units}, [kernel = *layer.kernel, units, inputs] {
        return KernelPart(kernel, units, inputs, units);
      });
      Add(names.input_bias, {rows}, [bias = *layer.bias, units, forget = forget_bias_] {
        return BiasOf(bias, units, forget);
      });
      names_.layers.push_back(names);
    }
    Add("decoder.weight", {words_, width_},
        [weight = *softmax_weight_] { return ReadFiniteTransposed(weight); });
    Add("decoder.bias", {words_}, [bias = *softmax_bias_] { return ReadFinite(bias); });
  }

  static Result<std::vector<float>> KernelPart(const CheckpointTensor& kernel, uint64_t units,
                                               uint64_t first, uint64_t rows) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> part, ReadFiniteRows(kernel, first, rows));
    return GateRows(part, units);
  }

  static Result<std::vector<float>> BiasOf(const CheckpointTensor& tensor, uint64_t units,
                                           double forget_bias) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> bias, ReadFinite(tensor));
    std::vector<float> gates = GateRows(bias, units);
    const auto forget = gates.begin() + static_cast<std::ptrdiff_t>(kForget * units);
    for (auto value = forget; value != forget + static_cast<std::ptrdiff_t>(units); ++value) {
      *value = static_cast<float>(double{*value} + forget_bias);
    }
    return gates;
  }

  std::span<const CheckpointTensor> weights_;
  Network network_;  // only checks the file's names and shapes
  double forget_bias_;
  uint64_t words_ = 0;
  uint64_t width_ = 0;                           // of the previous layer's output; 0: unknown
  const CheckpointTensor* embedding_ = nullptr;  // nullptr: a DPQ embedding
  const CheckpointTensor* softmax_weight_ = nullptr;
  const CheckpointTensor* softmax_bias_ = nullptr;
  std::optional<DpqInput> dpq_;
  std::string note_;  // for the user
  std::vector<Layer> layers_;
  RecurrentNames names_;
  CheckpointTensors as_torch_;
};

std::span<const OptionTable> ZarembaOptions() { return {&kZarembaConfig, 1}; }

// The forget bias, `forget_bias` of the configuration file, or 0 without a file, becomes part of
// the LSTM's bias. Errors: KINGLET_INVALID_CHECKPOINT for missing, unused and mis-shaped tensors
// (all in one message) and for values that are not finite; KINGLET_UNSUPPORTED for the opaque
// weights of cuDNN's LSTM; those of ConfigFile.
Result<LoadedModel> LoadZaremba(const FamilyInput& input) {
  if (HasTensor(input.weights, kCudnnWeights)) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "checkpoint", input.checkpoint,
                           "a network of LSTMBlockCell or BasicLSTMCell",
                           QuotedName(kCudnnWeights) + ", whose layout only cuDNN knows");
  }
  KINGLET_ASSIGN_OR_RETURN(const ZarembaSettings settings, ReadZarembaSettings(input));
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, ZarembaLoader(input, settings).Load());
  if (!settings.forget_bias) {
    model.notes.emplace_back(
        "the file does not state the cells' forget bias, which is assumed to be 0, as in "
        "ptb_word_lm.py; forget_bias in config.yaml next to it, or in a --config file, sets "
        "another");
  }
  return model;
}

}  // namespace

constexpr Family kZaremba = {
    .name = "zaremba-tf",
    .marks = "Model/softmax_w Model/softmax_b",
    .load = LoadZaremba,
    .options = ZarembaOptions,
    .word_order = WordOrder::kByCountThenCharacters,
};

}  // namespace kinglet
