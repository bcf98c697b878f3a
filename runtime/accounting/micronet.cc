#include "runtime/accounting/micronet.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <variant>

#include "format/overloaded.h"
#include "runtime/accounting/define_operations.h"

namespace kinglet {
namespace {

// The challenge's baseline of WikiText-103: 159 million parameters, 318 million operations.
constexpr double kBaselineParameters = 159e6, kBaselineOperations = 318e6;
constexpr int kFloatBits = 32;

// --- operations. Sources: the notebook's functions of the same names. ---

// n_out sums of n_in products each.
OperationTally Matmul(double n_in, double n_out) { return {n_in * n_out, (n_in - 1) * n_out, 0}; }

// A linear layer: the dense count times the density, so that each non-zero weight costs a product
// and each non-zero bias an addition.
OperationTally LinearLayer(double n_in, double weight_nonzeros, double bias_nonzeros) {
  return {weight_nonzeros, weight_nonzeros * (n_in - 1) / n_in + bias_nonzeros, 0};
}

// n exponentials, n - 1 additions, n divisions; subtracting the maximum is free. With n = 0 this is
// -1, as in the notebook.
OperationTally Softmax(double n) { return {0, 0, 3 * n - 1}; }

// Mean, variance, deviation, normalisation, gain and bias: d + 2d + (d - 1) + 1 + d + d.
OperationTally LayerNormalisation(double d) { return {0, 0, 6 * d}; }

OperationTally Residual(double d) { return {0, d, 0}; }
OperationTally Relu(double n) { return {0, 0, n}; }

// Sums over positions, as in the residual, and a division for each mean.
OperationTally SumsOfSubVectors(const CodedView& coded, double elements) {
  const bool mean = coded.scheme.combine == Combine::kMean;
  return {0, elements * (Real(coded.scheme.positions) - 1), mean ? elements : 0};
}
bool SumsSubVectors(const TensorView& table) {
  return table.coded() != nullptr && table.coded()->scheme.combine != Combine::kConcatenate;
}

// --- bits ---

// The bits of a tensor's entries, or, for a coded table, of its codebook's entries.
int BitsOf(std::span<const TensorView> tensors, TensorId id) {
  return std::visit(
      Overloaded{[](const DenseView& dense) { return dense.type == FloatType::kF16 ? 16 : 32; },
                 [](const PackedView& packed) { return packed.bits; },
                 [&](const CodedView& coded) { return BitsOf(tensors, coded.scheme.codebook); }},
      tensors[id].values);
}

// The bits of codes from -n to n. MicroNet truncates the last bits of a scale, which makes codes of
// b bits up to 2^b / 2^24 larger than 2^(b - 1) - 1.
int BitsOf(const ActivationQuantiser& quantiser) {
  const auto largest = static_cast<uint64_t>(LargestCode(quantiser));
  return 1 + static_cast<int>(std::bit_width(largest - largest / 128));
}
int BitsOf(const std::optional<ActivationQuantiser>& quantiser) {
  return quantiser ? BitsOf(*quantiser) : kFloatBits;
}
int BitsOf(const Plan& plan, BufferId id) { return BitsOf(plan.buffer(id).quantiser); }

// The bits of a product's input. The notebook quantises no projection of the hidden state and still
// weighs its products like the others, so in fixed point it counts with the hidden state's bits.
int BitsOf(const Plan& plan, BufferId x, TailInput input) {
  const bool fixed_point = !plan.buffer(x).quantiser && input == TailInput::kFixedPoint15;
  return BitsOf(plan, fixed_point ? plan.hidden : x);
}

// The bits of MicroNet's positions. The notebook never quantises positions and counts them like
// quantised values, so as floats they have the bits of the queries that they are multiplied with.
int BitsOf(const Plan& plan, const WindowAttention& op, const SlotColumns& slots) {
  return std::min(BitsOf(plan.weights, slots.columns), BitsOf(plan, op.qkv));
}

// --- one node each ---

class NodeRules {
 public:
  NodeRules(const Plan& plan, std::span<const uint64_t> nonzeros,
            std::span<const uint64_t> bin_counts, const TranslationMeans* means, bool encodes,
            const std::string& name, std::vector<Component>& components)
      : plan_(plan),
        nonzeros_(nonzeros),
        bin_counts_(bin_counts),
        means_(means),
        encodes_(encodes),
        name_(name),
        components_(components) {}

