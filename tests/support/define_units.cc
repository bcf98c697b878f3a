#include "tests/support/define_units.h"

#include <utility>

namespace kinglet {

using Layer = DefineLayer;

std::vector<NamedUnit> DefineUnits() {
  const auto unit = [](std::vector<Layer> layers) {
    DefineUnit made;
    made.map_width = kDefineMapWidth;
    made.layers = std::move(layers);
    return made;
  };
  using enum Activation;
  constexpr auto kMix = Layer::Skip::kMix, kConcatenate = Layer::Skip::kConcatenate;
  constexpr auto kPreviousFirst = Layer::Order::kPreviousFirst;
  constexpr auto kShared = Layer::Weights::kShared;

  std::vector<NamedUnit> units;
  units.push_back(
      {"linear", unit({{.in = 12, .out = 16}, {.in = 16, .out = 20}, {.in = 20, .out = 6}})});
  units.push_back({"glt", unit({{.in = 12, .out = 16, .groups = 2},
                                {.in = 16, .out = 24, .groups = 2, .activation = kTanh},
                                {.in = 24, .out = 6}})});
  units.push_back({"glt_shuffle", unit({{.in = 12,
                                         .out = 18,
                                         .groups = 3,
                                         .shuffle = Layer::Shuffle::kBeforeNorm,
                                         .norm = Layer::Norm::kPerGroup,
                                         .activation = kSwish},
                                        {.in = 18,
                                         .out = 24,
                                         .groups = 3,
                                         .shuffle = Layer::Shuffle::kAfterNorm,
                                         .norm = Layer::Norm::kWhole,
                                         .norm_epsilon = 0.1,
                                         .activation = kRelu},
                                        {.in = 24, .out = 6}})});
  units.push_back(
      {"hgt_concat",
       unit({{.in = 12, .out = 16, .groups = 4, .activation = kRelu},
             {.in = 28, .out = 20, .groups = 2, .activation = kRelu, .skip = kConcatenate},
             {.in = 32,
              .out = 24,
              .activation = kRelu,
              .skip = kConcatenate,
              .order = kPreviousFirst},
             {.in = 24, .out = 6}})});
  units.push_back(
      {"hgt_mix", unit({{.in = 12, .out = 16, .groups = 4, .activation = kGelu},
                        {.in = 28, .out = 20, .groups = 2, .activation = kGelu, .skip = kMix},
                        {.in = 32, .out = 25, .activation = kGelu, .skip = kMix},
                        {.in = 25, .out = 7}})});
  units.push_back(
      {"shared",
       unit({{.in = 12, .out = 16, .groups = 4, .weights = kShared, .bias = Layer::Bias::kShared},
             {.in = 28,
              .out = 20,
              .groups = 2,
              .weights = kShared,
              .skip = kMix,
              .order = kPreviousFirst},
             {.in = 32,
              .out = 24,
              .groups = 2,
              .weights = kShared,
              .bias = Layer::Bias::kNone,
              .skip = kMix,
              .order = kPreviousFirst},
             {.in = 24, .out = 6}})});
  units.push_back({"residual", unit({{.in = 12,
                                      .out = 12,
                                      .groups = 2,
                                      .activation = kRelu,
                                      .residual = Layer::Residual::kBeforeActivation},
                                     {.in = 12,
                                      .out = 12,
                                      .groups = 3,
                                      .activation = kSigmoid,
                                      .residual = Layer::Residual::kAfterActivation},
                                     {.in = 24,
                                      .out = 12,
                                      .groups = 4,
                                      .shuffle = Layer::Shuffle::kAfterNorm,
                                      .activation = kTanh,
                                      .skip = kMix,
                                      .residual = Layer::Residual::kAfterActivation}})});
  units.push_back({"no_reduce", unit({{.in = 12,
                                       .out = 18,
                                       .groups = 6,
                                       .bias = Layer::Bias::kShared,
                                       .norm = Layer::Norm::kPerGroup,
                                       .norm_epsilon = 0.01,
                                       .norm_gain = false},
                                      {.in = 30,
                                       .out = 24,
                                       .groups = 3,
                                       .bias = Layer::Bias::kNone,
                                       .norm = Layer::Norm::kWhole,
                                       .norm_offset = false,
                                       .skip = kMix}})});
  units.push_back({"reduce_sees_e",
                   unit({{.in = 12, .out = 16, .groups = 4, .activation = kSwish},
                         {.in = 28, .out = 24, .groups = 2, .activation = kSwish, .skip = kMix},
                         {.in = 36, .out = 6, .skip = kConcatenate, .order = kPreviousFirst}})});
  DefineUnit entry = unit({{.in = 12, .out = 8, .norm = Layer::Norm::kWhole, .activation = kSwish},
                           {.in = 8, .out = 16, .groups = 4, .activation = kSwish},
                           {.in = 24, .out = 24, .groups = 2, .activation = kSwish, .skip = kMix},
                           {.in = 32, .out = 6, .skip = kConcatenate}});
  entry.entry_layers = 1;
  units.push_back({"entry", entry, 3.5});
  return units;
}

}  // namespace kinglet
