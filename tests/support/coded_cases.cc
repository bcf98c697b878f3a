#include "tests/support/coded_cases.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "format/hashed_codes.h"

namespace kinglet {
namespace {

constexpr uint64_t kSeed = 0x5EED;
constexpr uint64_t kRows = 33, kCols = 42;
constexpr uint32_t kPositions = 6;  // sub-vectors have 7 entries, an odd number

// A coded table and the codebook rows that its codes choose.
struct CodedTable {
  WeightId id;
  std::vector<uint32_t> codebook_rows;  // [rows, positions]
};

// A coded table with random or hashed codes over a given codebook.
CodedTable AddCoded(CaseBuilder& builder, const Shape& shape, const CodingScheme& scheme,
                    bool hashed) {
  CodedTable table;
  std::vector<uint32_t> codes;
  const std::vector<uint64_t> pool_firsts = scheme.PoolFirsts();
  for (uint32_t row = 0; row < shape[0]; ++row) {
    for (uint32_t j = 0; j < scheme.positions; ++j) {
      const uint32_t pool = scheme.PoolSize(j);
      codes.push_back(hashed ? HashedCode(kSeed, row, j, pool) : builder.Below(pool));
      table.codebook_rows.push_back(static_cast<uint32_t>(pool_firsts[j]) + codes.back());
    }
  }
  Coded coded{scheme, std::move(codes)};
  if (hashed) coded.codes = HashSeed{kSeed};
  table.id = builder.Tensor({"table", shape, std::move(coded), false});
  return table;
}

CodingScheme SchemeOf(const CodingLine& coding, uint32_t positions, uint32_t pool) {
  CodingScheme scheme;
  scheme.combine = coding.combine;
  scheme.positions = positions;
  scheme.pools = {pool};
  if (!coding.one_pool) {
    scheme.pools.clear();
    for (uint32_t j = 0; j < positions; ++j) scheme.pools.push_back(pool + j * 5 % 17);
  }
  return scheme;
}

// A table in any encoding, and its entries.
struct ExpandedTable {
  WeightId id;
  std::vector<double> values;  // [kRows, kCols]
};

ExpandedTable AddTable(CaseBuilder& builder, const EncodingLine& line) {
  ExpandedTable table;
  if (!line.coding) {
    table.id = builder.Matrix(kRows, kCols, line.storage, line.bits, line.pruned);
    const std::vector<float> values = DecodedValues(builder.View(table.id));
    table.values.assign(values.begin(), values.end());
    return table;
  }
  CodingScheme scheme = SchemeOf(*line.coding, kPositions, 19);
  const uint64_t length = SubVectorLength(scheme, kCols);
  scheme.codebook =
      builder.Matrix(scheme.PoolTotal(), length, line.storage, line.bits, line.pruned);
  const std::vector<float> codebook = DecodedValues(builder.View(scheme.codebook));
  const CodedTable coded = AddCoded(builder, {kRows, kCols}, scheme, line.coding->hashed);
  table.id = coded.id;
  table.values.resize(kRows * kCols);
  for (uint64_t row = 0; row < kRows; ++row) {
    for (uint64_t j = 0; j < kPositions; ++j) {
      const uint64_t part = coded.codebook_rows[row * kPositions + j];
      const uint64_t first = scheme.combine == Combine::kConcatenate ? j * length : 0;
      for (uint64_t i = 0; i < length; ++i) {
        table.values[row * kCols + first + i] += double{codebook[part * length + i]};
      }
    }
  }
  if (scheme.combine == Combine::kMean) {
    for (double& value : table.values) value /= kPositions;
  }
  return table;
}

// Row times vector with the sum of magnitudes.
void AppendDot(const double* row, const std::vector<double>& x, double factor, TableCase& made) {
  double sum = 0, magnitude = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sum += row[i] * x[i];
    magnitude += std::abs(row[i] * x[i]);
  }
  made.expected.push_back(sum * factor);
  made.magnitude.push_back(magnitude * factor);
}

TableCase MakeRowCase(CaseBuilder& builder, const EncodingLine& line, TableUse use) {
  const ExpandedTable table = AddTable(builder, line);
  constexpr uint32_t kFirst = 3, kRow = 23;
  EmbedRow op;
  op.scale = 1.75;
  op.bins = {{0, kFirst, table.id, std::nullopt}, {kFirst, kRows, table.id, std::nullopt}};
  TableCase made;
  const double* row = table.values.data() + kRow * kCols;
  if (use == TableUse::kEmbeddingRow) {
    op.out = builder.Floats("out", kCols, Fill::kRandom);
    for (uint64_t i = 0; i < kCols; ++i) {
      made.expected.push_back(row[i] * op.scale);
      made.magnitude.push_back(std::abs(row[i]) * op.scale);
    }
    made.exact = !line.coding || line.coding->combine == Combine::kConcatenate;
  } else {
    constexpr uint64_t kWidth = 33;
    const bool integers = use == TableUse::kProjectedByIntegers;
    const WeightId projection =
        builder.Matrix(kWidth, kCols, integers ? Storage::kPerRow : Storage::kF32, 9);
    op.bins[0].projection = op.bins[1].projection = projection;
    op.out = builder.Floats("out", kWidth, Fill::kRandom);
    const std::vector<float> values = DecodedValues(builder.View(projection));
    const std::vector<double> entries(values.begin(), values.end());
    const std::vector<double> x(row, row + kCols);
    for (uint64_t i = 0; i < kWidth; ++i) AppendDot(&entries[i * kCols], x, op.scale, made);
  }
  made.out = op.out;
  made.op_case = builder.Finish(op, kNotComparable, 0, kFirst + kRow);
  return made;
}

TableCase MakeProductCase(CaseBuilder& builder, const EncodingLine& line, TableUse use) {
  const ExpandedTable table = AddTable(builder, line);
  MatVec op;
  op.weight = table.id;
  const bool rows = use >= TableUse::kRowsWithFloats;
  const bool codes = use == TableUse::kProductWithCodes || use == TableUse::kRowsWithCodes;
  op.x = builder.Vector("x", kCols, codes ? 9 : 0, Fill::kRandom);
  op.bias = builder.DenseVector(kRows);
  op.y = builder.Floats("y", kRows, Fill::kRandom);
  if (use == TableUse::kProductWithFixedPoint || use == TableUse::kRowsWithFixedPoint) {
    op.input = TailInput::kFixedPoint15;
  }
  TableCase made;
  made.out = op.y;
  const std::vector<double> x = builder.Values(op.x);
  const std::vector<float> bias = DecodedValues(builder.View(*op.bias));
  for (uint64_t row = 0; row < kRows; ++row) {
    AppendDot(&table.values[row * kCols], x, 1, made);
    made.expected[row] += double{bias[row]};
    made.magnitude[row] += std::abs(double{bias[row]});
  }
  if (!line.coding) {
    made.op_case = builder.Finish(op, kNotComparable);
    return made;
  }
  const CodingScheme& scheme = builder.View(table.id).coded()->scheme;
  made.combine = scheme.combine;
  if (rows) {
    made.op_case =
        builder.Finish(CodedProduct{table.id, op.bias, op.x, op.y, op.y_offset, op.relu, op.input},
                       kNotComparable);
    return made;
  }
  const BufferId partial = builder.Floats("partial", PartialCount(scheme), Fill::kRandom);
  made.op_case = builder.Finish(PartialProducts{table.id, op.x, partial, op.input}, kNotComparable);
  made.op_case.plan.nodes.push_back(
      {"sums", CodedSums{table.id, op.bias, partial, op.y, op.y_offset, op.relu}});
  return made;
}

// --- edge cases ---

struct PartialShape {
  uint32_t positions;
  uint64_t length;
  uint32_t pool;
  CodingLine coding;
  Storage storage;
  int bits = 0, x_bits = 0;
  TailInput input = TailInput::kAsIs;
  Fill fill = Fill::kRandom;
};

OpCase PartialCase(const PartialShape& shape) {
  CaseBuilder builder(
      CaseName("PartialProducts", {shape.positions, static_cast<int64_t>(shape.length), shape.pool,
                                   static_cast<int>(shape.coding.combine), shape.coding.one_pool,
                                   static_cast<int>(shape.storage), shape.bits, shape.x_bits,
                                   static_cast<int>(shape.input), static_cast<int>(shape.fill)}),
      shape.positions * 7 + shape.length);
  CodingScheme scheme = SchemeOf(shape.coding, shape.positions, shape.pool);
  const bool parts = scheme.combine == Combine::kConcatenate;
  const uint64_t cols = parts ? shape.positions * shape.length : shape.length;
  scheme.codebook =
      builder.Matrix(scheme.PoolTotal(), shape.length, shape.storage, shape.bits, false,
                     shape.fill == Fill::kExtreme ? Fill::kExtreme : Fill::kRandom);
  PartialProducts op;
  op.table = AddCoded(builder, {3, cols}, scheme, false).id;
  op.x = builder.Vector("x", cols, shape.x_bits, shape.fill);
  op.partial = builder.Floats("partial", PartialCount(scheme) + 3, Fill::kRandom);
  op.input = shape.input;
  return builder.Finish(op, shape.fill == Fill::kRandom ? 1e-7 : kNotComparable);
}

void AddPartialEdges(std::vector<OpCase>& cases) {
  constexpr std::array<CodingLine, 4> kCodings = {{{Combine::kConcatenate, true, false},
                                                   {Combine::kConcatenate, false, false},
                                                   {Combine::kSum, true, false},
                                                   {Combine::kMean, false, false}}};
  for (const CodingLine& coding : kCodings) {
    for (const uint32_t pool : {1u, 16u, 33u}) {
      for (const uint64_t length : {1u, 2u, 7u, 32u, 65u}) {
        for (const uint32_t positions : {1u, 3u}) {
          PartialShape shape{positions, length, pool, coding, Storage::kF32};
          cases.push_back(PartialCase(shape));
          shape.storage = Storage::kPerRow;
          for (const int bits : {2, 9, 16}) {
            shape.bits = bits;
            for (const int x_bits : {0, 9, 16, 18}) {
              shape.x_bits = x_bits;
              cases.push_back(PartialCase(shape));
            }
            shape.x_bits = 0;
            shape.input = TailInput::kFixedPoint15;
            cases.push_back(PartialCase(shape));
            shape.input = TailInput::kAsIs;
          }
        }
      }
    }
    for (const Fill fill : {Fill::kSpecial, Fill::kZero, Fill::kExtreme, Fill::kTiny}) {
      for (const TailInput input : {TailInput::kAsIs, TailInput::kFixedPoint15}) {
        cases.push_back(PartialCase({2, 1030, 5, coding, Storage::kPerRow, 9, 0, input, fill}));
      }
    }
    // Longer than a kernel's fixed-size scratch.
    cases.push_back(PartialCase({2, 8193, 3, coding, Storage::kF32}));
  }
}

struct SumsShape {
  uint64_t words;
  uint32_t positions;
  uint32_t pool;
  CodingLine coding = {};
  bool bias = true, relu = false;
  uint32_t y_offset = 0;
  Fill fill = Fill::kRandom;
};

OpCase SumsCase(const SumsShape& shape) {
  CaseBuilder builder(
      CaseName("CodedSums",
               {static_cast<int64_t>(shape.words), shape.positions, shape.pool,
                static_cast<int>(shape.coding.combine), shape.coding.one_pool, shape.coding.hashed,
                shape.bias, shape.relu, shape.y_offset, static_cast<int>(shape.fill)}),
      shape.words + shape.positions);
  CodingScheme scheme = SchemeOf(shape.coding, shape.positions, shape.pool);
  // Many columns, so that the hashed codes are fewer than the codebook's entries unless pools are
  // large.
  const uint64_t length = shape.coding.hashed ? 64 : 1;
  scheme.codebook = builder.Matrix(scheme.PoolTotal(), length, Storage::kF32, 0);
  const uint64_t cols = scheme.combine == Combine::kConcatenate ? shape.positions * length : length;
  CodedSums op;
  op.table = AddCoded(builder, {shape.words, cols}, scheme, shape.coding.hashed).id;
  if (shape.bias) op.bias = builder.DenseVector(shape.words);
  op.partial = builder.Floats("partial", PartialCount(scheme), shape.fill);
  op.y_offset = shape.y_offset;
  op.y = builder.Floats("y", shape.words + shape.y_offset + 2, Fill::kRandom);
  op.relu = shape.relu;
  return builder.Finish(op, shape.fill == Fill::kRandom ? 1e-9 : kNotComparable);
}

// Products row by row, with a codebook of floats or integers.
OpCase RowsCase(uint64_t words, uint64_t length, const CodingLine& coding, int bits) {
  CaseBuilder builder(
      CaseName("CodedProduct",
               {static_cast<int64_t>(words), static_cast<int64_t>(length),
                static_cast<int>(coding.combine), coding.one_pool, coding.hashed, bits}),
      words + length);
  constexpr uint32_t kFewPositions = 5;
  CodingScheme scheme = SchemeOf(coding, kFewPositions, 700);
  scheme.codebook = builder.Matrix(scheme.PoolTotal(), length,
                                   bits == 0 ? Storage::kF32 : Storage::kPerRow, bits);
  const uint64_t cols = scheme.combine == Combine::kConcatenate ? kFewPositions * length : length;
  CodedProduct op;
  op.table = AddCoded(builder, {words, cols}, scheme, coding.hashed).id;
  op.bias = builder.DenseVector(words);
  op.x = builder.Vector("x", cols, bits, Fill::kRandom);
  op.y_offset = 3;
  op.y = builder.Floats("y", words + op.y_offset + 2, Fill::kRandom);
  op.relu = words % 2 == 0;
  return builder.Finish(op, 1e-7);
}

void AddSumsEdges(std::vector<OpCase>& cases) {
  constexpr CodingLine kOwnPools{Combine::kConcatenate, false, false};
  constexpr CodingLine kMean{Combine::kMean, true, false};
  for (const uint64_t words : {1u, 15u, 16u, 17u, 63u, 511u, 512u, 513u, 1500u}) {
    cases.push_back(SumsCase({words, 1, 1}));
    cases.push_back(SumsCase({words, 3, 2, kOwnPools, false, true, 5}));
    cases.push_back(SumsCase({words, 8, 300, kMean, true, words % 2 == 0, 3}));
    cases.push_back(SumsCase({words, 5, 90, {Combine::kConcatenate, false, true}}));
    cases.push_back(SumsCase({words, 2, 40, kOwnPools, true, false, 0, Fill::kSpecial}));
  }
  // Codes of 1 to 20 bits.
  for (int bits = 1; bits <= 20; ++bits) {
    cases.push_back(SumsCase({550, 3, 1u << bits, {Combine::kSum, true, false}, bits % 2 == 0}));
  }
  // More hashed codes than codebook entries.
  for (const uint32_t positions : {1u, 9u}) {
    cases.push_back(SumsCase({1300, positions, 3, {Combine::kSum, true, true}}));
    cases.push_back(SumsCase({2001, positions, 5, {Combine::kConcatenate, false, true}, false}));
    cases.push_back(SumsCase({1713, positions, 1, {Combine::kMean, false, true}, true, true, 3}));
  }
  for (const uint64_t words : {1u, 17u, 1500u}) {
    for (const uint64_t length : {1u, 3u, 31u, 32u}) {
      for (const CodingLine& coding :
           {kOwnPools, kMean, CodingLine{Combine::kConcatenate, true, true},
            CodingLine{Combine::kSum, false, true}}) {
        for (const int bits : {0, 9}) cases.push_back(RowsCase(words, length, coding, bits));
      }
    }
  }
  // More tiles than share a position.
  cases.push_back(SumsCase({70000, 3, 1000, kOwnPools}));
}

}  // namespace

