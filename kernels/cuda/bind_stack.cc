#include "kernels/cuda/bind_stack.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "format/encoding.h"
#include "kernels/cuda/between_attentions.h"
#include "kernels/cuda/decoder_stack.h"

namespace kinglet::cuda {
namespace {

constexpr uint32_t kMostBlocks = 8;  // of a cluster, on every device that has clusters
constexpr int64_t kLargestUnit = 255;

// The nodes of a layer of a pre-norm decoder, one after the other.
struct Layer {
  static constexpr size_t kNodes = 15;
  // Where some of them are among the layer's nodes.
  static constexpr size_t kQkv = 2, kAttention = 4, kOut = 6, kUp = 10, kDown = 12;
  size_t first;  // plan node
  const LayerNorm* norm;
  const Quantise* normed;
  const MatVec* qkv;
  const Quantise* qkv_codes;
  const WindowAttention* attention;
  const Quantise* attended;
  const MatVec* out;
  const Add* add_attended;
  const LayerNorm* inner_norm;
  const Quantise* inner_normed;
  const MatVec* up;
  const Quantise* units;
  const MatVec* down;
  const Quantise* outer;
  const Add* add_outer;

  BufferId residual() const { return norm->x; }
};

// Takes the operations of successive nodes of a plan.
class Reader {
 public:
  Reader(const Plan& plan, size_t begin, size_t end) : plan_(plan), at_(begin), end_(end) {}
  // The next operation, if it is of this type.
  template <class T>
  Reader& Take(const T*& op) {
    op = at_ < end_ ? std::get_if<T>(&plan_.nodes[at_].op) : nullptr;
    found_all_ = found_all_ && op != nullptr;
    ++at_;
    return *this;
  }
  bool found_all() const { return found_all_; }

 private:
  const Plan& plan_;
  size_t at_, end_;
  bool found_all_ = true;
};

bool IsPlain(const MatVec& product) { return product.y_offset == 0; }

std::optional<Layer> LayerAt(const Plan& plan, size_t begin, size_t end) {
  Layer l{};
  l.first = begin;
  Reader reader(plan, begin, end);
  reader.Take(l.norm).Take(l.normed).Take(l.qkv).Take(l.qkv_codes).Take(l.attention);
  reader.Take(l.attended).Take(l.out).Take(l.add_attended).Take(l.inner_norm);
  reader.Take(l.inner_normed).Take(l.up).Take(l.units).Take(l.down).Take(l.outer);
  if (!reader.Take(l.add_outer).found_all()) return std::nullopt;
  // The norm of a sum (NormOrder::kPost) replaces the residual stream.
  const bool keeps_residual = l.norm->y != l.residual() && l.inner_norm->y != l.residual();
  const bool follow = l.normed->x == l.norm->y && l.qkv->x == l.normed->codes &&
                      l.qkv_codes->x == l.qkv->y && l.attention->qkv == l.qkv_codes->codes &&
                      l.attended->x == l.attention->out && l.out->x == l.attended->codes &&
                      l.add_attended->x == l.out->y && l.add_attended->y == l.residual() &&
                      l.inner_norm->x == l.residual() && l.inner_normed->x == l.inner_norm->y &&
                      l.up->x == l.inner_normed->codes && l.units->x == l.up->y &&
                      l.down->x == l.units->codes && l.outer->x == l.down->y &&
                      l.add_outer->x == l.outer->codes && l.add_outer->y == l.residual();
  const bool plain = IsPlain(*l.qkv) && !l.qkv->relu && IsPlain(*l.out) && !l.out->relu &&
                     IsPlain(*l.up) && l.up->relu && IsPlain(*l.down) && !l.down->relu;
  if (!keeps_residual || !follow || !plain) return std::nullopt;
  return l;
}

// The matrices and vectors of a layer in the host's memory.
class Host {
 public:
  explicit Host(const Binder& binder) : binder_(binder) {}

  HostIntegers Integers(WeightId id) const { return IntegersOf(binder_.plan.weights[id]); }
  std::vector<float> Floats(WeightId id) const { return DecodedValues(binder_.plan.weights[id]); }
  // -0.0 without a bias: adding it changes no number.
  std::vector<float> Bias(const MatVec& product) const {
    if (product.bias) return Floats(*product.bias);
    return std::vector<float>(Rows(binder_.plan.weights[product.weight].shape), -0.0f);
  }