  // Looking up and scaling a row is free, coded or not. Sums of sub-vectors and a projection count
  // for the tokens of their bin. The notebook has no cache of rows, so a DeFINE unit or a character
  // CNN counts for every token, the latter with the mean number of bytes of its bin's words.
  void operator()(const EmbedRow& op) const {
    for (size_t i = 0; i < op.bins.size(); ++i) {
      const TensorView& table = plan_.weights[op.bins[i].table];
      if (SumsSubVectors(table)) {
        Add(".combine." + std::to_string(i),
            SumsOfSubVectors(*table.coded(), Real(Cols(table.shape))) * Frequency(i));
      }
      if (!op.bins[i].projection) continue;
      AddLinear(".projection." + std::to_string(i), *op.bins[i].projection, std::nullopt,
                Frequency(i), BitsOf(plan_.weights, op.bins[i].table));
    }
    for (size_t i = 0; i < op.units.size(); ++i) {
      const DefineRows& unit = op.units[i];
      if (const EmbeddingBin* const bin = op.SpellingOf(unit)) {
        AddFilters(*bin, Frequency(unit.first_bin + unit.bin_count - 1));
      }
      AddUnit(unit, UnitName(op.units.size(), i), Frequency(unit.first_bin, unit.bin_count));
    }
  }

  void operator()(const LayerNorm& op) const {
    Add("", LayerNormalisation(Real(plan_.buffer(op.x).count)));
  }

  // Squares, mean, root and divisions: by the notebook's formula for layer norm, without the mean,
  // gain and bias that this norm lacks.
  void operator()(const RootMeanSquareNorm& op) const {
    Add("", {0, 0, 3 * Real(plan_.buffer(op.x).count)});
  }
  void operator()(const ApplyActivation& op) const {
    Add("", ActivationOperations(op.activation, Real(plan_.buffer(op.x).count)));
  }

  // A token is charged for every product, whichever cluster its token is in.
  void operator()(const MatVec& op) const {
    AddLinear("", op.weight, op.bias, 1, BitsOf(plan_, op.x, op.input));
    if (op.relu) Add(".relu", Relu(Real(Rows(plan_.weights[op.weight].shape))));
  }

  // A linear layer with the codebook's weights, run once for each position that shares the pool.
  void operator()(const PartialProducts& op) const {
    const CodingScheme& scheme = plan_.weights[op.table].coded()->scheme;
    AddLinear("", scheme.codebook, std::nullopt, SharesPoolOfParts(scheme) ? scheme.positions : 1,
              BitsOf(plan_, op.x, op.input));
  }
  // The codebook's weights in as many rows as the table has sub-vectors, each of the mean number of
  // non-zero weights.
  void operator()(const CodedProduct& op) const {
    const TensorView& table = plan_.weights[op.table];
    const CodingScheme& scheme = table.coded()->scheme;
    AddLinear("", scheme.codebook, std::nullopt,
              Real(Rows(table.shape) * scheme.positions) /
                  Real(Rows(plan_.weights[scheme.codebook].shape)),
              BitsOf(plan_, op.x, op.input));
    AddSums(".sums", op);
  }
  void operator()(const CodedSums& op) const { AddSums("", op); }
  template <class Sums>
  void AddSums(const std::string& part, const Sums& op) const {
    const TensorView& table = plan_.weights[op.table];
    OperationTally sums = SumsOfSubVectors(*table.coded(), Real(Rows(table.shape)));
    if (op.bias) sums.additions += Real(nonzeros_[*op.bias]);
    Add(part, sums);
    if (op.relu) Add(".relu", Relu(Real(Rows(table.shape))));
  }

  // Quantising and dequantising are free.
  void operator()(const Quantise&) const {}

  void operator()(const kinglet::Add& op) const {
    Add("", Residual(Real(plan_.buffer(op.y).count)));
  }

  // The notebook has no class logits: sums, as in its residual.
  void operator()(const AddScalar& op) const { Add("", Residual(Real(op.count))); }

