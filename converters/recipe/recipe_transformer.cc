#include "converters/recipe/recipe_transformer.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "converters/checkpoints/quoted.h"
#include "converters/network/change.h"
#include "converters/recipe/recipe_table.h"
#include "format/limits.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

class TransformerMaker {
  using Use = Network::Use;

 public:
  TransformerMaker(const TransformerRecipe& recipe, uint32_t width, Network& network)
      : recipe_(recipe), width_(width), network_(network) {}

  Result<TransformerDecoder> Make() {
    KINGLET_RETURN_IF_ERROR(CheckSize("heads", recipe_.heads));
    KINGLET_RETURN_IF_ERROR(CheckSize("window", recipe_.window));
    KINGLET_RETURN_IF_ERROR(CheckWidth());
    decoder_.name = "transformer";
    decoder_.width = width_;
    decoder_.heads = static_cast<uint32_t>(recipe_.heads);
    decoder_.window = static_cast<uint32_t>(recipe_.window);
    decoder_.start = recipe_.start == TransformerRecipe::Start::kMasked ? StreamStart::kMasked
                                                                        : StreamStart::kZeros;
    decoder_.norm_order = recipe_.norm_order;
    decoder_.epsilon = recipe_.epsilon;
    KINGLET_RETURN_IF_ERROR(FindHeadSizes());
    KINGLET_RETURN_IF_ERROR(AddPositions());
    for (size_t i = 0; i < recipe_.layers.size(); ++i) {
      name_ = "transformer." + std::to_string(i) + ".";
      KINGLET_ASSIGN_OR_RETURN(const TransformerLayer layer, MakeLayer(recipe_.layers[i]));
      decoder_.layers.push_back(layer);
    }
    if (recipe_.final_norm) {
      KINGLET_ASSIGN_OR_RETURN(
          decoder_.final_norm_gain,
          network_.AddRef("transformer.final_norm.gain", recipe_.final_norm->gain, Use::kKept));
      KINGLET_ASSIGN_OR_RETURN(
          decoder_.final_norm_bias,
          network_.AddRef("transformer.final_norm.offset", recipe_.final_norm->offset, Use::kKept));
    }
    return std::move(decoder_);
  }

 private:
  static Status CheckSize(const char* what, uint64_t value) {
    if (value >= 1 && value <= kMaxExtent) return {};
    return RefuseModel(std::string("transformer, ") + what, "1 to " + std::to_string(kMaxExtent),
                       std::to_string(value));
  }

  // The first layer's norm has the network's width.
  Status CheckWidth() const {
    const TensorRef& gain = recipe_.layers[0].attention_norm.gain;
    KINGLET_ASSIGN_OR_RETURN(const Shape norm, network_.ShapeOf(gain));
    if (norm == Shape{width_}) return {};
    const std::string width = std::to_string(CountEntries(norm));
    return RefuseModel("embedding",
                       "vectors of " + width + " values, as " + QuotedName(gain.name) +
                           " has, or a projection [" + width + ", " + std::to_string(width_) + "]",
                       std::to_string(width_));
  }

  // The sizes of a head follow from the first layer's tensors.
  Status FindHeadSizes() {
    const TransformerRecipe::Layer& first = recipe_.layers[0];
    uint64_t rows = 0;
    for (const TensorRef& ref : first.qkv) {
      KINGLET_ASSIGN_OR_RETURN(const Shape part, network_.ShapeOf(ref));
      if (part.size() != 2) return RefuseTensor(ref, "a matrix", ShapeText(part));
      rows += part[0];
    }
    KINGLET_ASSIGN_OR_RETURN(const Shape out, network_.ShapeOf(first.out));
    const uint64_t heads = recipe_.heads;
    const uint64_t attended = out.size() == 2 ? out[1] : 0;
    if (attended == 0 || attended % heads != 0) {
      return RefuseTensor(first.out, "columns for " + std::to_string(heads) + " heads",
                          ShapeText(out));
    }
    if (rows <= attended || (rows - attended) % (2 * heads) != 0) {
      return RefuseTensor(first.qkv[0],
                          "queries and keys for " + std::to_string(heads) +
                              " heads in addition to " + std::to_string(attended) +
                              " rows of values",
                          std::to_string(rows) + " rows in all");
    }
    rows_ = {heads, (rows - attended) / (2 * heads), attended / heads, recipe_.by_head};
    KINGLET_RETURN_IF_ERROR(CheckSize("key size", rows_.key_size));
    KINGLET_RETURN_IF_ERROR(CheckSize("value size", rows_.value_size));
    decoder_.key_size = static_cast<uint32_t>(rows_.key_size);
    decoder_.value_size = static_cast<uint32_t>(rows_.value_size);
    return {};
  }