 private:
  const Binder& binder_;
};

class StackBinder {
 public:
  StackBinder(const std::vector<std::vector<Node>>& bound, const Device& device, Binder& binder)
      : bound_(bound), device_(device), binder_(binder) {}

  Result<std::optional<BoundStack>> Bind() {
    FindLayers();
    if (layers_.empty()) return std::optional<BoundStack>();
    FindEnd();
    BoundStack stack;
    if (!binder_.of_text && HasOneShape()) {
      AnyShape any;
      static_cast<StackShape&>(any) = shape_;
      const bool is_best = shape_ == BestShape::Sizes();
      KINGLET_ASSIGN_OR_RETURN(stack.few, is_best ? BindAs(BestShape()) : BindAs(any));
    }
    KINGLET_ASSIGN_OR_RETURN(stack.many, BindTiles());
    stack.nodes = nodes_;
    return std::optional<BoundStack>(std::move(stack));
  }

 private:
  const ActivationQuantiser& QuantiserOf(BufferId codes) const {
    return *binder_.plan.buffer(codes).quantiser;
  }
  Rounding RoundingOf(BufferId codes) const {
    return {QuantiserOf(codes).max_abs, QuantiserOf(codes).scale};
  }
  uint64_t RowsOf(WeightId id) const { return Rows(binder_.plan.weights[id].shape); }

  // Whether a plan node is a product of integers, whose sums fit 32 bits.
  bool IsShort(const Layer& layer, size_t node) const {
    return IsKind<IntegerProduct>(bound_[layer.first + node].back()) &&
           ProductAt(layer, node).fits_int32;
  }
  IntegerProduct ProductAt(const Layer& layer, size_t node) const {
    return ArgumentsOf<IntegerProduct>(bound_[layer.first + node].back());
  }
  Attention AttentionOf(const Layer& layer) const {
    return ArgumentsOf<ScoreSlots>(bound_[layer.first + Layer::kAttention].front()).attention;
  }

  // The shape of a layer that a stack can run.
  std::optional<StackShape> ShapeOf(const Layer& layer) const {
    const Attention attention = AttentionOf(layer);
    const bool is_known = attention.codes && attention.key_row != 0 && attention.value_row != 0 &&
                          attention.fits_int32 && !attention.restarts && !attention.masks_token &&
                          std::holds_alternative<SlotColumns>(layer.attention->positions);
    if (!is_known) return {};
    StackShape shape{};
    for (shape.blocks = std::min(kMostBlocks, attention.heads);
         attention.heads % shape.blocks != 0;) {
      --shape.blocks;
    }
    shape.width = binder_.Count(layer.residual());
    shape.heads = attention.heads / shape.blocks;
    shape.key_size = attention.key_size;
    shape.value_size = attention.value_size;
    shape.window = attention.window;
    shape.units = static_cast<uint32_t>(DivideUp(RowsOf(layer.up->weight), uint64_t{shape.blocks}));
    shape.bytes = LargestCode(QuantiserOf(layer.units->codes)) <= kLargestUnit;
    const bool fits = shape.width <= kBlockThreads && shape.window <= kBlockThreads &&
                      std::max(shape.key_size, shape.value_size) <= StackShape::kMostOfHead &&
                      shape.key_size % 8 == 0 && shape.value_size % 8 == 0;
    if (!fits) return {};
    return shape;
  }

