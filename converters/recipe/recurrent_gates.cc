#include "converters/recipe/recurrent_gates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "converters/families/recurrent_layers.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kGateKeys = {"gates"sv, "forget_bias"sv, "weighs"sv, "reset"sv};
constexpr std::array kWeighs = {"old"sv, "new"sv};
constexpr std::array kResets = {"after"sv, "before"sv};
constexpr size_t kForgetGate = 1;  // of an LSTM

// What a recipe states about the gates of a cell.
struct CellForm {
  // The letters of each gate of the model, in its order; the first is this project's name.
  std::vector<std::string_view> letters;
  std::string_view orders;  // for messages: the frameworks' orders
  // The gate that weighs the old state against the new value, and whether the model's weighs the
  // old one (RecurrentCell).
  std::optional<size_t> weighing;
  bool weighs_old = false;
};

CellForm FormOf(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::kLstm:
      return {{"i", "f", "gjc", "o"},
              "\"ifgo\" (PyTorch, Keras) or \"ijfo\" (TensorFlow's LSTM cells)",
              std::nullopt,
              false};
    case RecurrentCell::kGru:
      return {{"r", "zu", "nhcm"}, "\"rzn\" (PyTorch) or \"zrn\" (Keras)", 1, true};
    case RecurrentCell::kQrnn:
      return {{"z", "f", "o"}, "\"zfo\" (torchqrnn) or another order of z, f and o", 1, false};
    case RecurrentCell::kTanh:
    case RecurrentCell::kRelu:
      break;
  }
  return {};
}

// The index of each gate's group of rows, from an order like "ijfo"; empty if a gate is missing or
// repeated.
std::vector<size_t> BlocksOf(const CellForm& form, std::string_view order) {
  std::vector<size_t> blocks;
  if (order.size() != form.letters.size()) return blocks;
  for (const std::string_view letters : form.letters) {
    const size_t block = order.find_first_of(letters);
    if (block == std::string_view::npos) return {};
    blocks.push_back(block);
  }
  return blocks;
}

Result<std::vector<size_t>> ParseOrder(const RecipeNode& node, const CellForm& form) {
  const std::string expected = "\"gates\", the order of the gates' blocks of rows: ";
  const auto member = node.Find("gates");
  if (!member) return node.Refuse(expected + std::string(form.orders), "none");
  KINGLET_ASSIGN_OR_RETURN(const std::string order, member->Text());
  std::vector<size_t> blocks = BlocksOf(form, order);
  if (blocks.empty()) return member->Refuse(std::string(form.orders), member->Outline());
  if (std::is_sorted(blocks.begin(), blocks.end())) blocks.clear();
  return blocks;
}

Result<double> ParseForgetBias(const RecipeNode& node) {
  const auto member = node.Find("forget_bias");
  if (!member) {
    return node.Refuse(
        "\"forget_bias\", what the cell adds to f when it runs: 0 (PyTorch, Keras) or 1 "
        "(TensorFlow's LSTM cells, unless their program sets another)",
        "none");
  }
  KINGLET_ASSIGN_OR_RETURN(const double bias, member->Number());
  if (std::abs(bias) <= kLargestForgetBias) return bias;
  return member->Refuse("a number from -1000 to 1000", member->Outline());
}

// Whether a gate of the cell has to change its sign.
Result<bool> ParseWeighs(const RecipeNode& node, RecurrentCell cell, bool weighs_old) {
  const auto member = node.Find("weighs");
  if (!member) {
    return node.Refuse(cell == RecurrentCell::kGru
                           ? "\"weighs\", what z multiplies: \"old\", the previous output (PyTorch,"
                             " Keras) or \"new\" (Chung et al. 2014)"
                           : "\"weighs\", what f multiplies: \"old\", the cell state (the paper) "
                             "or \"new\", z (torchqrnn)",
                       "none");
  }
  KINGLET_ASSIGN_OR_RETURN(const size_t weighs, member->Choice(kWeighs));
  return (weighs == 0) != weighs_old;
}

