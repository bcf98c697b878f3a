#include "converters/recipe/recipe_blocks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "converters/recipe/parse_table.h"
#include "converters/recipe/recipe_table.h"
#include "format/block_fields.h"
#include "format/limits.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kPositionKinds = {"slots"sv, "relative_sinusoids"sv, "absolute_sinusoids"sv,
                                       "table"sv, "none"sv};

// Rows of queries, keys and values: all queries, all keys, all values; or head by head.
constexpr std::array kRowOrders = {"parts"sv, "heads"sv};
// Whether the checkpoint stores matrices as [outputs, inputs] or [inputs, outputs].
constexpr std::array kBlockLayouts = {"out_in"sv, "in_out"sv};

// Fields of matrices, which frameworks store in either layout. Tables have a row for each word.
bool IsMatrixField(std::string_view field) {
  return field.ends_with("weight") || field.ends_with("projection");
}

// Fields of norms and positions, which passes leave as they are.
bool IsKept(std::string_view field) {
  return field.find("norm") != field.npos ||
         std::ranges::count(std::array{"frequencies"sv, "position_table"sv, "content_bias"sv,
                                       "position_bias"sv, "start"sv, "input_scale"sv,
                                       "input_shift"sv, "output_scale"sv, "output_shift"sv},
                            field) > 0;
}

// Reads the fields of a block from an object: a visitor of Fields (format/block_fields.h). Keeps
// the first error.
class BlockParser {
 public:
  BlockParser(bool in_out, BlocksRecipe& recipe, std::vector<std::string>& references)
      : in_out_(in_out), recipe_(recipe), parse_(references) {}

  Result<Block> Parse(const RecipeNode& node) {
    KINGLET_ASSIGN_OR_RETURN(const size_t kind, node.ChoiceAt("block", kBlockKinds));
    KINGLET_ASSIGN_OR_RETURN(const std::string name, node.TextAt("name"));
    return Parse(node, {"block", "name"}, name,
                 MakeBlock(kind, std::make_index_sequence<std::variant_size_v<Block>>()));
  }
  // Reads the fields of a block whose object also has the keys of `others`.
  Result<Block> Parse(const RecipeNode& node, std::vector<std::string_view> others,
                      const std::string& name, Block block) {
    prefix_ = name;
    std::visit(
        [&](auto& value) {
          value.name = name;
          Object(node, std::move(others), value);
        },
        block);
    KINGLET_RETURN_IF_ERROR(status_);
    return block;
  }

  template <class T>
  void Value(const char* name, T& value) {
    if (const auto member = Required(name)) Read(*member, value);
  }
  template <class T>
  void Value(const char* name, std::optional<T>& value) {
    if (const auto member = Member(name)) Read(*member, value.emplace());
  }
  // A function, and a norm's epsilon, must be stated.
  template <class T>
  void Value(const char* name, T& value, T otherwise) {
    value = otherwise;
    const bool stated = std::is_enum_v<T> || name == "epsilon"sv;
    if (const auto member = stated ? Required(name) : Member(name)) Read(*member, value);
  }
  void Tensor(const char* name, TensorId& id) {
    if (const auto member = Required(name)) ReadTensor(name, *member, id);
  }
  void Tensor(const char* name, std::optional<TensorId>& id) {
    if (const auto member = Member(name)) ReadTensor(name, *member, id.emplace());
  }
  // Quantisers come from a calibration, and a unit that stays in the model from "define".
  template <class T>
  void Quantiser(const char* /*name*/, T& /*quantiser*/) {}
  template <class T>
  void Quantisers(const char* /*name*/, T& /*quantisers*/) {}
  template <class T>
  void Units(const char* /*name*/, T& /*units*/) {}
  template <class T>
  void Part(const char* name, T& part) {
    if (const auto member = Required(name)) Inside(name, *member, part);
  }
  template <class T>
  void Part(const char* name, std::optional<T>& part) {
    if (const auto member = Member(name)) Inside(name, *member, part.emplace());
  }
  template <class T>
  void List(const char* name, std::vector<T>& parts, size_t most) {
    const auto member = Required(name);
    if (!member) return;
    // An array, or one object for all, in whose names "{}" stands for the number.
    const auto each = member->Find("each");
    std::vector<RecipeNode> items;
    uint64_t count = 0;
    if (each) {
      const auto stated = member->CountAt("count");
      if (Failed(member->CheckKeys({"count", "each"})) || Failed(stated.status())) return;
      count = *stated;
    } else {
      auto listed = member->Items();
      if (Failed(listed.status())) return;
      items = *std::move(listed);
      count = items.size();
    }
    if (count > most) {
      status_ =
          member->Refuse("at most " + std::to_string(most) + " " + name, std::to_string(count));
      return;
    }
    for (size_t i = 0; i < count && status_.ok(); ++i) {
      const std::string number = std::to_string(i);
      const std::string outer = each ? parse_.SetNumber(number) : std::string();
      Inside(name + ("." + number), each ? *each : items[i], parts.emplace_back());
      if (each) parse_.SetNumber(outer);
    }
  }
  void Positions(kinglet::Positions& positions) {
    const auto member = Required("positions");
    if (!member) return;
    const auto kind = member->ChoiceAt("kind", kPositionKinds);
    if (Failed(kind.status())) return;
    WithFields(*member, {"kind"}, [&] { ReadPositions(*kind, positions); });
  }
  void NoPositions(kinglet::Positions& /*positions*/) {}