  void FindLayers() {
    const NodeRange context = binder_.plan.context;
    for (size_t i = context.begin; i < context.end;) {
      const std::optional<Layer> layer = LayerAt(binder_.plan, i, context.end);
      const bool fits = layer && IsShort(*layer, Layer::kQkv) && IsShort(*layer, Layer::kOut) &&
                        IsShort(*layer, Layer::kUp) && IsShort(*layer, Layer::kDown) &&
                        (layers_.empty() || layer->residual() == layers_[0].residual());
      if (!fits && !layers_.empty()) break;
      if (!fits) {
        ++i;
        continue;
      }
      if (layers_.empty()) nodes_.begin = i;
      layers_.push_back(*layer);
      i += Layer::kNodes;
      nodes_.end = i;
    }
  }
  // The context often ends with the codes of the residual stream.
  void FindEnd() {
    const Plan& plan = binder_.plan;
    const auto* const last =
        nodes_.end < plan.context.end ? std::get_if<Quantise>(&plan.nodes[nodes_.end].op) : nullptr;
    if (last == nullptr || last->x != layers_[0].residual()) return;
    codes_ = last->codes;
    ++nodes_.end;
  }
  // The node writes the residual stream's codes, if they follow the layers.
  template <class T>
  void WriteCodes(T& node) const {
    if (!codes_) return;
    node.quantises = true;
    node.codes = binder_.At(*codes_);
    node.rounding = RoundingOf(*codes_);
  }

  bool HasOneShape() {
    for (const Layer& layer : layers_) {
      const std::optional<StackShape> shape = ShapeOf(layer);
      if (!shape || layer.attention->start != layers_[0].attention->start) return false;
      if (&layer == &layers_[0]) shape_ = *shape;
      if (!(*shape == shape_)) return false;
    }
    return true;
  }

  // Copies `values` to offset `at` of a part.
  template <class T>
  static void Put(std::vector<std::byte>& part, uint64_t at, const T* values, uint64_t count) {
    std::memcpy(part.data() + at, values, count * sizeof(T));
  }
  // Rows [first, first + count) of a matrix, `stride` apart, with their scales and biases.
  static void PutRows(std::vector<std::byte>& part, const HostIntegers& matrix,
                      const std::vector<float>& bias, uint64_t first, uint64_t count,
                      uint32_t stride, uint32_t codes_at, uint32_t scales_at, uint32_t bias_at) {
    for (uint64_t i = 0; i < count; ++i) {
      Put(part, codes_at + i * stride * sizeof(int16_t), matrix.Row(first + i), matrix.cols);
    }
    Put(part, scales_at, matrix.scales.data() + first, count);
    Put(part, bias_at, bias.data() + first, count);
  }
  // Columns [first, first + count) of all rows.
  static void PutColumns(std::vector<std::byte>& part, const HostIntegers& matrix, uint64_t first,
                         uint64_t count, uint32_t stride, uint32_t at) {
    for (uint64_t row = 0; row < matrix.scales.size(); ++row) {
      Put(part, at + row * stride * sizeof(int16_t), matrix.Row(row) + first, count);
    }
  }

  template <class Part>
  static void PutNorm(std::vector<std::byte>& part, const Part& at, const Host& host,
                      const LayerNorm& norm) {
    const std::vector<float> gain = host.Floats(norm.gain), bias = host.Floats(norm.bias);
    Put(part, at.gain, gain.data(), gain.size());
    Put(part, at.bias, bias.data(), bias.size());
  }

