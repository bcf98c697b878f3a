#include "runtime/accounting/meter.h"

#include <algorithm>
#include <map>
#include <variant>

#include "format/overloaded.h"
#include "runtime/accounting/define_operations.h"
#include "runtime/accounting/window_positions.h"

namespace kinglet {
namespace {

// Whether products with this tensor may be integer (kernels/ref/weights.h). Integers with a
// dividing scale are converted to floats at load.
bool IsInteger(const TensorView& tensor) {
  return std::visit(Overloaded{[]<OneOf<DenseView, CodedView> View>(const View&) { return false; },
                               [](const PackedView& packed) {
                                 return packed.rule != ScaleRule::kDividePerTensor;
                               }},
                    tensor.values);
}

// Appends the components of one node for one token.
class NodeMeter {
 public:
  NodeMeter(const Plan& plan, std::span<const uint64_t> nonzeros, const BackendTraits& traits,
            const TokenPath& path, const std::string& name, std::vector<Component>& components)
      : plan_(plan),
        nonzeros_(nonzeros),
        traits_(traits),
        path_(path),
        name_(name),
        components_(components) {}

  void operator()(const CacheAppend&) const {}  // copies only

  // A row in the DeFINE unit's cache takes no operations.
  void operator()(const EmbedRow& op) const {
    const double made = path_.row_is_cached ? 0 : 1;
    const double width = Real(plan_.buffer(op.out).count);
    OperationTally decode, rescale;
    bool decodes = false, rescales = false;
    for (size_t i = 0; i < op.bins.size(); ++i) {
      const EmbeddingBin& bin = op.bins[i];
      const double taken = i == path_.bin ? made : 0;
      const DefineRows* const unit = UnitOf(op.units, i);
      const double mapped = unit != nullptr ? Real(unit->unit.map_width) : width;
      const TensorView& table = plan_.weights[bin.table];
      const double cols = Real(Cols(table.shape));
      if (const CodedView* coded = table.coded()) {
        const OperationTally sums = SumOfSubVectors(*coded, cols);
        if (sums.Total() > 0) Add(".combine." + std::to_string(i), sums * taken);
        if (traits_.decodes_rows && IsInteger(plan_.weights[coded->scheme.codebook])) {
          decodes = true;
          decode.multiplications += taken * (coded->scheme.combine == Combine::kConcatenate
                                                 ? cols
                                                 : cols * Real(coded->scheme.positions));
        }
      }
      const bool integer =
          bin.projection && IsInteger(table) && IsInteger(plan_.weights[*bin.projection]);
      // A spelling's bytes are decoded once, when the model is opened.
      if (traits_.decodes_rows && IsInteger(table) && !integer && !bin.spelling) {
        decodes = true;
        decode.multiplications += taken * cols;
      }
      if (!bin.projection) continue;
      AddProducts(".projection." + std::to_string(i), *bin.projection,
                  DotProducts(cols, mapped) * taken);
      if (integer) {
        rescales = true;
        rescale.multiplications += taken * kRescale * mapped;
      } else if (traits_.decodes_in_products && IsInteger(plan_.weights[*bin.projection])) {
        decodes = true;
        decode.multiplications += taken * cols * mapped;
      }
    }
    if (decodes) Add(".decode", decode);
    if (rescales) Add(".rescale", rescale);
    for (size_t i = 0; i < op.units.size(); ++i) {
      const DefineRows& unit = op.units[i];
      const double taken = &unit == UnitOf(op.units, path_.bin) ? made : 0;
      if (const EmbeddingBin* const bin = op.SpellingOf(unit)) {
        AddFilters(*bin, bin == &op.bins[path_.bin] ? taken : 0);
      }
      AddUnit(unit, UnitName(op.units.size(), i), taken);
    }
    Add(".scale", OperationTally{width, 0, 0} * made);
  }

  // Mean: n - 1 additions and a division. Variance: n differences, n products, n - 1 additions and
  // a division; epsilon and a root. Then a division, the gain and the bias for each element; the
  // differences are taken again.
  void operator()(const LayerNorm& op) const {
    const double n = Real(plan_.buffer(op.x).count);
    Add("", {2 * n, 5 * n - 1, n + 3});
  }