Status CheckReset(const RecipeNode& node) {
  const auto member = node.Find("reset");
  const std::string expected =
      "\"after\": r multiplies the product with the previous output, as in PyTorch and Keras' "
      "reset_after";
  if (!member) return node.Refuse("\"reset\": " + expected, "none");
  KINGLET_ASSIGN_OR_RETURN(const size_t reset, member->Choice(kResets));
  if (reset == 0) return {};
  return member->Refuse(expected, "'before', which no model file can store");
}

Status RefuseKeys(const RecipeNode& node, const std::string& expected,
                  std::initializer_list<std::string_view> allowed) {
  for (const std::string_view key : kGateKeys) {
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    if (const auto found = node.Find(key)) return found->Refuse(expected, found->Outline());
  }
  return {};
}

void ArrangeGates(const RecurrentGates& gates, RecurrentCell cell, std::vector<float>& values) {
  const size_t count = GatesOf(cell), block = values.size() / count;
  if (!gates.block_of.empty()) {
    std::vector<float> arranged;
    arranged.reserve(values.size());
    for (const size_t from : gates.block_of) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(from * block);
      arranged.insert(arranged.end(), begin, begin + static_cast<std::ptrdiff_t>(block));
    }
    values = std::move(arranged);
  }
  if (!gates.negated) return;
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(*gates.negated * block);
  std::transform(begin, begin + static_cast<std::ptrdiff_t>(block), begin, std::negate<>());
}

void AddForgetBias(const RecurrentGates& gates, std::vector<float>& bias) {
  const size_t units = bias.size() / GatesOf(RecurrentCell::kLstm);
  for (size_t i = kForgetGate * units; i < (kForgetGate + 1) * units; ++i) {
    bias[i] = static_cast<float>(double{bias[i]} + gates.forget_bias);
  }
}

}  // namespace

Status RefuseRecurrentGates(const RecipeNode& node) {
  return RefuseKeys(node, "no such key with \"torch\", which fixes the gates (delete it)", {});
}

Result<RecurrentGates> ParseRecurrentGates(const RecipeNode& node, RecurrentCell cell) {
  const std::string none = "no such key for this cell (delete it)";
  const CellForm form = FormOf(cell);
  RecurrentGates gates;
  if (form.letters.empty()) {
    KINGLET_RETURN_IF_ERROR(RefuseKeys(node, none, {}));
    return gates;
  }
  // The order of the gates' blocks of rows.
  KINGLET_ASSIGN_OR_RETURN(gates.block_of, ParseOrder(node, form));
  if (!form.weighing) {
    KINGLET_RETURN_IF_ERROR(RefuseKeys(node, none, {"gates", "forget_bias"}));
    // A constant that the cell adds to the forget gate and no tensor stores.
    KINGLET_ASSIGN_OR_RETURN(gates.forget_bias, ParseForgetBias(node));
    return gates;
  }
  // Whether the gate multiplies the old state or the new value.
  KINGLET_ASSIGN_OR_RETURN(const bool negated, ParseWeighs(node, cell, form.weighs_old));
  if (negated) gates.negated = form.weighing;
  if (cell == RecurrentCell::kQrnn) {
    KINGLET_RETURN_IF_ERROR(RefuseKeys(node, none, {"gates", "weighs"}));
    return gates;
  }
  KINGLET_RETURN_IF_ERROR(RefuseKeys(node, none, {"gates", "weighs", "reset"}));
  // Whether r multiplies after or before the product with the previous output.
  KINGLET_RETURN_IF_ERROR(CheckReset(node));
  return gates;
}

Change ArrangedGates(const RecurrentGates& gates, RecurrentCell cell, bool with_forget_bias) {
  if (gates == RecurrentGates()) return {};
  const bool adds = with_forget_bias && gates.forget_bias != 0;
  return {{{adds ? "gates with the forget bias" : "gates",
            {},
            [gates, cell, adds](std::vector<float> values) {
              if (values.size() % GatesOf(cell) != 0) return values;
              ArrangeGates(gates, cell, values);
              if (adds) AddForgetBias(gates, values);
              return values;
            }}}};
}

std::vector<float> ForgetBiasAlone(const RecurrentGates& gates, size_t units) {
  std::vector<float> bias(units * GatesOf(RecurrentCell::kLstm));
  AddForgetBias(gates, bias);
  return bias;
}

}  // namespace kinglet