  // Appends the attention's parts of a layer.
  void AddAttention(const Layer& layer, std::vector<std::byte>& parts) const {
    const Host host(binder_);
    const Attention attention = AttentionOf(layer);
    const AttentionPart at(shape_);
    AttentionNumbers numbers{};
    numbers.epsilon = static_cast<float>(layer.norm->epsilon);
    numbers.norm = RoundingOf(layer.normed->codes);
    numbers.qkv = RoundingOf(layer.qkv_codes->codes);
    numbers.weights = attention.rounding;
    numbers.attended = RoundingOf(layer.attended->codes);
    numbers.content_scale = attention.content_scale;
    numbers.value_scale = attention.value_scale;
    numbers.scale = attention.scale;
    const HostIntegers rows = host.Integers(layer.qkv->weight);
    const HostIntegers out = host.Integers(layer.out->weight);
    const std::vector<float> bias = host.Bias(*layer.qkv);
    const std::vector<float> columns =
        host.Floats(std::get<SlotColumns>(layer.attention->positions).columns);
    for (uint64_t block = 0; block < shape_.blocks; ++block) {
      std::vector<std::byte> part(at.bytes);
      Put(part, at.numbers, &numbers, 1);
      PutNorm(part, at, host, *layer.norm);
      Put(part, at.positions, columns.data(), columns.size());
      PutRows(part, rows, bias, block * at.rows, at.rows, at.row_stride, at.qkv, at.qkv_scales,
              at.qkv_bias);
      PutColumns(part, out, block * at.out_columns, at.out_columns, at.out_stride, at.out);
      parts.insert(parts.end(), part.begin(), part.end());
    }
  }
  // Appends the inner units' parts of a layer.
  void AddInner(const Layer& layer, std::vector<std::byte>& parts) const {
    const Host host(binder_);
    const InnerPart at(shape_);
    InnerNumbers numbers{};
    numbers.epsilon = static_cast<float>(layer.inner_norm->epsilon);
    numbers.norm = RoundingOf(layer.inner_normed->codes);
    numbers.inner = RoundingOf(layer.units->codes);
    numbers.outer = RoundingOf(layer.outer->codes);
    numbers.attended_scale = QuantiserOf(layer.attended->codes).scale;
    const HostIntegers out = host.Integers(layer.out->weight);
    const HostIntegers up = host.Integers(layer.up->weight);
    const HostIntegers down = host.Integers(layer.down->weight);
    const std::vector<float> out_bias = host.Bias(*layer.out), up_bias = host.Bias(*layer.up),
                             down_bias = host.Bias(*layer.down);
    for (uint64_t block = 0; block < shape_.blocks; ++block) {
      const uint64_t first = std::min<uint64_t>(block * shape_.units, down.cols);
      const uint64_t count = std::min<uint64_t>(shape_.units, down.cols - first);
      std::vector<std::byte> part(at.bytes);
      Put(part, at.numbers, &numbers, 1);
      PutNorm(part, at, host, *layer.inner_norm);
      Put(part, at.out_scales, out.scales.data(), shape_.width);
      Put(part, at.out_bias, out_bias.data(), shape_.width);
      Put(part, at.down_scales, down.scales.data(), shape_.width);
      Put(part, at.down_bias, down_bias.data(), shape_.width);
      PutRows(part, up, up_bias, first, count, at.row_stride, at.up, at.up_scales, at.up_bias);
      PutColumns(part, down, first, count, at.down_stride, at.down);
      parts.insert(parts.end(), part.begin(), part.end());
    }
  }

  template <class Shape>
  Result<std::optional<Node>> BindAs(const Shape& shape) {
    const Attention attention = AttentionOf(layers_[0]);
    DecoderStack<Shape> stack{};
    stack.shape = shape;
    stack.layers = static_cast<uint32_t>(layers_.size());
    stack.key_row = attention.key_row;
    stack.value_row = attention.value_row;
    stack.masked = attention.masked;
    stack.residual = binder_.At(layers_[0].residual());
    WriteCodes(stack);
    if (!device_.HasClustersFor(MakeNode(stack))) return std::optional<Node>();
    std::vector<std::byte> of_attention, of_inner;
    std::vector<StackRings> rings;
    for (const Layer& layer : layers_) {
      AddAttention(layer, of_attention);
      AddInner(layer, of_inner);
      rings.push_back({binder_.At(layer.attention->keys), binder_.At(layer.attention->values)});
    }
    WeightStore& weights = binder_.weights;
    KINGLET_ASSIGN_OR_RETURN(stack.attention,
                             weights.Constants(std::span<const std::byte>(of_attention)));
    KINGLET_ASSIGN_OR_RETURN(stack.inner, weights.Constants(std::span<const std::byte>(of_inner)));
    KINGLET_ASSIGN_OR_RETURN(stack.rings, weights.Constants(std::span<const StackRings>(rings)));
    return std::optional<Node>(MakeNode(stack));
  }

  // --- many lanes