  // n squares, n - 1 additions and a division; epsilon and a root; a division for each element.
  void operator()(const RootMeanSquareNorm& op) const {
    const double n = Real(plan_.buffer(op.x).count);
    Add("", {n, n, n + 2});
  }
  void operator()(const ApplyActivation& op) const {
    Add("", ActivationOperations(op.activation, Real(plan_.buffer(op.x).count)));
  }

  void operator()(const MatVec& op) const {
    const TensorView& weight = plan_.weights[op.weight];
    const double rows = Real(Rows(weight.shape)), cols = Real(Cols(weight.shape));
    AddProducts(op.weight, cols, rows, op.bias ? rows : 0, op.x, cols, op.input);
    if (op.relu) Add(".relu", {0, 0, rows});
  }

  // One dot product for each partial sum, however many rows use it.
  void operator()(const PartialProducts& op) const {
    const CodingScheme& scheme = plan_.weights[op.table].coded()->scheme;
    const double cols = Real(Cols(plan_.weights[op.table].shape));
    const double length = Real(Cols(plan_.weights[scheme.codebook].shape));
    AddProducts(scheme.codebook, length, Real(PartialCount(scheme)), 0, op.x, cols, op.input);
  }

  void operator()(const CodedSums& op) const { AddSums("", op); }
  template <class Sums>
  void AddSums(const std::string& part, const Sums& op) const {
    const TensorView& table = plan_.weights[op.table];
    const double rows = Real(Rows(table.shape));
    OperationTally sums = SumOfSubVectors(*table.coded(), rows);
    // Also for concatenated sub-vectors, a logit is the sum of its positions' partial products.
    sums.additions = rows * (Real(table.coded()->scheme.positions) - 1) + (op.bias ? rows : 0);
    Add(part, sums);
    if (op.relu) Add(".relu", {0, 0, rows});
  }

  void operator()(const CodedProduct& op) const {
    const TensorView& table = plan_.weights[op.table];
    const CodingScheme& scheme = table.coded()->scheme;
    const double length = Real(Cols(plan_.weights[scheme.codebook].shape));
    AddProducts(scheme.codebook, length, Real(Rows(table.shape) * scheme.positions), 0, op.x,
                Real(Cols(table.shape)), op.input);
    AddSums(".sums", op);
  }

  void operator()(const Quantise& op) const {
    Add("", {0, 0, kRoundToCode * Real(plan_.buffer(op.x).count)});
  }

  void operator()(const kinglet::Add& op) const {
    const double n = Real(plan_.buffer(op.y).count);
    Add("", {0, n, 0});
    if (plan_.buffer(op.x).quantiser) Add(".dequantise", {n, 0, 0});
  }

  void operator()(const AddScalar& op) const { Add("", {0, Real(op.count), 0}); }

  void operator()(const AddPositionRow& op) const {
    Add("", {0, Real(plan_.buffer(op.y).count), 0});
  }
  // One angle for each sine and its cosine.
  void operator()(const AddSinusoids& op) const {
    const double n = Real(plan_.buffer(op.y).count);
    Add("", {n / 2, n, n});
  }
  void operator()(const AddQueryBias& op) const {
    Add("", {0, Real(Count(plan_.weights[op.bias].shape)), 0});
  }