  Result<TensorId> AddFrequencies(const TransformerRecipe::Frequencies& from) {
    const std::string name = "transformer.frequencies";
    TensorId id = 0;
    if (from.tensor) {
      KINGLET_ASSIGN_OR_RETURN(id, network_.AddRef(name, *from.tensor, Use::kKept));
    } else if (width_ < 4 || width_ % 2 != 0) {
      return RefuseModel("transformer", "an even width from 4, half of it sines",
                         std::to_string(width_));
    } else {
      const bool fairseq = from.divisor == TransformerRecipe::Frequencies::Divisor::kHalfMinusOne;
      id = network_.AddComputed(
          name, {width_ / 2},
          fairseq ? MadeFairseqFrequencies(width_) : MadeTransformerXlFrequencies(width_));
    }
    network_.MarkDerived(id);
    return id;
  }

  Status AddPositions() {
    return std::visit(
        Overloaded{
            [&](const SlotPositions& slots) -> Status {
              decoder_.positions = slots;
              return {};
            },
            [&](const TransformerRecipe::Relative& from) -> Status {
              RelativeSinusoids relative{};
              KINGLET_ASSIGN_OR_RETURN(relative.frequencies, AddFrequencies(from.frequencies));
              if (from.clamp) {
                KINGLET_RETURN_IF_ERROR(CheckSize("clamp", *from.clamp));
                relative.clamp = static_cast<uint32_t>(*from.clamp);
              }
              decoder_.positions = relative;
              return {};
            },
            [&](const TransformerRecipe::Sinusoids& from) -> Status {
              if (from.first > kMaxExtent) return CheckSize("first", from.first);
              AbsoluteSinusoids sinusoids{};
              KINGLET_ASSIGN_OR_RETURN(sinusoids.frequencies, AddFrequencies(from.frequencies));
              sinusoids.first = static_cast<uint32_t>(from.first);
              decoder_.positions = sinusoids;
              return {};
            },
            [&](const TransformerRecipe::Table& from) -> Status {
              KINGLET_ASSIGN_OR_RETURN(decoder_.positions, AddPositionTable(from.rows));
              return {};
            }},
        recipe_.positions);
  }

  // The first rows of a table, which may have more, and a dimension of 1 as OpenNMT-py's has.
  Result<PositionTable> AddPositionTable(const TensorRef& ref) {
    KINGLET_ASSIGN_OR_RETURN(const Shape shape, network_.ShapeOf(ref));
    const bool fits = (shape.size() == 2 || (shape.size() == 3 && shape[1] == 1)) &&
                      shape.back() == width_ && shape[0] >= recipe_.window;
    if (!fits) {
      return RefuseTensor(ref, ShapeText({recipe_.window, width_}) + " or more rows",
                          ShapeText(shape));
    }
    KINGLET_ASSIGN_OR_RETURN(
        const TensorId id,
        network_.AddJoinedRefs("transformer.positions", {ref}, {recipe_.window, width_},
                               Role::kKept, First(recipe_.window * width_)));
    return PositionTable{id};
  }

  // Weight or bias of queries, keys and values, head by head.
  Result<TensorId> AddProjections(const std::string& what, const std::vector<TensorRef>& refs,
                                  uint64_t columns, Role role) {
    const uint64_t sizes[] = {rows_.key_size, rows_.key_size, rows_.value_size};
    for (size_t part = 0; part < refs.size(); ++part) {
      KINGLET_ASSIGN_OR_RETURN(const Shape found, network_.ShapeOf(refs[part]));
      const uint64_t rows = refs.size() == 1 ? rows_.All() : rows_.heads * sizes[part];
      const Shape shape = columns == 0 ? Shape{rows} : Shape{rows, columns};
      if (found != shape) return RefuseTensor(refs[part], ShapeText(shape), ShapeText(found));
    }
    return network_.AddJoinedRefs(
        name_ + what, refs, columns == 0 ? Shape{rows_.All()} : Shape{rows_.All(), columns}, role,
        rows_.by_head ? Change() : ByHead(rows_.heads, {std::begin(sizes), std::end(sizes)}));
  }

  // What attention sees before the first token if the norm comes before keys and values.
  Result<std::optional<TensorId>> AddStart(const TransformerRecipe::Layer& from) {
    const bool bias_counts = recipe_.start == TransformerRecipe::Start::kZeroMemory &&
                             recipe_.norm_order == NormOrder::kPre;
    if (!bias_counts) return std::optional<TensorId>();
    if (!std::holds_alternative<TransformerRecipe::Relative>(recipe_.positions) ||
        !from.qkv_bias.empty()) {
      return RefuseModel("transformer, start",
                         "\"masked\" or \"zeros\", unless positions are relative and keys and "
                         "values have no bias",
                         "\"zero_memory\"");
    }
    std::vector<TensorRef> refs = from.qkv;
    refs.push_back(from.attention_norm.offset);
    KINGLET_ASSIGN_OR_RETURN(
        const TensorId id,
        network_.AddJoinedRefs(name_ + "start", refs,
                               {rows_.heads * (rows_.key_size + rows_.value_size)}, Role::kKept,
                               ZeroMemory(rows_)));
    network_.MarkDerived(id);
    return std::optional(id);
  }