  // The scale key_size^-1/2 is free. The window counts as full from the first token on, except in a
  // translation, which is too short for that.
  void operator()(const WindowAttention& op) const {
    const double window = means_ == nullptr ? op.window : means_->targets_seen, heads = op.heads;
    const int bits = BitsOf(plan_, op.qkv);
    Add(".query_keys", Matmul(op.key_size, window * heads), bits);
    const auto add_positions = [&](double scored, double biases, int of_positions) {
      OperationTally products = Matmul(op.key_size, scored);
      products.additions += scored;  // the sum of both scores
      products.additions += biases;
      Add(".query_positions", products, std::max(bits, of_positions));
      return scored;
    };
    // The notebook has MicroNet's positions only, and counts one product with the query and one
    // softmax for all heads together. Other positions count for each head.
    const double scored =
        std::visit(Overloaded{[&](const std::monostate&) { return window * heads; },
                              [&](const SlotColumns& slots) {
                                return add_positions(window, 0, BitsOf(plan_, op, slots));
                              },
                              [&](const RelativeRows&) {  // computed in floats
                                return add_positions(window * heads, window * heads, kFloatBits);
                              }},
                   op.positions);
    Add(".softmax", Softmax(window) * (scored / window));
    Add(".values", Matmul(window, heads * op.value_size),
        std::max(bits, BitsOf(op.weights_quantiser)));
  }
  // Sums, as in the residual; making the positions is free.
  void operator()(const AddPositionRow& op) const {
    Add("", Residual(Real(plan_.buffer(op.y).count)));
  }
  void operator()(const AddSinusoids& op) const {
    Add("", Residual(Real(plan_.buffer(op.y).count)));
  }
  void operator()(const AddQueryBias& op) const {
    Add("", Residual(Real(Count(plan_.weights[op.bias].shape))));
  }

  void operator()(const LogSumExp& op) const { Add("", Softmax(Real(plan_.buffer(op.x).count))); }

  // Storing a pair is free, as are theta, the mixture with lambda and all logarithms. The cache
  // counts as full.
  void operator()(const CacheAppend&) const {}
  void operator()(const CacheWeights& op) const {
    Add("", Matmul(Real(plan_.buffer(op.hidden).count), op.capacity), BitsOf(plan_, op.hidden));
    Add(".softmax", Softmax(op.capacity));
  }

  // The notebook has no recurrent cells. By its formulas for other layers, a product is one
  // multiplication, a sum one addition (as in its residual), a function of one number one other
  // operation (as in its ReLU).
  void operator()(const LstmGates& op) const { AddGates(op.hidden, 3, 5, 5); }
  void operator()(const GruGates& op) const { AddGates(op.hidden, 3, 5, 3); }
  void operator()(const RnnGates& op) const { AddGates(op.hidden, 0, 1, 1); }
  void operator()(const QrnnGates& op) const { AddGates(op.hidden, 3, op.previous ? 5 : 2, 3); }

  // Bags of words are counted in the same way; the maximum is a function.
  void operator()(const BagAppend& op) const { AddGates(op.embedded, 0, 1, op.largest ? 1 : 0); }
  void operator()(const BagFeatures& op) const { AddGates(op.sum, 0, 0, 1); }
  void operator()(const ScaleShiftRelu& op) const { AddGates(op.x, 1, 1, 1); }

  // Attention to the source is not in the notebook: its matrix products and softmax, for each head.
  void operator()(const StoreRow&) const {}
  void operator()(const LoadRow&) const {}
  void operator()(const Join&) const {}
  void operator()(const SourceAttention& op) const {
    const double seen = encodes_ ? means_->sources_of_source : means_->sources_seen;
    // The query and what it is compared with are floats or codes together.
    const int bits = std::max(BitsOf(plan_, op.query), BitsOf(plan_, op.memory));
    Add(".query_keys", Matmul(op.key_size, seen * op.heads),
        op.score == SourceScore::kAdditive ? kFloatBits : bits);
    if (op.score == SourceScore::kAdditive) {
      const double functions = seen * op.heads * op.key_size;
      Add(".tanh", {0, functions, functions});
    }
    Add(".softmax", Softmax(seen) * op.heads);
    Add(".values", Matmul(seen, double{1} * op.heads * op.value_size),
        std::max(BitsOf(plan_, op.memory), BitsOf(op.weights_quantiser)));
  }