 private:
  template <size_t... kIndices>
  static Block MakeBlock(size_t kind, std::index_sequence<kIndices...> /*indices*/) {
    Block block;
    ((kIndices == kind ? void(block.emplace<kIndices>()) : void()), ...);
    return block;
  }

  bool Failed(const Status& status) {
    if (status_.ok()) status_ = status;
    return !status_.ok();
  }

  std::optional<RecipeNode> Member(const char* name) {
    known_.push_back(name);
    return status_.ok() ? node_->Find(name) : std::nullopt;
  }
  std::optional<RecipeNode> Required(const char* name) {
    known_.push_back(name);
    if (!status_.ok()) return std::nullopt;
    auto member = node_->Get(name);
    if (Failed(member.status())) return std::nullopt;
    return *std::move(member);
  }

  // Refuses keys that no field has.
  void CheckKeys() {
    if (!status_.ok()) return;
    const auto keys = node_->Keys();
    if (Failed(keys.status())) return;
    for (const std::string& key : *keys) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      std::string fields;
      for (const std::string_view name : known_) {
        fields += (fields.empty() ? "" : ", ") + std::string(name);
      }
      status_ = node_->Find(key)->Refuse("one of the keys " + fields, "'" + key + "'");
      return;
    }
  }

  void ReadPositions(size_t kind, kinglet::Positions& positions) {
    relative_ = kind == 1;
    if (kind == 0) {
      positions = SlotPositions{};
    } else if (kind == 1) {
      auto& relative = positions.emplace<RelativeSinusoids>();
      Tensor("frequencies", relative.frequencies);
      Value("clamp", relative.clamp);
      Value("rounded", relative.rounded, false);
    } else if (kind == 2) {
      auto& absolute = positions.emplace<AbsoluteSinusoids>();
      Tensor("frequencies", absolute.frequencies);
      Value("first", absolute.first);
    } else if (kind == 3) {
      auto& table = positions.emplace<PositionTable>();
      if (const auto rows = Required("table")) ReadTensor("position_table", *rows, table.table);
    } else {
      positions = kinglet::NoPositions{};
    }
  }

  // Calls `read` for the members of an object, which may also have the keys of `others`.
  template <class Read>
  void WithFields(const RecipeNode& node, std::vector<std::string_view> others, const Read& read) {
    const std::optional<RecipeNode> outer = std::exchange(node_, node);
    std::vector<std::string_view> known = std::exchange(known_, std::move(others));
    read();
    CheckKeys();
    node_ = outer;
    known_ = std::move(known);
  }
  template <class T>
  void Object(const RecipeNode& node, std::vector<std::string_view> others, T& part) {
    WithFields(node, std::move(others), [&] { Fields(part, *this); });
  }
  template <class T>
  void Inside(const std::string& name, const RecipeNode& node, T& part) {
    const std::string outer = prefix_;
    prefix_ += "." + name;
    Object(node, {}, part);
    prefix_ = outer;
  }

  template <class T>
  void Read(const RecipeNode& node, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto choice = node.Choice(NamesOf(value));
      if (!Failed(choice.status())) value = static_cast<T>(*choice);
    } else if constexpr (std::is_same_v<T, bool>) {
      const auto truth = node.Truth();
      if (!Failed(truth.status())) value = *truth;
    } else if constexpr (std::is_floating_point_v<T>) {
      const auto number = node.Number();
      if (!Failed(number.status())) value = static_cast<T>(*number);
    } else {
      const auto count = node.Count();
      if (Failed(count.status())) return;
      if (*count > std::numeric_limits<T>::max()) {
        status_ = node.Refuse("an integer below 2^32", node.Outline());
        return;
      }
      value = static_cast<T>(*count);
    }
  }

  // A reference, or {"join": [references], ..}: several tensors, one after the other, changed.
  void ReadTensor(const char* field, const RecipeNode& node, TensorId& id) {
    BlocksRecipe::Tensor tensor{prefix_ + "." + field, field, {}, {}};
    if (!Failed(node.Find("join") ? ReadJoined(node, tensor) : ReadPart(node, tensor))) {
      for (TensorRef& part : tensor.parts) {
        const bool stated = std::exchange(part.oriented, true);
        // The layers' projection of relative positions is a matrix; a table of slots is not.
        const bool matrix = IsMatrixField(field) || (relative_ && field == "positions"sv);
        if (!stated && matrix) part.transpose = in_out_;
      }
      id = static_cast<TensorId>(recipe_.tensors.size());
      recipe_.tensors.push_back(std::move(tensor));
    }
  }
  Status ReadPart(const RecipeNode& node, BlocksRecipe::Tensor& tensor) {
    KINGLET_ASSIGN_OR_RETURN(TensorRef ref, parse_.Ref(node));
    tensor.parts.push_back(std::move(ref));
    return {};
  }
  Status ReadJoined(const RecipeNode& node, BlocksRecipe::Tensor& tensor) {
    KINGLET_RETURN_IF_ERROR(
        node.CheckKeys({"join", "heads", "sizes", "change", "shape", "role", "derived"}));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, node.ItemsAt("join"));
    for (const RecipeNode& item : items) KINGLET_RETURN_IF_ERROR(ReadPart(item, tensor));
    // Into how many heads each matrix is divided; without the key, rows keep their order.
    if (const auto heads = node.Find("heads")) {
      // The rows of a head in each matrix, in proportion; of one tensor that holds several
      // matrices, they tell how many.
      std::vector<double> numbers(tensor.parts.size() + 1, 1);
      if (const auto sizes = node.Find("sizes")) {
        KINGLET_ASSIGN_OR_RETURN(numbers, NumbersOf(*sizes));
        numbers.insert(numbers.begin(), 1);
      }
      KINGLET_ASSIGN_OR_RETURN(const uint64_t count, heads->Count());
      numbers[0] = static_cast<double>(count);
      KINGLET_RETURN_IF_ERROR(AddChange(*heads, "by_head", numbers, tensor.change));
    }
    if (const auto change = node.Find("change")) {
      KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> functions, change->Items());
      for (const RecipeNode& function : functions) {
        KINGLET_ASSIGN_OR_RETURN(const std::vector<std::string> names, function.Keys());
        if (names.size() != 1) return function.Refuse("one function", function.Outline());
        KINGLET_ASSIGN_OR_RETURN(const RecipeNode value, function.Get(names[0]));
        KINGLET_ASSIGN_OR_RETURN(const std::vector<double> numbers, NumbersOf(value));
        KINGLET_RETURN_IF_ERROR(AddChange(function, names[0], numbers, tensor.change));
      }
    }
    if (const auto shape = node.Find("shape")) {
      KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> sizes, shape->Items());
      for (const RecipeNode& size : sizes) {
        KINGLET_ASSIGN_OR_RETURN(const uint64_t count, size.Count());
        if (count == 0 || count > kMaxDimension) return size.Refuse("a size", size.Outline());
        tensor.shape.push_back(count);
      }
      if (sizes.empty() || sizes.size() > 2) {
        return shape->Refuse("one or two sizes", std::to_string(sizes.size()));
      }
    } else if (tensor.parts.empty()) {
      return node.Refuse("\"shape\", as no tensor is joined", "none");
    }
    if (node.Find("role")) {
      KINGLET_ASSIGN_OR_RETURN(const size_t role, node.ChoiceAt("role", kRoleNames));
      tensor.role = static_cast<Role>(role);
    }
    if (const auto derived = node.Find("derived")) {
      KINGLET_ASSIGN_OR_RETURN(tensor.derived, derived->Truth());
    }
    return {};
  }

  // A number, or an array of numbers.
  static Result<std::vector<double>> NumbersOf(const RecipeNode& node) {
    std::vector<double> numbers;
    if (!node.IsArray()) {
      KINGLET_ASSIGN_OR_RETURN(const double number, node.Number());
      return std::vector{number};
    }
    KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, node.Items());
    for (const RecipeNode& item : items) {
      KINGLET_ASSIGN_OR_RETURN(const double number, item.Number());
      numbers.push_back(number);
    }
    return numbers;
  }
  static Status AddChange(const RecipeNode& node, std::string_view kind,
                          const std::vector<double>& numbers, Change& change) {
    Result<Change> made = MakeChange(kind, numbers);
    if (!made.ok()) return node.Refuse("a change of docs/RECIPES.md", made.status().message());
    change = Then(std::move(change), *std::move(made));
    return {};
  }

  const bool in_out_;
  BlocksRecipe& recipe_;
  TableParser parse_;
  Status status_;
  std::optional<RecipeNode> node_;       // the object whose fields are read
  std::vector<std::string_view> known_;  // the keys that its fields have
  std::string prefix_;                   // of the tensors' names
  bool relative_ = false;                // whether the block has relative positions
};