const std::vector<EncodingLine>& EncodingLines() {
  constexpr CodingLine kOnePool{Combine::kConcatenate, true, false};
  constexpr CodingLine kOwnPools{Combine::kConcatenate, false, false};
  constexpr CodingLine kSum{Combine::kSum, true, false};
  constexpr CodingLine kSumOwnPools{Combine::kSum, false, false};
  constexpr CodingLine kMean{Combine::kMean, true, false};
  constexpr CodingLine kMeanOwnPools{Combine::kMean, false, false};
  constexpr CodingLine kHashed{Combine::kConcatenate, true, true};
  constexpr CodingLine kHashedOwnPools{Combine::kConcatenate, false, true};
  constexpr CodingLine kHashedSum{Combine::kSum, false, true};
  static const std::vector<EncodingLine> lines = {
      {"f32", Storage::kF32},
      {"f16", Storage::kF16},
      {"2 bits", Storage::kPerRow, 2},
      {"3 bits", Storage::kPerRow, 3},
      {"4 bits", Storage::kPerRow, 4},
      {"5 bits", Storage::kPerRow, 5},
      {"6 bits", Storage::kPerRow, 6},
      {"7 bits", Storage::kPerRow, 7},
      {"8 bits", Storage::kPerRow, 8},
      {"9 bits", Storage::kPerRow, 9},
      {"10 bits", Storage::kPerRow, 10},
      {"11 bits", Storage::kPerRow, 11},
      {"12 bits", Storage::kPerRow, 12},
      {"13 bits", Storage::kPerRow, 13},
      {"14 bits", Storage::kPerRow, 14},
      {"15 bits", Storage::kPerRow, 15},
      {"16 bits", Storage::kPerRow, 16},
      {"9 bits, one scale", Storage::kPerTensor, 9},
      {"16 bits, one scale", Storage::kPerTensor, 16},
      {"9 bits, divided", Storage::kDivided, 9},
      {"f32, masked", Storage::kF32, 0, true},
      {"f16, masked", Storage::kF16, 0, true},
      {"9 bits, masked", Storage::kPerRow, 9, true},
      {"9 bits, one scale, masked", Storage::kPerTensor, 9, true},
      {"9 bits, divided, masked", Storage::kDivided, 9, true},
      {"one pool", Storage::kF32, 0, false, kOnePool},
      {"own pools", Storage::kF32, 0, false, kOwnPools},
      {"sum", Storage::kF32, 0, false, kSum},
      {"sum, own pools", Storage::kF32, 0, false, kSumOwnPools},
      {"mean", Storage::kF32, 0, false, kMean},
      {"mean, own pools", Storage::kF32, 0, false, kMeanOwnPools},
      {"hashed", Storage::kF32, 0, false, kHashed},
      {"hashed, own pools", Storage::kF32, 0, false, kHashedOwnPools},
      {"hashed sum", Storage::kF32, 0, false, kHashedSum},
      {"one pool of f16", Storage::kF16, 0, false, kOnePool},
      {"mean of f16", Storage::kF16, 0, false, kMean},
      {"one pool of 9 bits", Storage::kPerRow, 9, false, kOnePool},
      {"own pools of 9 bits", Storage::kPerRow, 9, false, kOwnPools},
      {"sum of 9 bits", Storage::kPerRow, 9, false, kSum},
      {"mean of 9 bits", Storage::kPerRow, 9, false, kMeanOwnPools},
      {"hashed, 9 bits", Storage::kPerRow, 9, false, kHashedOwnPools},
      {"one pool of 9 bits, one scale", Storage::kPerTensor, 9, false, kOnePool},
      {"own pools of 9 bits, divided", Storage::kDivided, 9, false, kOwnPools},
      {"one pool of f32, masked", Storage::kF32, 0, true, kOnePool},
      {"own pools of 9 bits, masked", Storage::kPerRow, 9, true, kOwnPools},
      {"sum of 4 bits, masked", Storage::kPerRow, 4, true, kSumOwnPools},
  };
  return lines;
}