 private:
  // The fraction of tokens whose word is in the bin.
  double Frequency(size_t first_bin, size_t bins = 1) const {
    if (bin_counts_.empty()) return 1;  // NeedsBinCounts
    const auto sum = [](std::span<const uint64_t> counts) {
      return Real(std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
    };
    return sum(bin_counts_.subspan(first_bin, bins)) / sum(bin_counts_);
  }
  // `bits` are those of the wider operand of the multiplications, 32 for floats.
  void Add(const std::string& part, const OperationTally& tally, int bits = kFloatBits) const {
    components_.push_back({name_ + part, tally, tally.multiplications, 1, bits});
  }
  void AddGates(BufferId hidden, double products, double sums, double functions) const {
    const double units = Real(plan_.buffer(hidden).count);
    Add("", OperationTally{products, sums, functions} * units);
  }
  // A filter is a linear layer of each window, with a sum for each bias; the maximum over windows
  // and 0 is a function of each sum, like the notebook's ReLU.
  void AddFilters(const EmbeddingBin& bin, double frequency) const {
    const uint32_t letters = MeanLetters(plan_, bin);
    for (size_t i = 0; i < bin.spelling->filters.size(); ++i) {
      const ByteFilter& filter = bin.spelling->filters[i];
      const double windows = WindowsOf(filter.width, letters, bin.spelling->longest);
      const std::string part = ".filter." + std::to_string(i);
      AddLinear(part, filter.weight, std::nullopt, frequency * windows, kFloatBits);
      components_.back().operations.additions += Real(nonzeros_[filter.bias]) * frequency;
      Add(part + ".maximum",
          OperationTally{0, 0, windows * Real(Rows(plan_.weights[filter.weight].shape))} *
              frequency);
    }
  }
  // The groups of a DeFINE layer are linear layers, which may share a matrix or a bias. A sigmoid
  // or tanh is a function of one number.
  void AddUnit(const DefineRows& define, const std::string& name, double frequency) const {
    for (size_t i = 0; i < define.unit.layers.size(); ++i) {
      const DefineLayer& layer = define.unit.layers[i];
      const DefineTensors& tensors = define.tensors[i];
      const std::string part = name + "." + std::to_string(i);
      const double out = Real(layer.out), groups = Real(layer.groups);
      const bool shared = layer.weights == DefineLayer::Weights::kShared;
      AddLinear(part, tensors.weight, std::nullopt, frequency * (shared ? groups : 1), kFloatBits);
      if (tensors.bias) {
        const bool repeated = layer.bias == DefineLayer::Bias::kShared;
        const double used = Real(nonzeros_[*tensors.bias]) * (repeated ? groups : 1) * frequency;
        components_.back().operations.additions += used;
      }
      if (layer.norm != DefineLayer::Norm::kNone) {
        Add(part + ".norm", LayerNormalisation(out) * frequency);
      }
      if (layer.activation != DefineLayer::Activation::kNone) {
        Add(part + ".activation", OperationsOf(layer).activation * frequency);
      }
      if (layer.residual == DefineLayer::Residual::kHighway) {
        Add(part + ".highway", OperationsOf(layer).residual * frequency);
      } else if (layer.residual != DefineLayer::Residual::kNone) {
        Add(part + ".residual", Residual(out) * frequency);
      }
    }
  }
  // `bits` are those of the input.
  void AddLinear(const std::string& part, WeightId weight, std::optional<WeightId> bias,
                 double frequency, int bits) const {
    const Shape& shape = plan_.weights[weight].shape;
    const double used = Real(nonzeros_[weight]);
    const OperationTally tally =
        LinearLayer(Real(Cols(shape)), used, bias ? Real(nonzeros_[*bias]) : 0) * frequency;
    components_.push_back({name_ + part, tally, tally.multiplications, used / Real(Count(shape)),
                           std::max(bits, BitsOf(plan_.weights, weight))});
  }

  const Plan& plan_;
  std::span<const uint64_t> nonzeros_, bin_counts_;
  const TranslationMeans* means_;  // null for a language model
  bool encodes_;
  const std::string& name_;
  std::vector<Component>& components_;
};

// --- storage ---

// A quantiser takes a 32-bit value for max_abs and, for its scale, a value without the bits that
// are always zero.
double QuantiserParameters(int bits) {
  return 1.0 + static_cast<double>(kFloatBits - bits) / kFloatBits;
}

// The bits of each tensor that a node keeps, and the 32-bit values of the quantisers. Recorded, not
// added up, so that a table that two nodes share counts once.
struct ChargedStorage {
  std::vector<int> bits;  // by tensor; 0 if the tensor is free
  double quantiser_parameters = 0;
};

class StorageRules {
 public:
  StorageRules(const Plan& plan, ChargedStorage& charged)
      : plan_(plan), tensors_(plan.weights), charged_(charged) {}

