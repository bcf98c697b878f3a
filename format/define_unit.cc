#include "format/define_unit.h"

#include <algorithm>
#include <cmath>

#include "format/message_text.h"

namespace kinglet {
namespace {

// Longer lists of faults are truncated, so that a hostile declaration cannot make an endless line.
constexpr size_t kMaxFaults = 20;

class Faults {
 public:
  void Note(const std::string& where, const std::string& expected, const std::string& found) {
    if (++count_ > kMaxFaults) return;
    text_ += (count_ == 1 ? "" : "; ") + where + ": expected " + expected + ", found " + found;
  }
  void Note(const std::string& where, const std::string& expected, uint64_t found) {
    Note(where, expected, std::to_string(found));
  }

  std::string Text() const {
    if (count_ <= kMaxFaults) return text_;
    return text_ + " and " + std::to_string(count_ - kMaxFaults) + " more";
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

// Checks layer `index` of `unit`, given the widths of e and of the previous layer's output.
void CheckLayer(const DefineUnit& unit, size_t index, uint64_t e_width, uint64_t previous,
                Faults& faults) {
  const DefineLayer& layer = unit.layers[index];
  const std::string place = Numbered("layer", index) + ", ";
  if (!IsWidth(layer.out)) faults.Note(place + "out", WidthsText(), layer.out);

  const bool skips = layer.skip != DefineLayer::Skip::kNone;
  const uint64_t joined = InputWidth(layer, e_width, previous);
  if (skips && index <= unit.entry_layers) {
    faults.Note(place + "skip", "none, as the previous output is e or comes before e",
                layer.skip == DefineLayer::Skip::kMix ? "mix" : "concat");
  } else if (layer.in != joined) {
    faults.Note(place + "in",
                std::to_string(joined) +
                    (skips ? " (" + std::to_string(previous) + " of the previous output and " +
                                 std::to_string(e_width) + " of e)"
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
    divides("e", e_width);
    divides("the previous output", previous);
  }
  if (layer.residual != DefineLayer::Residual::kNone && layer.out != previous) {
    faults.Note(place + "out",
                std::to_string(previous) + ", as the residual adds the previous output", layer.out);
  }
  const bool plain = layer.groups == 1 && layer.norm == DefineLayer::Norm::kNone &&
                     layer.shuffle == DefineLayer::Shuffle::kNone && !skips;
  if (layer.residual == DefineLayer::Residual::kHighway && !plain) {
    faults.Note(place + "residual", "no highway with groups, norm, shuffle or skip", "one");
  }
  if (layer.norm != DefineLayer::Norm::kNone &&
      !(std::isfinite(layer.norm_epsilon) && layer.norm_epsilon > 0)) {
    faults.Note(place + "norm epsilon", "a number above 0", NumberText(layer.norm_epsilon));
  }
}

uint64_t Entries(const Shape& shape) { return shape.empty() ? 0 : Count(shape); }

}  // namespace

DefineShapes ShapesOf(const DefineLayer& layer) {
  const uint64_t in = layer.in / layer.groups, out = layer.products() / layer.groups;
  DefineShapes shapes;
  const bool shared = layer.weights == DefineLayer::Weights::kShared;
  shapes.weight = {shared ? out : out * layer.groups, in};
  if (layer.bias == DefineLayer::Bias::kPerGroup) shapes.bias = {layer.products()};
  if (layer.bias == DefineLayer::Bias::kShared) shapes.bias = {out};
  if (layer.norm != DefineLayer::Norm::kNone) {
    const uint64_t width = layer.norm == DefineLayer::Norm::kWhole ? layer.out : out;
    if (layer.norm_gain) shapes.norm_gain = {width};
    if (layer.norm_offset) shapes.norm_offset = {width};
  }
  return shapes;
}

uint64_t InputWidth(const DefineLayer& layer, uint64_t e_width, uint64_t previous) {
  return previous + (layer.skip == DefineLayer::Skip::kNone ? 0 : e_width);
}

uint64_t OutputWidth(const DefineUnit& unit) {
  return unit.layers.empty() ? unit.map_width : unit.layers.back().out;
}

uint64_t SkipWidth(const DefineUnit& unit) {
  return unit.entry_layers == 0 ? unit.map_width : unit.layers[unit.entry_layers - 1].out;
}

DefineWidths WidestOf(const DefineUnit& unit) {
  DefineWidths widest{unit.map_width, unit.map_width};
  for (const DefineLayer& layer : unit.layers) {
    widest = {std::max(widest.in, layer.in), std::max(widest.products, layer.products())};
  }
  return widest;
}

uint64_t ParameterCount(const DefineUnit& unit) {
  uint64_t count = 0;
  for (const DefineLayer& layer : unit.layers) {
    const DefineShapes shapes = ShapesOf(layer);
    count += Entries(shapes.weight) + Entries(shapes.bias) + Entries(shapes.norm_gain) +
             Entries(shapes.norm_offset);
  }
  return count;
}

std::string FaultsOf(const DefineUnit& unit) {
  Faults faults;
  if (!IsWidth(unit.map_width)) faults.Note("map width", WidthsText(), unit.map_width);
  if (unit.entry_layers > unit.layers.size()) {
    faults.Note("entry layers", "at most the " + std::to_string(unit.layers.size()) + " layers",
                unit.entry_layers);
  }
  uint64_t e_width = unit.map_width, previous = unit.map_width;
  for (size_t index = 0; index < unit.layers.size(); ++index) {
    if (index == unit.entry_layers) e_width = previous;
    CheckLayer(unit, index, e_width, previous, faults);
    previous = unit.layers[index].out;
  }
  return faults.Text();
}

}  // namespace kinglet
