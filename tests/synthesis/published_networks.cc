#include "tests/synthesis/published_networks.h"

#include <utility>

#include "format/define_unit.h"

namespace kinglet {
namespace {

// --- Baevski & Auli 2019 ---

using Bands = std::vector<OutlinedBand>;

struct Corpus {
  uint32_t words, head, middle, pieces;
};
// fairseq's dictionaries: four words of its own, and filled up to a multiple of 8.
constexpr Corpus kWikiText103 = {267744, 20000, 40000, 33337};
constexpr Corpus kBillionWords = {793480, 60000, 100000, 32347};

struct Stack {
  uint32_t layers = 16, width = 1024, inner = 4096;
};

// Bands whose rows get four times narrower, or all have `columns` values.
Bands Adaptive(const Corpus& corpus, const Stack& stack, uint32_t columns = 0) {
  const auto of = [&](uint32_t narrower) {
    return columns == 0 ? stack.width / narrower : columns;
  };
  return {{corpus.head, of(1), true},
          {corpus.middle, of(4), true},
          {corpus.words - corpus.head - corpus.middle, of(16), true}};
}
Bands Fixed(uint32_t words, uint32_t columns, const Stack& stack = {}) {
  return {{words, columns, columns != stack.width}};
}
// An adaptive softmax projects the tails only.
Bands HeadAsItIs(Bands bands) {
  bands.front().projected = false;
  return bands;
}

PublishedParameters NetworkRow(const char* row, const char* table, const char* total, Bands input,
                               Bands output, const Stack& stack = {}) {
  constexpr uint32_t kHeads = 16;
  PublishedParameters published{row, table, total, "", "", "", {}};
  NetworkOutline& network = published.network;
  network.name = row;
  network.width = stack.width;
  network.input = std::move(input);
  network.context = OutlinedTransformer{OutlinedTransformer::Host::kFairseq, stack.layers, kHeads,
                                        stack.width / kHeads, stack.inner};
  network.output = std::move(output);
  return published;
}
enum class Ties : uint8_t { kTables, kProjectionsToo };
PublishedParameters Tied(PublishedParameters published, Ties ties) {
  published.network.tied_tables = true;
  published.network.tied_projections = ties == Ties::kProjectionsToo;
  return published;
}

// The character CNN: 257 characters of 128 values, filters of 1 to 7 characters, highway layers
// and a projection with a bias.
PublishedParameters CharacterCnn(const char* table, const char* total, const Corpus& corpus,
                                 uint32_t highways) {
  PublishedParameters published =
      NetworkRow("CNN", table, total, {}, HeadAsItIs(Adaptive(corpus, Stack{})));
  constexpr uint64_t kCharacters = 257, kCharacterWidth = 128;
  constexpr uint64_t kFilters[] = {128, 256, 384, 512, 512, 512, 512};
  std::vector<Shape>& shapes = published.network.computed_from;
  shapes.push_back({kCharacters, kCharacterWidth});
  uint64_t width = 0, characters = 0;
  for (const uint64_t filters : kFilters) {
    ++characters;
    shapes.push_back({filters, kCharacterWidth * characters});
    shapes.push_back({filters});
    width += filters;
  }
  for (uint32_t i = 0; i < highways; ++i) {
    shapes.push_back({2 * width, width});
    shapes.push_back({2 * width});
  }
  shapes.push_back({published.network.width, width});
  shapes.push_back({published.network.width});
  return published;
}

// --- Mehta et al. 2020 ---

constexpr uint32_t kDefineWords = 267735;
constexpr uint32_t kCutoffs[] = {20000, 40000, 200000};

// The unit as pranavajitnair/DeFINE-AWD-LSTM builds it: widths in equal steps, one matrix for all
// groups of a layer, half as many groups in each next layer.
DefineUnit UnitOf(uint64_t map_width, uint64_t widest, uint64_t layers, uint64_t output) {
  DefineUnit unit;
  unit.map_width = map_width;
  const uint64_t step = (widest - map_width) / layers;
  uint64_t previous = map_width;
  for (uint64_t i = 0; i < layers; ++i) {
    DefineLayer layer;
    layer.skip = i == 0 ? DefineLayer::Skip::kNone : DefineLayer::Skip::kMix;
    layer.in = previous + (i == 0 ? 0 : map_width);
    layer.out = map_width + (i + 1) * step;
    layer.groups = uint64_t{1} << (layers - i);
    layer.weights = DefineLayer::Weights::kShared;
    layer.bias = DefineLayer::Bias::kShared;
    unit.layers.push_back(layer);
    previous = layer.out;
  }
  DefineLayer reduce;
  reduce.in = previous;
  reduce.out = output;
  unit.layers.push_back(reduce);
  return unit;
}

std::vector<Shape> ShapesOf(const DefineUnit& unit) {
  std::vector<Shape> shapes;
  for (const DefineLayer& layer : unit.layers) {
    const DefineShapes of = ShapesOf(layer);
    for (const Shape& shape : {of.weight, of.bias}) {
      if (!shape.empty()) shapes.push_back(shape);
    }
  }
  return shapes;
}

// `narrower`: how many times narrower each next band is.
Bands DefineBands(uint32_t columns, uint32_t narrower, bool heads_projected) {
  Bands bands;
  uint32_t first = 0;
  for (size_t band = 0; band < 4; ++band) {
    const uint32_t end = band < 3 ? kCutoffs[band] : kDefineWords;
    bands.push_back(
        {end - first, columns, band > 0 ? narrower != 1 || heads_projected : heads_projected});
    columns /= narrower;
    first = end;
  }
  return bands;
}

PublishedParameters LstmRow(const char* row, uint32_t width, const char* context, const char* ends,
                            const char* unit, uint64_t unit_layers) {
  constexpr uint32_t kUnits = 1024;
  PublishedParameters published{row, "1", "", context, ends, unit, {}};
  NetworkOutline& network = published.network;
  network.name = row;
  network.width = width;
  network.context = OutlinedLstm{{kUnits, kUnits, kUnits, width}};
  network.output = network.input = DefineBands(width, 4, false);
  network.tied_tables = network.tied_projections = true;
  if (unit_layers > 0) network.computed_from = ShapesOf(UnitOf(width, kUnits, unit_layers, width));
  return published;
}

PublishedParameters FullLstm() {
  PublishedParameters published = LstmRow("R1", 256, "23.36", "68.81", "", 0);
  published.network.input = published.network.output = {{kDefineWords, 256, false}};
  published.network.biases = true;
  return published;
}

struct XlStack {
  uint32_t width, inner;
  const char* context;
};
constexpr XlStack kXl384 = {384, 1920, "36.25"}, kXl410 = {410, 2100, "41.07"};

PublishedParameters XlRow(const char* row, const XlStack& stack, uint32_t columns,
                          const char* ends) {
  constexpr uint32_t kLayers = 16, kHeads = 10, kKeySize = 41;
  const bool projected = columns != stack.width;
  PublishedParameters published{row, "2", "", stack.context, ends, "", {}};
  NetworkOutline& network = published.network;
  network.name = row;
  network.width = stack.width;
  network.context = OutlinedTransformer{OutlinedTransformer::Host::kTransformerXl, kLayers, kHeads,
                                        kKeySize, stack.inner};
  network.output = network.input = DefineBands(columns, 1, projected);
  network.one_projection = true;
  network.tied_tables = true;
  network.biases = true;
  return published;
}

// The printed numbers have four projections: the input's and the head's are one.
PublishedParameters Projective(const char* row, uint32_t columns, const char* ends) {
  PublishedParameters published = XlRow(row, kXl384, columns, ends);
  published.network.tied_head_projection = true;
  return published;
}

// The output's table is Map's, so the rows of the input are all that the unit adds.
PublishedParameters DefineXl(const char* row, uint32_t columns, const char* ends) {
  PublishedParameters published = XlRow(row, kXl384, columns, ends);
  published.unit = "1.92";
  published.network.input.clear();
  published.network.tied_tables = false;
  published.network.computed_from = ShapesOf(UnitOf(columns, 4096, 3, kXl384.width));
  return published;
}

}  // namespace

std::vector<PublishedParameters> PublishedAdaptiveInputs() {
  const Stack base;
  const Stack large = {20, 1024, 6144}, largest = {24, 1536, 8192};
  const auto both = [](const char* row, const char* table, const char* total, const Corpus& corpus,
                       const Stack& stack) {
    return NetworkRow(row, table, total, Adaptive(corpus, stack),
                      HeadAsItIs(Adaptive(corpus, stack)), stack);
  };
  const auto softmax = [&base](const char* table, const char* total, const Corpus& corpus,
                               uint32_t columns) {
    return NetworkRow(("ASM, input " + std::to_string(columns)).c_str(), table, total,
                      Fixed(corpus.words, columns), HeadAsItIs(Adaptive(corpus, base)));
  };
  const auto fixed = [](const std::string& row, const char* total, uint32_t in, uint32_t out) {
    return NetworkRow(row.c_str(), "3, 7", total, Fixed(kWikiText103.words, in),
                      Fixed(kWikiText103.words, out));
  };
  const auto pieces = [&base](const char* row, const char* table, const char* total,
                              const Corpus& corpus) {
    return NetworkRow(row, table, total, Fixed(corpus.pieces, base.width),
                      Fixed(corpus.pieces, base.width));
  };
  std::vector<PublishedParameters> rows;
  const auto add = [&rows](PublishedParameters row) { rows.push_back(std::move(row)); };
  add(Tied(both("ADP-T", "3, 7", "246.9", kWikiText103, base), Ties::kProjectionsToo));
  add(Tied(both("tied tables, own projections", "7", "247.3", kWikiText103, base), Ties::kTables));
  add(both("ADP", "3", "291.3", kWikiText103, base));
  add(softmax("3, 7", "314.7", kWikiText103, 256));
  add(softmax("7", "280.3", kWikiText103, 128));
  add(softmax("7", "263.1", kWikiText103, 64));
  add(softmax("7", "254.5", kWikiText103, 32));
  add(fixed("SM 512", "476.8", 512, 512));
  add(fixed("SM 256", "339.1", 256, 256));
  add(Tied(fixed("SM-T 512", "339.7", 512, 512), Ties::kTables));
  add(Tied(fixed("SM-T 256", "270.6", 256, 256), Ties::kTables));
  add(fixed("input 64, softmax 512", "356.3", 64, 512));
  rows.back().table = "7";
  add(Tied(NetworkRow("adaptive, all bands 512 wide, tied", "7", "340.2",
                      Adaptive(kWikiText103, base, 512), Adaptive(kWikiText103, base, 512)),
           Ties::kProjectionsToo));
  add(pieces("BPE", "3", "270", kWikiText103));
  add(Tied(pieces("BPE-T", "3", "235.7", kWikiText103), Ties::kTables));
  add(CharacterCnn("3", "266.3", kWikiText103, 1));
  add(Tied(both("billion words, ADP-T", "1, 4", "330.8", kBillionWords, base), Ties::kTables));
  add(both("billion words, ADP", "4", "458.4", kBillionWords, base));
  add(softmax("4", "532.8", kBillionWords, 256));
  rows.back().row = "billion words, ASM, input 256";
  add(CharacterCnn("1, 4", "365.8", kBillionWords, 2));
  rows.back().row = "billion words, CNN";
  add(pieces("billion words, BPE", "4", "267.8", kBillionWords));
  add(Tied(pieces("billion words, BPE-T", "4", "234.7", kBillionWords), Ties::kTables));
  add(Tied(both("billion words, large", "1", "465", kBillionWords, large), Ties::kTables));
  add(Tied(both("billion words, very large", "1", "1026", kBillionWords, largest), Ties::kTables));
  return rows;
}

std::vector<PublishedParameters> PublishedDefine() {
  return {FullLstm(),
          LstmRow("R2", 256, "23.36", "9.25", "", 0),
          LstmRow("R3", 256, "23.36", "9.25", "0.41", 3),
          LstmRow("R4", 384, "24.73", "13.90", "1.83", 7),
          LstmRow("R5", 512, "26.24", "18.55", "3.89", 11),
          XlRow("Transformer-XL*, n 410", kXl410, 410, "110.04"),
          XlRow("Transformer-XL, n 384", kXl384, 384, "103.08"),
          DefineXl("DeFINE, n 384", 384, "103.08"),
          Projective("projective, n 256", 256, "69.20"),
          DefineXl("DeFINE, n 256", 256, "69.20"),
          Projective("projective, n 128", 128, "34.73"),
          DefineXl("DeFINE, n 128", 128, "34.73"),
          Projective("projective, n 64", 64, "17.50"),
          DefineXl("DeFINE, n 64", 64, "17.50")};
}

}  // namespace kinglet