  void operator()(const CacheAppend&) const {}
  void operator()(const EmbedRow& op) const {
    for (const EmbeddingBin& bin : op.bins) {
      Charge(bin.table);
      if (bin.projection) Charge(*bin.projection);
      if (!bin.spelling) continue;
      for (const ByteFilter& filter : bin.spelling->filters) {
        Charge(filter.weight);
        Charge(filter.bias);
      }
    }
    for (const DefineRows& unit : op.units) {
      for (const DefineTensors& tensors : unit.tensors) {
        Charge(tensors.weight);
        if (tensors.bias) Charge(*tensors.bias);
      }
    }
  }
  // Gain and bias could be folded into the layer that follows: free.
  void operator()(const LayerNorm&) const {}
  void operator()(const RootMeanSquareNorm&) const {}
  void operator()(const ApplyActivation&) const {}
  void operator()(const MatVec& op) const {
    Charge(op.weight);
    if (op.bias) Charge(*op.bias);
  }
  void operator()(const PartialProducts& op) const { Charge(op.table); }
  void operator()(const CodedProduct& op) const {
    Charge(op.table);
    if (op.bias) Charge(*op.bias);
  }
  void operator()(const CodedSums& op) const {
    if (op.bias) Charge(*op.bias);
  }
  void operator()(const Quantise& op) const { ChargeQuantiser(BitsOf(plan_, op.codes)); }
  void operator()(const kinglet::Add&) const {}
  void operator()(const AddScalar&) const {}
  // A table that a formula could compute is free.
  void operator()(const AddPositionRow& op) const {
    if (!tensors_[op.table].derived) Charge(op.table);
  }
  void operator()(const AddSinusoids&) const {}
  void operator()(const AddQueryBias& op) const { Charge(op.bias); }
  void operator()(const WindowAttention& op) const {
    std::visit(Overloaded{[](const std::monostate&) {},
                          [&](const SlotColumns& slots) {
                            charged_.bits[slots.columns] = BitsOf(plan_, op, slots);
                          },
                          [&](const RelativeRows& relative) {  // a formula gives the frequencies
                            Charge(relative.projection);
                            Charge(relative.content_bias);
                            Charge(relative.position_bias);
                          }},
               op.positions);
    if (op.start_row) Charge(*op.start_row);
    if (op.weights_quantiser) ChargeQuantiser(BitsOf(*op.weights_quantiser));
  }
  void operator()(const LogSumExp&) const {}
  // theta and lambda are constants of the configuration, which are free.
  void operator()(const CacheWeights&) const {}
  void operator()(const LstmGates&) const {}
  void operator()(const GruGates&) const {}
  void operator()(const RnnGates&) const {}
  void operator()(const QrnnGates&) const {}
  void operator()(const BagAppend&) const {}
  void operator()(const BagFeatures&) const {}
  void operator()(const ScaleShiftRelu& op) const {
    Charge(op.scale);
    Charge(op.shift);
  }
  void operator()(const StoreRow&) const {}
  void operator()(const LoadRow&) const {}
  void operator()(const Join&) const {}
  void operator()(const SourceAttention& op) const {
    if (op.score_weight) Charge(*op.score_weight);
    if (op.weights_quantiser) ChargeQuantiser(BitsOf(*op.weights_quantiser));
  }

 private:
  void Charge(TensorId id) const {
    charged_.bits[id] = BitsOf(tensors_, id);
    if (const CodedView* coded = tensors_[id].coded()) Charge(coded->scheme.codebook);
  }
  void ChargeQuantiser(int bits) const {
    charged_.quantiser_parameters += QuantiserParameters(bits);
  }