  Result<QuantisedNorm> NormOf(const LayerNorm& norm, const Quantise& codes) const {
    QuantisedNorm made{};
    KINGLET_ASSIGN_OR_RETURN(made.gain, binder_.weights.Floats(norm.gain));
    KINGLET_ASSIGN_OR_RETURN(made.bias, binder_.weights.Floats(norm.bias));
    made.epsilon = static_cast<float>(norm.epsilon);
    made.rounding = RoundingOf(codes.codes);
    return made;
  }
  // The attention of all heads of a lane, if AttendTokens can run it.
  std::optional<Node> AttentionOfLanes(const Layer& layer) const {
    const Attention attention = AttentionOf(layer);
    const std::optional<ActivationQuantiser>& weights = layer.attention->weights_quantiser;
    if (!weights || !AttendTokens::Takes(attention, LargestCode(*weights))) return {};
    const AttendTokens node = {attention, 1};
    if (node.SharedBytes() > device_.SharedBytesOfBlock()) return {};
    return MakeNode(node);
  }
  // The attentions, and the nodes before, between and after them. Nothing if a tile of lanes does
  // not fit a thread block, or a matrix has too few columns.
  Result<std::vector<Node>> BindTiles() const {
    BetweenAttentions node{};
    node.residual = binder_.At(layers_[0].residual());
    node.width = binder_.Count(layers_[0].residual());
    std::vector<TileLayer> made;
    for (const Layer& layer : layers_) {
      TileLayer tile{};
      KINGLET_ASSIGN_OR_RETURN(tile.norm, NormOf(*layer.norm, *layer.normed));
      KINGLET_ASSIGN_OR_RETURN(tile.inner_norm, NormOf(*layer.inner_norm, *layer.inner_normed));
      tile.products[TileLayer::kOut] = ProductAt(layer, Layer::kOut);
      tile.products[TileLayer::kUp] = ProductAt(layer, Layer::kUp);
      tile.products[TileLayer::kDown] = ProductAt(layer, Layer::kDown);
      tile.products[TileLayer::kQkv] = ProductAt(layer, Layer::kQkv);
      tile.qkv_codes = RoundingOf(layer.qkv_codes->codes);
      tile.attended = RoundingOf(layer.attended->codes);
      tile.units = RoundingOf(layer.units->codes);
      tile.outer = RoundingOf(layer.outer->codes);
      tile.units_are_bytes = LargestCode(QuantiserOf(layer.units->codes)) <= kLargestUnit;
      tile.attention_reads = binder_.At(layer.attention->qkv);
      tile.attention_writes = binder_.At(layer.attention->out);
      for (const IntegerProduct& product : tile.products) {
        if (product.matrix.narrow()) return std::vector<Node>();  // has no tiles
      }
      made.push_back(tile);
      node.columns =
          std::max({node.columns, node.width, tile.products[TileLayer::kOut].matrix.cols});
      node.inner_columns =
          std::max({node.inner_columns, tile.products[TileLayer::kDown].matrix.cols,
                    tile.products[TileLayer::kQkv].matrix.rows});
    }
    if (node.width > kSumTile || node.SharedBytes() > device_.SharedBytesOfBlock()) {
      return std::vector<Node>();
    }
    KINGLET_ASSIGN_OR_RETURN(const TileLayer* const layers,
                             binder_.weights.Constants(std::span<const TileLayer>(made)));
    std::vector<Node> nodes;
    for (size_t i = 0; i <= made.size(); ++i) {
      node.before = i == 0 ? nullptr : layers + i - 1;
      node.after = i == made.size() ? nullptr : layers + i;
      if (i == made.size()) WriteCodes(node);
      nodes.push_back(MakeNode(node));
      if (i == made.size()) break;
      const std::vector<Node>& attention = bound_[layers_[i].first + Layer::kAttention];
      if (const std::optional<Node> of_lanes = AttentionOfLanes(layers_[i])) {
        nodes.push_back(*of_lanes);
      } else {
        nodes.insert(nodes.end(), attention.begin(), attention.end());
      }
    }
    return nodes;
  }

  const std::vector<std::vector<Node>>& bound_;
  const Device& device_;
  Binder& binder_;
  std::vector<Layer> layers_;
  NodeRange nodes_;
  std::optional<BufferId> codes_;  // of the residual stream after the layers
  StackShape shape_{};
};

}  // namespace

Result<std::optional<BoundStack>> BindStack(const std::vector<std::vector<Node>>& bound,
                                            const Device& device, Binder& binder) {
  if (device.IsNodeByNode()) return std::optional<BoundStack>();
  return StackBinder(bound, device, binder).Bind();
}

}  // namespace kinglet::cuda