  void operator()(const WindowAttention& op) const {
    const double heads = op.heads, key_size = op.key_size, value_size = op.value_size;
    const bool codes = plan_.buffer(op.qkv).quantiser.has_value();
    const bool whole = WeighsWholeWindow(op);
    const double visible = Real(op.window - FirstVisible(op, path_.position));
    // Some backends score every slot of the window and mask those that are not visible.
    const double scored = traits_.scores_masked_slots && whole ? op.window : visible;
    Add(".query_keys", DotProducts(key_size, scored * heads));
    std::visit(Overloaded{[](const std::monostate&) {},
                          [&](const SlotColumns& slots) {
                            OperationTally products = DotProducts(key_size, scored * heads);
                            products.additions += scored * heads;  // the sum of both scores
                            AddProducts(".query_positions", slots.columns, products);
                          },
                          [&](const RelativeRows& relative) {
                            // Distances beyond the clamp share a product; each row has a constant.
                            const double rows = std::min(scored, Real(relative.Count(op.window)));
                            OperationTally products = DotProducts(key_size, rows * heads);
                            products.additions += (rows + scored) * heads;
                            Add(".query_positions", products);
                          }},
               op.positions);
    Add(".scale", {scored * heads, 0, 0});
    if (codes) {
      Add(".rescale", {kRescale * (scored * heads + heads * value_size), 0, 0});
      if (ScoresPositions(op)) Add(".dequantise", {heads * key_size, 0, 0});  // the query
    }
    OperationTally softmax = Exponentials(visible) * heads;
    softmax.others += visible * heads;  // divisions
    Add(".softmax", softmax);
    if (op.weights_quantiser) {
      Add(".quantise_weights", {0, 0, kRoundToCode * heads * (whole ? op.window : visible)});
    }
    // Masked slots of the window have weight 0 and are multiplied like the others.
    Add(".values", DotProducts(whole ? op.window : visible, heads * value_size));
  }

  void operator()(const LogSumExp& op) const {
    // The sum of n exponentials, the maximum and the logarithm. References are 0, except of extreme
    // logits.
    const double n = Real(plan_.buffer(op.x).count);
    Add("", {0, n - 1, 2 * n});
  }

  void operator()(const CacheWeights& op) const {
    const uint64_t stored = CachePairs(path_.position, op.capacity, op.first_position);
    const double pairs = Real(stored), width = Real(plan_.buffer(op.hidden).count);
    Add("", DotProducts(width, pairs));
    const double scales = plan_.buffer(op.hidden).quantiser ? kRescale : 0;
    Add(".rescale", {(1 + scales) * pairs, 0, 0});  // by theta, and integer sums to floats
    Add(".softmax", stored == 0 ? OperationTally{} : Exponentials(pairs));
  }

  // The sums of both products, one function for each gate and for the cell, and the products and
  // sums in the definition of kernels/op.h. A sigmoid or tanh counts as one operation.
  void operator()(const LstmGates& op) const {
    const double n = Real(plan_.buffer(op.hidden).count);
    Add("", {3 * n, 5 * n, 5 * n});
  }
  void operator()(const GruGates& op) const {
    const double n = Real(plan_.buffer(op.hidden).count);
    Add("", {3 * n, 5 * n, 3 * n});
  }
  void operator()(const RnnGates& op) const {
    const double n = Real(plan_.buffer(op.hidden).count);
    Add("", {0, n, n});
  }
  void operator()(const QrnnGates& op) const {
    const double n = Real(plan_.buffer(op.hidden).count);
    Add("", {3 * n, (op.previous ? 5 : 2) * n, 3 * n});
  }

  // A sum and, for the maximum, a comparison.
  void operator()(const BagAppend& op) const {
    const double n = Real(plan_.buffer(op.embedded).count);
    Add("", {0, n, op.largest ? n : 0});
  }
  void operator()(const BagFeatures& op) const {
    Add("", {0, 0, Real(plan_.buffer(op.sum).count)});
  }
  void operator()(const ScaleShiftRelu& op) const {
    const double n = Real(plan_.buffer(op.x).count);
    Add("", {n, n, n});
  }

  void operator()(const StoreRow&) const {}
  void operator()(const LoadRow&) const {}
  void operator()(const Join&) const {}
  void operator()(const SourceAttention& op) const {
    const double heads = op.heads, tokens = Real(path_.source_length);
    Add(".query_keys", DotProducts(op.key_size, tokens * heads));
    if (op.score == SourceScore::kScaled) Add(".scale", {tokens * heads, 0, 0});
    if (op.score == SourceScore::kAdditive) {
      const double functions = tokens * heads * op.key_size;
      Add(".tanh", {0, functions, functions});
    }
    if (op.weights_quantiser) {
      Add(".rescale", {kRescale * (tokens * heads + heads * op.value_size), 0, 0});
      Add(".quantise_weights", {0, 0, kRoundToCode * heads * tokens});
    }
    OperationTally softmax = Exponentials(tokens) * heads;
    softmax.others += tokens * heads;  // divisions
    Add(".softmax", softmax);
    Add(".values", DotProducts(tokens, heads * op.value_size));
  }