  Status AddNorm(const char* which, const TransformerRecipe::Norm& norm,
                 std::optional<TensorId>& gain, std::optional<TensorId>& offset) {
    KINGLET_ASSIGN_OR_RETURN(gain, network_.AddRef(name_ + which + ".gain", norm.gain, Use::kKept));
    KINGLET_ASSIGN_OR_RETURN(offset,
                             network_.AddRef(name_ + which + ".offset", norm.offset, Use::kKept));
    return {};
  }

  // The tensors that only some kinds of positions have.
  Status AddLayerPositions(const TransformerRecipe::Layer& from, TransformerLayer& layer) {
    const bool slots = std::holds_alternative<SlotPositions>(recipe_.positions);
    const bool relative = std::holds_alternative<TransformerRecipe::Relative>(recipe_.positions);
    const struct {
      const char* what;
      const std::optional<TensorRef>& ref;
      bool wanted;
      Shape shape;
      Role role;
      std::optional<TensorId>& to;
    } tensors[] = {{"positions", from.positions, slots || relative,
                    slots ? Shape{rows_.key_size, recipe_.window}
                          : Shape{rows_.heads * rows_.key_size, width_},
                    slots ? Role::kKept : Role::kPrunedAlso, layer.positions},
                   {"content_bias",
                    from.content_bias,
                    relative,
                    {rows_.heads, rows_.key_size},
                    Role::kKept,
                    layer.content_bias},
                   {"position_bias",
                    from.position_bias,
                    relative,
                    {rows_.heads, rows_.key_size},
                    Role::kKept,
                    layer.position_bias}};
    for (const auto& tensor : tensors) {
      if (tensor.ref.has_value() != tensor.wanted) {
        return RefuseModel(name_ + tensor.what,
                           tensor.wanted ? "a tensor, which positions of this kind need"
                                         : "no tensor, as positions of this kind have none",
                           tensor.wanted ? "none" : QuotedName(tensor.ref->name));
      }
      if (!tensor.wanted) continue;
      KINGLET_ASSIGN_OR_RETURN(tensor.to, network_.AddRefAs(name_ + tensor.what, *tensor.ref,
                                                            tensor.shape, tensor.role));
    }
    return {};
  }

  Result<TransformerLayer> MakeLayer(const TransformerRecipe::Layer& from) {
    TransformerLayer layer{};
    KINGLET_RETURN_IF_ERROR(AddNorm("attention_norm", from.attention_norm,
                                    layer.attention_norm_gain, layer.attention_norm_bias));
    KINGLET_ASSIGN_OR_RETURN(layer.qkv_weight,
                             AddProjections("qkv_weight", from.qkv, width_, Role::kPrunedAlso));
    if (!from.qkv_bias.empty()) {
      KINGLET_ASSIGN_OR_RETURN(layer.qkv_bias,
                               AddProjections("qkv_bias", from.qkv_bias, 0, Role::kQuantised));
    }
    KINGLET_RETURN_IF_ERROR(AddLayerPositions(from, layer));
    KINGLET_ASSIGN_OR_RETURN(layer.start, AddStart(from));
    KINGLET_ASSIGN_OR_RETURN(layer.out_weight,
                             network_.AddRef(name_ + "out_weight", from.out, Use::kMatrix));
    KINGLET_ASSIGN_OR_RETURN(
        layer.out_bias, network_.AddOptionalRef(name_ + "out_bias", from.out_bias, Use::kVector));
    KINGLET_RETURN_IF_ERROR(
        AddNorm("inner_norm", from.inner_norm, layer.inner_norm_gain, layer.inner_norm_bias));
    KINGLET_ASSIGN_OR_RETURN(layer.inner_weight,
                             network_.AddRef(name_ + "inner_weight", from.inner, Use::kMatrix));
    KINGLET_ASSIGN_OR_RETURN(layer.inner_bias,
                             network_.AddRef(name_ + "inner_bias", from.inner_bias, Use::kVector));
    KINGLET_ASSIGN_OR_RETURN(layer.outer_weight,
                             network_.AddRef(name_ + "outer_weight", from.outer, Use::kMatrix));
    KINGLET_ASSIGN_OR_RETURN(layer.outer_bias,
                             network_.AddRef(name_ + "outer_bias", from.outer_bias, Use::kVector));
    return layer;
  }

  const TransformerRecipe& recipe_;
  const uint32_t width_;
  Network& network_;
  HeadRows rows_{};
  TransformerDecoder decoder_{};
  std::string name_;  // of the layer
};

}  // namespace

Result<TransformerDecoder> MakeTransformer(const TransformerRecipe& recipe, uint32_t width,
                                           Network& network) {
  return TransformerMaker(recipe, width, network).Make();
}

}  // namespace kinglet
