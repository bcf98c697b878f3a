#include "tools/network_recipe.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "converters/checkpoints/json_value.h"
#include "converters/network/network.h"
#include "converters/recipe/recipe_blocks.h"
#include "converters/recipe/recipe_text.h"
#include "format/block_fields.h"
#include "tools/block_json.h"
#include "tools/json_lines.h"

namespace kinglet {
namespace {

void AppendRange(const char* key, const std::optional<TensorRef::Range>& range, JsonLine& line) {
  if (!range) return;
  line.Key(key).BeginArray().Integer(range->begin).Integer(range->end).EndArray();
}

// Writes where the tensors of a loaded model come from.
class OriginWriter {
 public:
  OriginWriter(const LoadedModel& model, const CheckpointTensors& weights)
      : model_(model), weights_(weights) {
    for (const CheckpointTensor& tensor : weights) {
      if (tensor.made.empty()) stored_.insert(tensor.name);
    }
  }

  bool complete() const { return complete_; }

  void Write(TensorId id, std::string_view field, JsonLine& line) {
    const EncodedTensor& tensor = model_.draft.tensors[id];
    const LoadedModel::Origin& origin = model_.origins[id];
    const auto& [parts, change] = origin;
    complete_ = complete_ && CanWrite(origin);
    const auto has = [id](const std::vector<TensorId>& ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    const Role role = has(model_.prunable)      ? Role::kPrunedAlso
                      : has(model_.quantisable) ? Role::kQuantised
                                                : Role::kKept;
    const bool has_own_role = role != RoleOf(field, tensor.shape);
    if (parts.size() == 1 && change.functions.empty() && !has_own_role && !tensor.derived) {
      return WritePart(parts[0], line);
    }
    line.BeginObject().Key("join").BeginArray();
    for (const TensorRef& part : parts) WritePart(part, line);
    line.EndArray();
    if (!change.functions.empty()) {
      line.Key("change").BeginArray();
      for (const Change::Function& function : change.functions) {
        line.BeginObject().Key(function.kind).BeginArray();
        for (const double number : function.numbers) line.Number(number);
        line.EndArray().EndObject();
      }
      line.EndArray();
    }
    line.Key("shape").BeginArray();
    for (const uint64_t size : tensor.shape) line.Integer(size);
    line.EndArray();
    if (has_own_role) line.Key("role").Text(kRoleNames[static_cast<size_t>(role)]);
    if (tensor.derived) line.Key("derived").Boolean(true);
    line.EndObject();
  }

  // The checkpoint's tensors that no reference names.
  std::vector<std::string> Unused() const {
    std::vector<std::string> names;
    for (const CheckpointTensor& tensor : weights_) {
      if (!written_.contains(tensor.name)) names.push_back(tensor.name);
    }
    return names;
  }

 private:
  // Whether a recipe can state it: functions of the closed list, and tensors of the file.
  bool CanWrite(const LoadedModel::Origin& origin) const {
    const auto& [parts, change] = origin;
    return !(parts.empty() && change.functions.empty()) &&
           std::ranges::all_of(change.functions,
                               [](const Change::Function& function) {
                                 return MakeChange(function.kind, function.numbers).ok();
                               }) &&
           std::ranges::all_of(
               parts, [this](const TensorRef& part) { return stored_.contains(part.name); });
  }

  void WritePart(const TensorRef& part, JsonLine& line) {
    written_.insert(part.name);
    if (part.whole()) {
      line.Text(part.name);
      return;
    }
    line.BeginObject().Key("tensor").Text(part.name);
    AppendRange("rows", part.rows, line);
    AppendRange("columns", part.columns, line);
    if (part.transpose) line.Key("transpose").Boolean(true);
    line.EndObject();
  }

  const LoadedModel& model_;
  const CheckpointTensors& weights_;
  std::set<std::string_view> stored_;  // the names of the file's tensors
  std::set<std::string, std::less<>> written_;
  bool complete_ = true;
};

bool HasUnit(const ModelDescription& description) {
  const auto* embedding = FindBlock<AdaptiveEmbedding>(description);
  return embedding != nullptr && !embedding->units.empty();
}

}  // namespace

std::optional<std::string> NetworkRecipe(const FamilyInput& input) {
  const Result<const Family*> family = ChooseFamily("", input);
  if (!family.ok()) return std::nullopt;
  const Result<LoadedModel> model = LoadFamily(**family, input);
  if (!model.ok() || model->bits || HasUnit(model->draft.description)) return std::nullopt;
  const ModelDescription& description = model->draft.description;
  JsonLine line(17);
  line.Key("comment").Text("the network of the family " + std::string((*family)->name) +
                           "; words come from --vocab");
  OriginWriter origins(*model, input.weights);
  line.Key("layout").Text("out_in").Key("blocks").BeginArray();
  const auto write = [&origins](TensorId id, std::string_view field, JsonLine& at) {
    origins.Write(id, field, at);
  };
  for (const Block& block : description.blocks) AppendBlock(block, write, line);
  line.EndArray();
  if (!origins.complete()) return std::nullopt;
  if (description.start_token) line.Key("start_token").Integer(*description.start_token);
  if (description.end_token) line.Key("end_token").Integer(*description.end_token);
  const std::vector<std::string> unused = origins.Unused();
  if (!unused.empty()) {
    line.Key("unused").BeginArray();
    for (const std::string& name : unused) line.Text(name);
    line.EndArray();
  }
  constexpr size_t kIndent = 2;
  return RecipeText(JsonValueBuilder().Build(line.Finish()), kIndent);
}

}  // namespace kinglet