 private:
  void Add(const std::string& part, const OperationTally& tally) const {
    components_.push_back({name_ + part, tally, tally.multiplications, 1});
  }
  void AddFilters(const EmbeddingBin& bin, double made) const {
    for (size_t i = 0; i < bin.spelling->filters.size(); ++i) {
      const ByteFilter& filter = bin.spelling->filters[i];
      const OperationTally tally = FilterOperations(filter, plan_.weights[filter.weight].shape,
                                                    path_.letters, bin.spelling->longest);
      AddProducts(".filter." + std::to_string(i), filter.weight, tally * made);
    }
  }
  void AddUnit(const DefineRows& define, const std::string& name, double made) const {
    Add(name + ".map_scale", OperationTally{Real(define.unit.map_width), 0, 0} * made);
    for (size_t i = 0; i < define.unit.layers.size(); ++i) {
      const DefineOperations operations = OperationsOf(define.unit.layers[i]);
      const std::string part = name + "." + std::to_string(i);
      AddProducts(part, define.tensors[i].weight, operations.products * made);
      const auto add_some = [&](const char* what, const OperationTally& tally) {
        if (tally.Total() > 0) Add(part + what, tally * made);
      };
      add_some(".norm", operations.norm);
      add_some(".activation", operations.activation);
      add_some(".residual", operations.residual);
    }
  }
  // `outputs` dot products of `inputs` elements each, with `cols` elements of x in all, and
  // `additions` more.
  void AddProducts(WeightId weight, double inputs, double outputs, double additions, BufferId x,
                   double cols, TailInput input) const {
    const bool codes = plan_.buffer(x).quantiser.has_value();
    const bool fixed_point = !codes && input == TailInput::kFixedPoint15 && !traits_.real64;
    OperationTally products = DotProducts(inputs, outputs);
    products.additions += additions;
    AddProducts("", weight, products);
    // Finding the largest magnitude, the scale, and rounding each element.
    if (fixed_point) Add(".fixed_point", {0, 0, cols + 1 + kRoundToCode * cols});
    const bool integer = IsInteger(plan_.weights[weight]);
    if (codes || fixed_point) {
      if (integer) {
        Add(".rescale", {kRescale * outputs, 0, 0});
      } else {
        Add(".dequantise", {cols, 0, 0});
      }
    } else if (integer && traits_.decodes_in_products) {
      Add(".decode", {outputs * inputs, 0, 0});
    }
  }
  // Adds the operations that make `elements` elements of a coded row: sums over its positions, and
  // the division of a mean.
  static OperationTally SumOfSubVectors(const CodedView& coded, double elements) {
    const CodingScheme& scheme = coded.scheme;
    OperationTally tally;
    if (scheme.combine != Combine::kConcatenate) {
      tally.additions = elements * (Real(scheme.positions) - 1);
    }
    if (scheme.combine == Combine::kMean) tally.others = elements;
    return tally;
  }
  void AddProducts(const std::string& part, WeightId weight, const OperationTally& tally) const {
    const double density =
        nonzeros_.empty() ? 1 : Real(nonzeros_[weight]) / Real(Count(plan_.weights[weight].shape));
    components_.push_back({name_ + part, tally, tally.multiplications * density, density});
  }

