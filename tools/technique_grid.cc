#include "tools/technique_grid.h"

#include <algorithm>
#include <bit>
#include <variant>

#include "converters/planning/sensitivity.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

constexpr double kMostBits = 5;           // an entry of a coded table
constexpr double kMostProducts = 1.5e11;  // of a clustering: a minute

// Bits of an entry: its share of the codes, and of a codebook of 9 bits.
double BitsOfCodes(const CodesChange& codes, const Shape& shape) {
  const auto rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
  const uint64_t choices =
      codes.form == CodeForm::kSlim ? codes.sub_vectors : codes.sub_vectors / codes.positions;
  const auto width = static_cast<double>(std::bit_width(std::max<uint64_t>(choices, 2) - 1));
  const double of_codes =
      codes.form == CodeForm::kHashed ? 0 : static_cast<double>(codes.positions) * width / columns;
  const double length =
      codes.form == CodeForm::kSum ? columns : columns / static_cast<double>(codes.positions);
  constexpr double kBookBits = 9;
  return of_codes + kBookBits * static_cast<double>(codes.sub_vectors) * length / rows / columns;
}

double ProductsOfCodes(const CodesChange& codes, const Shape& shape) {
  if (codes.form == CodeForm::kHashed) return 0;
  const CodePass pass = PassOf(codes);
  const double entries = static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  const auto sub_vectors = static_cast<double>(codes.sub_vectors);
  const double rounds = static_cast<double>(pass.iterations + (pass.sum ? pass.sweeps : 0));
  // Sums compare whole rows at each position; one pool compares each part with all sub-vectors.
  const bool all = codes.form != CodeForm::kProduct;
  return entries * rounds *
         (all ? sub_vectors : sub_vectors / static_cast<double>(codes.positions));
}

}  // namespace

Technique TechniqueOf(const TensorChange& change) {
  return std::visit(Overloaded{[](const SparsityChange&) { return Technique::kPrune; },
                               [](const BitsChange&) { return Technique::kBits; },
                               [](const RankChange&) { return Technique::kLowRank; },
                               [](const CodesChange& codes) {
                                 switch (codes.form) {
                                   case CodeForm::kSum:
                                     return Technique::kSum;
                                   case CodeForm::kSlim:
                                     return Technique::kSlim;
                                   case CodeForm::kHashed:
                                     return Technique::kHashed;
                                   case CodeForm::kProduct:
                                     break;
                                 }
                                 return Technique::kCodes;
                               }},
                    change);
}

std::vector<TensorChange> ChangesOf(const std::set<Technique>& techniques, const Shape& shape) {
  std::vector<TensorChange> changes;
  const auto add_codes = [&](uint64_t positions, uint64_t sub_vectors, CodeForm form) {
    if (positions == 0 || sub_vectors < positions) return;
    const CodesChange codes = {positions, sub_vectors, form};
    if (!TakesTable(shape, codes) || BitsOfCodes(codes, shape) > kMostBits ||
        ProductsOfCodes(codes, shape) > kMostProducts ||
        std::find(changes.begin(), changes.end(), TensorChange(codes)) != changes.end()) {
      return;
    }
    changes.emplace_back(codes);
  };
  if (techniques.contains(Technique::kBits)) {
    for (const int bits : {2, 3, 4, 5, 6, 8}) changes.emplace_back(BitsChange{bits});
  }
  if (shape.size() != 2) return changes;
  const uint64_t rows = shape[0], columns = shape[1];
  if (techniques.contains(Technique::kPrune)) {
    for (const double fraction : {0.3, 0.5, 0.6, 0.7, 0.8, 0.9}) {
      changes.emplace_back(SparsityChange{fraction});
    }
  }
  for (const uint64_t length : {2, 4, 8}) {
    const uint64_t positions = columns / length;
    for (const uint64_t choices : {16, 64, 256}) {
      if (techniques.contains(Technique::kCodes)) {
        add_codes(positions, positions * choices, CodeForm::kProduct);
      }
    }
    for (const uint64_t sub_vectors : {256, 1024}) {
      if (techniques.contains(Technique::kSlim)) {
        add_codes(positions, sub_vectors, CodeForm::kSlim);
      }
    }
  }
  if (techniques.contains(Technique::kSum)) {
    for (const uint64_t divisor : {8, 6, 5, 4, 3}) {
      for (const uint64_t choices : {16, 64, 256}) {
        const uint64_t positions = (columns + divisor / 2) / divisor;
        add_codes(positions, positions * choices, CodeForm::kSum);
      }
    }
  }
  if (techniques.contains(Technique::kHashed)) {
    for (const uint64_t length : {1, 4}) {
      for (const uint64_t share : {2, 4, 8, 16}) {
        add_codes(columns / length, rows * (columns / length) / share, CodeForm::kHashed);
      }
    }
  }
  if (techniques.contains(Technique::kLowRank)) {
    for (const uint64_t eighths : {1, 2, 3, 4, 5, 6}) {
      const RankChange low = {columns * eighths / 8};
      if (low.rank > 0 && TakesTable(shape, low)) changes.emplace_back(low);
    }
  }
  return changes;
}

}  // namespace kinglet
