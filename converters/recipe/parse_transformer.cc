#include "converters/recipe/parse_transformer.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "converters/recipe/parse_table.h"
#include "format/limits.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

// Names of enumerators, in their order.
constexpr std::array kStreamStarts = {"masked"sv, "zeros"sv, "zero_memory"sv};
constexpr std::array kNormOrders = {"pre"sv, "post"sv};
constexpr std::array kDivisors = {"half"sv, "half_minus_one"sv};
// The names of two values of a bool, false first.
constexpr std::array kMatrixLayouts = {"out_in"sv, "in_out"sv};
constexpr std::array kRowOrders = {"parts"sv, "heads"sv};
constexpr std::array kSlots = {"slots"sv};
constexpr std::array kNone = {"none"sv};

// Calls `visit` with each reference of a layer.
template <class Visit>
void ForEachRef(TransformerRecipe::Layer& layer, const Visit& visit) {
  for (TransformerRecipe::Norm* norm : {&layer.attention_norm, &layer.inner_norm}) {
    visit(norm->gain);
    visit(norm->offset);
  }
  for (std::vector<TensorRef>* refs : {&layer.qkv, &layer.qkv_bias}) {
    for (TensorRef& ref : *refs) visit(ref);
  }
  for (std::optional<TensorRef>* ref :
       {&layer.positions, &layer.content_bias, &layer.position_bias, &layer.out_bias}) {
    if (*ref) visit(**ref);
  }
  for (TensorRef* ref :
       {&layer.out, &layer.inner, &layer.inner_bias, &layer.outer, &layer.outer_bias}) {
    visit(*ref);
  }
}

class TransformerParser {
 public:
  explicit TransformerParser(std::vector<std::string>& references)
      : references_(references), parse_(references) {}