  const Plan& plan_;
  std::span<const uint64_t> nonzeros_;
  const BackendTraits& traits_;
  const TokenPath& path_;
  const std::string& name_;
  std::vector<Component>& components_;
};

std::vector<Component> ComponentsOf(const Plan& plan, std::span<const uint64_t> nonzeros,
                                    const BackendTraits& traits, const TokenPath& path) {
  std::vector<Component> components;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (IsOfEncoder(plan, i) != path.encodes) continue;
    const size_t first = components.size();
    std::visit(NodeMeter(plan, nonzeros, traits, path, plan.nodes[i].name, components),
               plan.nodes[i].op);
    if (RunsOn(plan, path, i)) continue;
    for (size_t c = first; c < components.size(); ++c) {
      components[c].operations = {};
      components[c].useful_multiplications = 0;
    }
  }
  return components;
}

OperationTally OperationsIn(const Plan& plan, const BackendTraits& traits, const TokenPath& path,
                            NodeRange range) {
  std::vector<Component> components;
  for (size_t i = range.begin; i < range.end; ++i) {
    std::visit(NodeMeter(plan, {}, traits, path, plan.nodes[i].name, components), plan.nodes[i].op);
  }
  OperationTally sum;
  for (const Component& component : components) sum += component.operations;
  return sum;
}

}  // namespace

std::vector<uint64_t> CountNonzeros(std::span<const TensorView> tensors) {
  std::vector<uint64_t> counts;
  counts.reserve(tensors.size());
  for (const TensorView& tensor : tensors) {
    if (tensor.coded() != nullptr) {
      counts.push_back(0);
      continue;
    }
    const auto count = [](const auto& entries) {
      return static_cast<uint64_t>(
          std::count_if(entries.begin(), entries.end(), [](auto entry) { return entry != 0; }));
    };
    counts.push_back(tensor.quantised() ? count(DecodeCodes(tensor).codes)
                                        : count(DecodedValues(tensor)));
  }
  return counts;
}

BackendTraits TraitsOf(const Backend& backend) {
  const bool reference = backend.name == "ref" || backend.name == "ref64";
  const bool device = backend.bind == nullptr;
  return {.real64 = backend.real_bytes == sizeof(double),
          .decodes_in_products = !reference && !device,
          .decodes_rows = !reference,
          .scores_masked_slots = !reference && !device};
}

ExecutedCount CountExecuted(const Plan& plan, std::span<const uint64_t> nonzeros,
                            const BackendTraits& traits, const Trace& trace) {
  ExecutedCount result;
  std::map<std::string, size_t> index_of;
  const double tokens = Real(trace.tokens());
  // Sums over all tokens are integers and so exact; the division comes last.
  for (const auto& [path, count] : trace.paths) {
    for (const Component& component : ComponentsOf(plan, nonzeros, traits, path)) {
      const auto [at, fresh] = index_of.emplace(component.name, result.components.size());
      if (fresh) result.components.push_back({component.name, {}, 0, component.density});
      Component& sum = result.components[at->second];
      sum.operations += component.operations * Real(count);
      sum.useful_multiplications += component.useful_multiplications * Real(count);
    }
  }
  const bool encodes = !trace.paths.empty() && trace.paths.begin()->first.encodes;
  if (!encodes) {
    result.components.push_back(
        {"distribution", trace.distribution, trace.distribution.multiplications, 1});
  }
  for (Component& component : result.components) {
    component.operations = component.operations / tokens;
    component.useful_multiplications /= tokens;
  }
  for (const Component& component : result.components) {
    result.operations += component.operations;
    result.useful_multiplications += component.useful_multiplications;
  }
  return result;
}

std::vector<OperationTally> CountNodes(const Plan& plan, const BackendTraits& traits,
                                       const Trace& trace) {
  std::vector<OperationTally> sums(plan.nodes.size());
  const double tokens = Real(trace.tokens());
  for (const auto& [path, count] : trace.paths) {
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      if (!RunsOn(plan, path, i)) continue;
      sums[i] += OperationsIn(plan, traits, path, {i, i + 1}) * Real(count);
    }
  }
  for (OperationTally& sum : sums) sum = sum / tokens;
  return sums;
}

OperationTally QueryOperations(const Plan& plan, const BackendTraits& traits, uint64_t position,
                               const QueryWork& work) {
  TokenPath path;
  path.position = position;
  OperationTally sum = work.arithmetic;
  for (size_t i = 0; i < plan.clusters.size(); ++i) {
    if (work.clusters.Contains(i)) {
      sum += OperationsIn(plan, traits, path, plan.clusters[i].nodes);
    }
  }
  if (work.cache) sum += OperationsIn(plan, traits, path, plan.cache->nodes);
  return sum;
}

}  // namespace kinglet