  const Plan& plan_;
  std::span<const TensorView> tensors_;
  ChargedStorage& charged_;
};

// The notebook has no codes; a code counts with its bits.
double CodeParameters(const Shape& shape, const CodingScheme& scheme) {
  return Real(Rows(shape) * scheme.positions) * scheme.CodeBits() / kFloatBits;
}

MicronetOperations SumOf(const std::vector<Component>& components) {
  MicronetOperations sum;
  std::map<int, double> by_bits;
  for (const Component& component : components) {
    sum += component.operations;
    by_bits[component.bits] += component.operations.multiplications;
  }
  for (const auto& [bits, multiplications] : by_bits) {
    sum.weighted_multiplications += multiplications * bits / kFloatBits;
  }
  return sum;
}

Status CheckBinCounts(const Plan& plan, std::span<const uint64_t> bin_counts) {
  const size_t bins = EmbeddingOf(plan).bins.size();
  if (bin_counts.empty() && !NeedsBinCounts(plan)) return Status();
  const auto refuse = [&](const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "rules micronet-2019", "bin frequencies",
                           "one for each of " + std::to_string(bins) + " bins, not all 0", found);
  };
  if (bin_counts.size() != bins) return refuse(std::to_string(bin_counts.size()));
  double tokens = 0;
  for (const uint64_t count : bin_counts) tokens += Real(count);
  if (tokens == 0) return refuse("only zeros");
  if (tokens >= 0x1p63) return refuse("more tokens than can be counted");
  return Status();
}

}  // namespace

double MicronetCount::Score() const {
  return storage.TotalSize() / kBaselineParameters +
         operations.WeightedTotal() / kBaselineOperations;
}

bool NeedsBinCounts(const Plan& plan) {
  const EmbedRow& embedding = EmbeddingOf(plan);
  const size_t bins = embedding.bins.size();
  const auto differs = [&](const EmbeddingBin& bin) {
    return bin.projection || SumsSubVectors(plan.weights[bin.table]);
  };
  const auto is_of_some = [&](const DefineRows& unit) { return unit.bin_count < bins; };
  return bins > 1 && (std::any_of(embedding.bins.begin(), embedding.bins.end(), differs) ||
                      std::any_of(embedding.units.begin(), embedding.units.end(), is_of_some));
}

TranslationMeans MeansOf(const Plan& plan, const Trace& encoder, const Trace& decoder) {
  TranslationMeans means;
  means.source_bin_counts.resize(SourceEmbeddingOf(plan).bins.size());
  for (const auto& [path, count] : encoder.paths) {
    means.source_bin_counts[path.bin] += count;
    means.sources_of_source += Real(count) * Real(path.source_length);
  }
  means.sources_of_source /= Real(encoder.tokens());
  const uint64_t window = SteadyPosition(plan);
  for (const auto& [path, count] : decoder.paths) {
    means.targets_seen += Real(count) * Real(std::min(path.position + 1, window));
    means.sources_seen += Real(count) * Real(path.source_length);
  }
  means.targets_seen /= Real(decoder.tokens());
  means.sources_seen /= Real(decoder.tokens());
  return means;
}

Result<MicronetCount> CountMicronet2019(const Plan& plan, std::span<const uint64_t> nonzeros,
                                        std::span<const uint64_t> bin_counts,
                                        const TranslationMeans* means) {
  KINGLET_RETURN_IF_ERROR(CheckBinCounts(plan, bin_counts));
  MicronetCount count;
  ChargedStorage charged;
  charged.bits.resize(plan.weights.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const Node& node = plan.nodes[i];
    const bool encodes = IsOfEncoder(plan, i);
    std::visit(StorageRules(plan, charged), node.op);
    std::visit(NodeRules(plan, nonzeros, encodes ? means->source_bin_counts : bin_counts, means,
                         encodes, node.name, encodes ? count.encoder : count.components),
               node.op);
  }
  // Without a cache the notebook still adds a softmax over its 0 entries.
  if (!plan.cache && !plan.encoder) {
    count.components.push_back({"cache.weights.softmax", Softmax(0), 0, 1});
  }
  count.operations = SumOf(count.components);
  count.encoder_operations = SumOf(count.encoder);

  MicronetStorage& storage = count.storage;
  std::map<int, uint64_t> by_bits;
  for (size_t i = 0; i < charged.bits.size(); ++i) {
    const int bits = charged.bits[i];
    if (bits == 0) continue;
    if (const CodedView* coded = plan.weights[i].coded()) {
      if (!coded->seed) storage.codes += CodeParameters(plan.weights[i].shape, coded->scheme);
      continue;
    }
    storage.nonzero += nonzeros[i];
    storage.total += Count(plan.weights[i].shape);
    by_bits[bits] += nonzeros[i];
  }
  for (const auto& [bits, entries] : by_bits) {
    storage.size += Real(entries) * bits / kFloatBits;  // row scales are free
    count.bits.push_back(bits);
  }
  storage.mask = Real(storage.total) / kFloatBits;  // dense tensors count a mask too
  storage.quantisation = charged.quantiser_parameters;
  return count;
}

}  // namespace kinglet