// The shape without a dimension of 1 in three: tables of positions have one.
Shape Flat(Shape shape) {
  if (shape.size() == 3) {
    const auto one = std::find(shape.begin(), shape.end(), 1u);
    if (one != shape.end()) shape.erase(one);
  }
  return shape;
}

// The shape of the joined parts, which differ in their first dimension only.
Result<Shape> JoinedShape(const BlocksRecipe::Tensor& tensor, const Network& network) {
  Shape all;
  for (const TensorRef& ref : tensor.parts) {
    KINGLET_ASSIGN_OR_RETURN(Shape shape, network.ShapeOf(ref));
    shape = Flat(std::move(shape));
    if (shape.empty() || shape.size() > 2) {
      return RefuseTensor(ref, "a vector or a matrix", ShapeText(shape));
    }
    if (all.empty()) {
      all = shape;
      continue;
    }
    if (shape.size() != all.size() || (all.size() == 2 && shape[1] != all[1])) {
      return RefuseTensor(ref, "the columns of " + tensor.parts.front().name, ShapeText(shape));
    }
    all[0] += shape[0];
  }
  return all;
}

Result<TensorId> AddTensor(const BlocksRecipe::Tensor& tensor, Network& network) {
  Shape shape = tensor.shape;
  if (shape.empty()) {
    KINGLET_ASSIGN_OR_RETURN(shape, JoinedShape(tensor, network));
  }
  const Role role = tensor.role.value_or(RoleOf(tensor.field, shape));
  KINGLET_ASSIGN_OR_RETURN(const TensorId id, network.AddJoinedRefs(tensor.name, tensor.parts,
                                                                    shape, role, tensor.change));
  if (tensor.derived) network.MarkDerived(id);
  return id;
}

}  // namespace