  Result<TransformerRecipe> Parse(const RecipeNode& node) {
    KINGLET_RETURN_IF_ERROR(
        node.CheckKeys({"heads", "window", "start", "norm", "epsilon", "layout", "qkv_rows",
                        "positions", "layers", "layer", "final_norm"}));
    // Into how many parts attention is divided.
    KINGLET_ASSIGN_OR_RETURN(recipe_.heads, node.CountAt("heads"));
    // How many tokens a token attends to, itself included; with absolute positions, how many
    // positions there are.
    KINGLET_ASSIGN_OR_RETURN(recipe_.window, node.CountAt("window"));
    // What attention sees where the stream has no tokens yet.
    KINGLET_RETURN_IF_ERROR(Enumerator(node, "start", kStreamStarts, recipe_.start));
    // Whether a layer's norms come before attention and feed-forward layer, or after the sums.
    KINGLET_RETURN_IF_ERROR(Enumerator(node, "norm", kNormOrders, recipe_.norm_order));
    // What the norms add to the variance.
    KINGLET_ASSIGN_OR_RETURN(recipe_.epsilon, node.NumberAt("epsilon"));
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode positions, node.Get("positions"));
    KINGLET_RETURN_IF_ERROR(ParsePositions(positions));
    // Whether the checkpoint stores matrices as [outputs, inputs] or [inputs, outputs].
    bool in_out = false;
    KINGLET_RETURN_IF_ERROR(Enumerator(node, "layout", kMatrixLayouts, in_out));
    KINGLET_RETURN_IF_ERROR(ParseLayers(node));
    for (TransformerRecipe::Layer& layer : recipe_.layers) Orient(in_out, layer);
    KINGLET_RETURN_IF_ERROR(ParseRowOrder(node));
    // The norm after the last layer.
    if (node.Find("final_norm")) {
      KINGLET_ASSIGN_OR_RETURN(recipe_.final_norm, Norm(parse_, node, "final_norm"));
    }
    return std::move(recipe_);
  }

 private:
  // Reads a required member.
  template <class Enum, size_t kCount>
  static Status Enumerator(const RecipeNode& node, std::string_view key,
                           const std::array<std::string_view, kCount>& names, Enum& value) {
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, node.Get(key));
    KINGLET_ASSIGN_OR_RETURN(const size_t index, member.Choice(names));
    value = static_cast<Enum>(index);
    return {};
  }

  // Sets the orientation of the matrices whose references do not state it.
  void Orient(bool in_out, TransformerRecipe::Layer& layer) const {
    std::vector<TensorRef*> matrices = {&layer.out, &layer.inner, &layer.outer};
    for (TensorRef& part : layer.qkv) matrices.push_back(&part);
    const bool relative = std::holds_alternative<TransformerRecipe::Relative>(recipe_.positions);
    if (relative && layer.positions) matrices.push_back(&*layer.positions);
    for (TensorRef* matrix : matrices) {
      if (!std::exchange(matrix->oriented, true)) matrix->transpose = in_out;
    }
  }

  // "positions": "slots", or an object with one key.
  Status ParsePositions(const RecipeNode& node) {
    if (node.IsText()) return node.Choice(kSlots).status();
    KINGLET_RETURN_IF_ERROR(node.CheckKeys({"relative", "sinusoids", "table"}));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> kinds, node.Keys());
    if (kinds.size() != 1) {
      return node.Refuse("\"slots\" or one kind of positions",
                         std::to_string(kinds.size()) + " kinds");
    }
    const RecipeNode kind = *node.Find(kinds[0]);
    if (kinds[0] == "table") {
      // Row t is added to the vector of token t.
      KINGLET_ASSIGN_OR_RETURN(TensorRef rows, parse_.Ref(kind));
      recipe_.positions = TransformerRecipe::Table{std::move(rows)};
      return {};
    }
    if (kinds[0] == "sinusoids") {
      KINGLET_RETURN_IF_ERROR(kind.CheckKeys({"frequencies", "divisor", "first"}));
      TransformerRecipe::Sinusoids sinusoids;
      KINGLET_RETURN_IF_ERROR(ParseFrequencies(kind, sinusoids.frequencies));
      // The position of token 0.
      KINGLET_ASSIGN_OR_RETURN(sinusoids.first, kind.CountAt("first"));
      recipe_.positions = std::move(sinusoids);
      return {};
    }
    KINGLET_RETURN_IF_ERROR(kind.CheckKeys({"frequencies", "divisor", "clamp"}));
    TransformerRecipe::Relative relative;
    KINGLET_RETURN_IF_ERROR(ParseFrequencies(kind, relative.frequencies));
    // The largest distance; larger ones count as this one.
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode clamp, kind.Get("clamp"));
    if (clamp.IsText()) {
      KINGLET_RETURN_IF_ERROR(clamp.Choice(kNone).status());
    } else {
      KINGLET_ASSIGN_OR_RETURN(relative.clamp, clamp.Count());
    }
    recipe_.positions = std::move(relative);
    return {};
  }

  Status ParseFrequencies(const RecipeNode& node, TransformerRecipe::Frequencies& frequencies) {
    KINGLET_ASSIGN_OR_RETURN(frequencies.tensor, parse_.OptionalRef(node, "frequencies"));
    if (const auto divisor = node.Find("divisor"); divisor && frequencies.tensor) {
      return node.Refuse("\"frequencies\" or \"divisor\"", "both");
    }
    if (frequencies.tensor) return {};
    // What the exponents of the frequencies are divided by: half the width, or one less.
    return Enumerator(node, "divisor", kDivisors, frequencies.divisor);
  }

  static Result<TransformerRecipe::Norm> Norm(TableParser& parse, const RecipeNode& node,
                                              std::string_view key) {
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, node.Get(key));
    KINGLET_RETURN_IF_ERROR(member.CheckKeys({"gain", "offset"}));
    TransformerRecipe::Norm norm;
    KINGLET_ASSIGN_OR_RETURN(norm.gain, parse.Ref(member, "gain"));
    KINGLET_ASSIGN_OR_RETURN(norm.offset, parse.Ref(member, "offset"));
    return norm;
  }

  // "layers": how many, with "layer" for all of them, or an array.
  Status ParseLayers(const RecipeNode& node) {
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode layers, node.Get("layers"));
    if (layers.IsArray()) {
      if (const auto pattern = node.Find("layer")) {
        return pattern->Refuse(
            "\"layer\" only with a number of \"layers\", not with an array (delete it)",
            pattern->Outline());
      }
      KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, layers.Items());
      for (const RecipeNode& item : items) {
        KINGLET_ASSIGN_OR_RETURN(TransformerRecipe::Layer layer, Layer(item, parse_));
        recipe_.layers.push_back(std::move(layer));
      }
      return CheckCount(layers, recipe_.layers.size());
    }
    KINGLET_ASSIGN_OR_RETURN(const uint64_t count, layers.Count());
    KINGLET_RETURN_IF_ERROR(CheckCount(layers, count));
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode pattern, node.Get("layer"));
    std::vector<std::string> patterns;  // the names before the layer's number is inserted
    TableParser parse(patterns);
    KINGLET_ASSIGN_OR_RETURN(const TransformerRecipe::Layer common, Layer(pattern, parse));
    for (uint64_t i = 0; i < count; ++i) {
      TransformerRecipe::Layer layer = common;
      ForEachRef(layer, [&](TensorRef& ref) {
        if (const size_t at = ref.name.find("{}"); at != std::string::npos) {
          ref.name.replace(at, 2, std::to_string(i));
        }
        references_.push_back(ref.name);
      });
      recipe_.layers.push_back(std::move(layer));
    }
    return {};
  }

  static Status CheckCount(const RecipeNode& layers, uint64_t count) {
    if (count >= 1 && count <= kMaxLayers) return {};
    return layers.Refuse("1 to " + std::to_string(kMaxLayers) + " layers", std::to_string(count));
  }

  static Result<TransformerRecipe::Layer> Layer(const RecipeNode& node, TableParser& parse) {
    KINGLET_RETURN_IF_ERROR(node.CheckKeys(
        {"attention_norm", "qkv", "qkv_bias", "positions", "content_bias", "position_bias", "out",
         "out_bias", "inner_norm", "inner", "inner_bias", "outer", "outer_bias"}));
    TransformerRecipe::Layer layer;
    KINGLET_ASSIGN_OR_RETURN(layer.attention_norm, Norm(parse, node, "attention_norm"));
    // Weight and bias of queries, keys and values.
    KINGLET_ASSIGN_OR_RETURN(layer.qkv, Parts(node, "qkv", parse));
    if (node.Find("qkv_bias")) {
      KINGLET_ASSIGN_OR_RETURN(layer.qkv_bias, Parts(node, "qkv_bias", parse));
      if (layer.qkv_bias.size() != layer.qkv.size()) {
        return node.Find("qkv_bias")
            ->Refuse(std::to_string(layer.qkv.size()) + " tensors, as qkv has",
                     std::to_string(layer.qkv_bias.size()));
      }
    }
    // The tensor of relative positions or of slots, and the two biases of attention queries.
    KINGLET_ASSIGN_OR_RETURN(layer.positions, parse.OptionalRef(node, "positions"));
    KINGLET_ASSIGN_OR_RETURN(layer.content_bias, parse.OptionalRef(node, "content_bias"));
    KINGLET_ASSIGN_OR_RETURN(layer.position_bias, parse.OptionalRef(node, "position_bias"));
    // Weight and bias after the attention.
    KINGLET_ASSIGN_OR_RETURN(layer.out, parse.Ref(node, "out"));
    KINGLET_ASSIGN_OR_RETURN(layer.out_bias, parse.OptionalRef(node, "out_bias"));
    // The feed-forward layer: its norm, weight and bias before and after the ReLU.
    KINGLET_ASSIGN_OR_RETURN(layer.inner_norm, Norm(parse, node, "inner_norm"));
    KINGLET_ASSIGN_OR_RETURN(layer.inner, parse.Ref(node, "inner"));
    KINGLET_ASSIGN_OR_RETURN(layer.inner_bias, parse.Ref(node, "inner_bias"));
    KINGLET_ASSIGN_OR_RETURN(layer.outer, parse.Ref(node, "outer"));
    KINGLET_ASSIGN_OR_RETURN(layer.outer_bias, parse.Ref(node, "outer_bias"));
    return layer;
  }

  // A tensor, or an array of three: for queries, keys and values.
  static Result<std::vector<TensorRef>> Parts(const RecipeNode& node, std::string_view key,
                                              TableParser& parse) {
    KINGLET_ASSIGN_OR_RETURN(const RecipeNode member, node.Get(key));
    std::vector<TensorRef> refs;
    if (!member.IsArray()) {
      KINGLET_ASSIGN_OR_RETURN(TensorRef ref, parse.Ref(member));
      refs.push_back(std::move(ref));
      return refs;
    }
    KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, member.Items());
    if (items.size() != 3) {
      return member.Refuse("a tensor, or three: of queries, keys and values",
                           std::to_string(items.size()));
    }
    for (const RecipeNode& item : items) {
      KINGLET_ASSIGN_OR_RETURN(TensorRef ref, parse.Ref(item));
      refs.push_back(std::move(ref));
    }
    return refs;
  }

  // "qkv_rows": of layers whose queries, keys and values are one tensor, whether all rows of
  // queries come first, or those of the first head.
  Status ParseRowOrder(const RecipeNode& node) {
    const bool joined = recipe_.layers[0].qkv.size() == 1;
    for (const TransformerRecipe::Layer& layer : recipe_.layers) {
      if (layer.qkv.size() != recipe_.layers[0].qkv.size()) {
        return node.Find("layers")->Refuse("qkv of the same form in every layer", "both forms");
      }
    }
    if (joined) return Enumerator(node, "qkv_rows", kRowOrders, recipe_.by_head);
    const auto order = node.Find("qkv_rows");
    return order ? order->Refuse("no \"qkv_rows\", as qkv has three tensors (delete it)",
                                 order->Outline())
                 : Status();
  }

  TransformerRecipe recipe_;
  std::vector<std::string>& references_;
  TableParser parse_;
};

}  // namespace

Result<TransformerRecipe> ParseTransformer(const RecipeNode& node,
                                           std::vector<std::string>& references) {
  return TransformerParser(references).Parse(node);
}

}  // namespace kinglet