const std::vector<TableUse>& TableUses() {
  static const std::vector<TableUse> uses = {
      TableUse::kEmbeddingRow,      TableUse::kProjectedRow,     TableUse::kProjectedByIntegers,
      TableUse::kProductWithFloats, TableUse::kProductWithCodes, TableUse::kProductWithFixedPoint,
      TableUse::kRowsWithFloats,    TableUse::kRowsWithCodes,    TableUse::kRowsWithFixedPoint,
  };
  return uses;
}

std::string UseName(TableUse use) {
  switch (use) {
    case TableUse::kEmbeddingRow:
      return "embedding row";
    case TableUse::kProjectedRow:
      return "projected row";
    case TableUse::kProjectedByIntegers:
      return "row projected by integers";
    case TableUse::kProductWithFloats:
      return "product with floats";
    case TableUse::kProductWithCodes:
      return "product with codes";
    case TableUse::kProductWithFixedPoint:
      return "product with fixed point";
    case TableUse::kRowsWithFloats:
      return "rows with floats";
    case TableUse::kRowsWithCodes:
      return "rows with codes";
    case TableUse::kRowsWithFixedPoint:
      return "rows with fixed point";
  }
  return "";
}

TableCase MakeTableCase(const EncodingLine& encoding, TableUse use) {
  CaseBuilder builder(encoding.name + ": " + UseName(use), encoding.name.size());
  const bool row = use == TableUse::kEmbeddingRow || use == TableUse::kProjectedRow ||
                   use == TableUse::kProjectedByIntegers;
  return row ? MakeRowCase(builder, encoding, use) : MakeProductCase(builder, encoding, use);
}

void AddCodedEdges(std::vector<OpCase>& cases) {
  AddPartialEdges(cases);
  AddSumsEdges(cases);
  for (const EncodingLine& line : EncodingLines()) {
    for (const TableUse use :
         {TableUse::kEmbeddingRow, TableUse::kProjectedRow, TableUse::kProjectedByIntegers,
          TableUse::kRowsWithFloats, TableUse::kRowsWithCodes}) {
      if (use >= TableUse::kRowsWithFloats && !line.coding) continue;
      cases.push_back(MakeTableCase(line, use).op_case);
    }
  }
}

}  // namespace kinglet