Role RoleOf(std::string_view field, const Shape& shape) {
  if (IsKept(field)) return Role::kKept;
  return shape.size() == 2 ? Role::kPrunedAlso : Role::kQuantised;
}

Result<BlocksRecipe> ParseBlocks(const RecipeNode& root, std::vector<std::string>& references) {
  BlocksRecipe recipe;
  KINGLET_ASSIGN_OR_RETURN(const size_t layout, root.ChoiceAt("layout", kBlockLayouts));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<RecipeNode> items, root.ItemsAt("blocks"));
  for (const RecipeNode& item : items) {
    KINGLET_ASSIGN_OR_RETURN(Block block, BlockParser(layout == 1, recipe, references).Parse(item));
    recipe.blocks.push_back(std::move(block));
  }
  return recipe;
}

Result<BlocksRecipe> ParseTransformer(const RecipeNode& node,
                                      std::vector<std::string>& references) {
  BlocksRecipe recipe;
  KINGLET_ASSIGN_OR_RETURN(const size_t layout, node.ChoiceAt("layout", kBlockLayouts));
  KINGLET_ASSIGN_OR_RETURN(const size_t rows, node.ChoiceAt("qkv_rows", kRowOrders));
  KINGLET_ASSIGN_OR_RETURN(
      Block block, BlockParser(layout == 1, recipe, references)
                       .Parse(node, {"layout", "qkv_rows"}, "transformer", TransformerDecoder{}));
  const auto& decoder = std::get<TransformerDecoder>(block);
  const Change by_head =
      ByHead(decoder.heads, {decoder.key_size, decoder.key_size, decoder.value_size});
  for (BlocksRecipe::Tensor& tensor : recipe.tensors) {
    if (tensor.field != "qkv_weight" && tensor.field != "qkv_bias") continue;
    if (!tensor.change.functions.empty()) {
      return node.Refuse("\"qkv_rows\" alone to tell the order of " + tensor.name, "a change");
    }
    if (rows == 0) tensor.change = by_head;
  }
  recipe.blocks.push_back(std::move(block));
  return recipe;
}

Status AddBlocks(const BlocksRecipe& recipe, Network& network) {
  std::vector<TensorId> ids;
  for (const BlocksRecipe::Tensor& tensor : recipe.tensors) {
    KINGLET_ASSIGN_OR_RETURN(const TensorId id, AddTensor(tensor, network));
    ids.push_back(id);
  }
  ModelDescription& description = network.model.draft.description;
  for (const Block& from : recipe.blocks) {
    Block block = from;
    std::visit([&](auto& value) { ForEachTensor(value, [&](TensorId& id) { id = ids[id]; }); },
               block);
    if (const auto* embedding = std::get_if<AdaptiveEmbedding>(&block)) {
      uint64_t words = 0;
      for (const EmbeddingBin& bin : embedding->bins) words += bin.size;
      KINGLET_RETURN_IF_ERROR(CheckWords("blocks", words));
      description.vocabulary_size = static_cast<uint32_t>(words);
    }
    description.blocks.push_back(std::move(block));
  }
  return {};
}

}  // namespace kinglet
