#include "converters/passes/define/define_unit.h"

#include <cmath>
#include <utility>

#include "converters/entries.h"

namespace kinglet {
namespace {

// Longer lists of faults are cut, so that a hostile recipe cannot make an endless line.
constexpr size_t kMostFaults = 20;

class Faults {
 public:
  void Note(const std::string& where, const std::string& expected, const std::string& found) {
    if (++count_ > kMostFaults) return;
    text_ += (count_ == 1 ? "" : "; ") + where + ": expected " + expected + ", found " + found;
  }
  void Note(const std::string& where, const std::string& expected, uint64_t found) {
    Note(where, expected, std::to_string(found));
  }

  Status status() const {
    if (count_ == 0) return {};
    const std::string more =
        count_ > kMostFaults ? " and " + std::to_string(count_ - kMostFaults) + " more" : "";
    return {KINGLET_INVALID_ARGUMENT, "define unit: " + text_ + more};
  }

 private:
  std::string text_;
  size_t count_ = 0;
};

bool IsWidth(uint64_t features) { return features >= 1 && features <= kLargestDefineWidth; }

const std::string& WidthsText() {
  static const std::string kText = "1 to " + std::to_string(kLargestDefineWidth) + " features";
  return kText;
}

std::string NumberText(double number) {
  return std::isnan(number) ? "NaN" : std::to_string(number);
}

void CheckScale(const char* name, double scale, Faults& faults) {
  if (!std::isfinite(scale)) faults.Note(name, "a finite number", NumberText(scale));
}

// What layer `index` of `unit` says, given the widths of e and of the previous layer's output.
void CheckLayer(const DefineUnit& unit, size_t index, uint64_t input, uint64_t previous,
                Faults& faults) {
  const DefineLayer& layer = unit.layers[index];
  const std::string place = "layer " + std::to_string(index) + ", ";
  if (!IsWidth(layer.out)) faults.Note(place + "out", WidthsText(), layer.out);

  const bool skips = layer.skip != DefineLayer::Skip::kNone;
  const uint64_t joined = previous + (skips ? input : 0);
  if (skips && index <= unit.entry_layers) {
    faults.Note(place + "skip", "none, for the previous output is e or comes before it",
                layer.skip == DefineLayer::Skip::kMix ? "mix" : "concat");
  } else if (layer.in != joined) {
    faults.Note(place + "in",
                std::to_string(joined) +
                    (skips ? " (" + std::to_string(previous) + " of the previous output and " +
                                 std::to_string(input) + " of e)"
                           : std::string()),
                layer.in);
  }

  const auto divides = [&](const char* what, uint64_t features) {
    if (layer.groups == 0 || features % layer.groups != 0) {
      faults.Note(place + "groups",
                  "a divisor of the " + std::to_string(features) + " features of " + what,
                  layer.groups);
    }
  };
  divides("in", layer.in);
  divides("out", layer.out);
  if (layer.skip == DefineLayer::Skip::kMix) {
    divides("e", input);
    divides("the previous output", previous);
  }
  if (layer.residual != DefineLayer::Residual::kNone && layer.out != previous) {
    faults.Note(place + "out",
                std::to_string(previous) + ", as the residual adds the previous output", layer.out);
  }
  if (layer.norm != DefineLayer::Norm::kNone &&
      !(std::isfinite(layer.norm_epsilon) && layer.norm_epsilon > 0)) {
    faults.Note(place + "norm epsilon", "a number above 0", NumberText(layer.norm_epsilon));
  }
}

uint64_t Product(const std::vector<uint64_t>& shape) {
  uint64_t product = shape.empty() ? 0 : 1;
  for (const uint64_t dimension : shape) product *= dimension;
  return product;
}

}  // namespace

DefineShapes ShapesOf(const DefineLayer& layer) {
  const uint64_t in = layer.in / layer.groups, out = layer.out / layer.groups;
  DefineShapes shapes;
  if (layer.weights == DefineLayer::Weights::kPerGroup) shapes.weight.push_back(layer.groups);
  if (layer.layout == DefineLayer::Layout::kInOut) {
    shapes.weight.insert(shapes.weight.end(), {in, out});
  } else {
    shapes.weight.insert(shapes.weight.end(), {out, in});
  }
  if (layer.bias == DefineLayer::Bias::kPerGroup) shapes.bias = {layer.out};
  if (layer.bias == DefineLayer::Bias::kShared) shapes.bias = {out};
  if (layer.norm != DefineLayer::Norm::kNone) {
    const uint64_t width = layer.norm == DefineLayer::Norm::kWhole ? layer.out : out;
    if (layer.norm_gain) shapes.norm_gain = {width};
    if (layer.norm_offset) shapes.norm_offset = {width};
  }
  return shapes;
}

uint64_t OutputWidth(const DefineUnit& unit) {
  return unit.layers.empty() ? unit.map_width : unit.layers.back().out;
}

uint64_t ParameterCount(const DefineUnit& unit) {
  uint64_t count = 0;
  for (const DefineLayer& layer : unit.layers) {
    const DefineShapes shapes = ShapesOf(layer);
    count += Product(shapes.weight) + Product(shapes.bias) + Product(shapes.norm_gain) +
             Product(shapes.norm_offset);
  }
  return count;
}

Status CheckUnit(const DefineUnit& unit) {
  Faults faults;
  if (!IsWidth(unit.map_width)) faults.Note("map width", WidthsText(), unit.map_width);
  CheckScale("map scale", unit.map_scale, faults);
  CheckScale("table scale", unit.table_scale, faults);
  if (unit.entry_layers > unit.layers.size()) {
    faults.Note("entry layers", "at most the " + std::to_string(unit.layers.size()) + " layers",
                unit.entry_layers);
  }
  uint64_t input = unit.map_width, previous = unit.map_width;
  for (size_t index = 0; index < unit.layers.size(); ++index) {
    if (index == unit.entry_layers) input = previous;
    CheckLayer(unit, index, input, previous, faults);
    previous = unit.layers[index].out;
  }
  return faults.status();
}

Status CheckWeights(const DefineUnit& unit, std::span<const DefineWeights> weights) {
  KINGLET_RETURN_IF_ERROR(
      CheckEntries("define unit", "layers with values", {unit.layers.size()}, weights.size()));
  for (size_t index = 0; index < weights.size(); ++index) {
    const DefineShapes shapes = ShapesOf(unit.layers[index]);
    const DefineWeights& values = weights[index];
    const auto check = [index](const char* name, const std::vector<uint64_t>& shape,
                               const std::vector<float>& entries) {
      const std::string place = "layer " + std::to_string(index) + ", " + name;
      KINGLET_RETURN_IF_ERROR(CheckEntries("define unit", place, shape, entries.size()));
      return CheckFinite("define unit", place, entries);
    };
    KINGLET_RETURN_IF_ERROR(check("weight", shapes.weight, values.weight));
    KINGLET_RETURN_IF_ERROR(check("bias", shapes.bias, values.bias));
    KINGLET_RETURN_IF_ERROR(check("norm gain", shapes.norm_gain, values.norm_gain));
    KINGLET_RETURN_IF_ERROR(check("norm offset", shapes.norm_offset, values.norm_offset));
  }
  return {};
}

}  // namespace kinglet
