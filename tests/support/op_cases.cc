// The two tables of cases: edge cases and realistic ones.
#include "tests/support/op_cases.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/support/attention_cases.h"
#include "tests/support/case_builder.h"
#include "tests/support/coded_cases.h"
#include "tests/support/define_cases.h"
#include "tests/support/recurrent_cases.h"
#include "tests/support/transformer_cases.h"

namespace kinglet {
namespace {

// ref64 does not round the fixed-point input: up to half of 1/16383 in each element.
constexpr double kFixedPointTolerance = 1e-7;

// --- matrix-vector products

struct MatVecShape {
  uint64_t rows, cols;
  Storage storage = Storage::kPerRow;
  int bits = 9;
  bool pruned = false;
  int x_bits = 0;  // 0: floats
  TailInput input = TailInput::kAsIs;
  bool bias = true;
  bool relu = false;
  Fill fill = Fill::kRandom;
};

OpCase MatVecCase(const std::string& prefix, const MatVecShape& shape) {
  CaseBuilder builder(
      CaseName(prefix, {static_cast<int64_t>(shape.rows), static_cast<int64_t>(shape.cols),
                        static_cast<int>(shape.storage), shape.bits, shape.pruned, shape.x_bits,
                        static_cast<int>(shape.input), static_cast<int>(shape.fill)}),
      shape.rows * 31 + shape.cols);
  MatVec op;
  op.weight = builder.Matrix(shape.rows, shape.cols, shape.storage, shape.bits, shape.pruned,
                             shape.fill == Fill::kExtreme ? Fill::kExtreme : Fill::kRandom);
  if (shape.bias) {
    op.bias = shape.rows % 2 == 0 ? builder.DenseVector(shape.rows)
                                  : builder.DividedVector(shape.rows, 9);
  }
  op.x = builder.Vector("x", shape.cols, shape.x_bits, shape.fill);
  op.y_offset = shape.rows % 3 == 0 ? 5 : 0;
  op.y = builder.Floats("y", shape.rows + op.y_offset + 2, Fill::kRandom);
  op.relu = shape.relu;
  op.input = shape.input;
  const bool comparable = shape.fill == Fill::kRandom || shape.fill == Fill::kZero;
  const double tolerance = shape.input == TailInput::kFixedPoint15 ? kFixedPointTolerance : 1e-9;
  return builder.Finish(op, comparable ? tolerance : kNotComparable);
}

void AddMatVecEdges(std::vector<OpCase>& cases) {
  constexpr std::array<std::pair<uint64_t, uint64_t>, 12> kShapes = {{{1, 1},
                                                                      {2, 31},
                                                                      {15, 32},
                                                                      {16, 33},
                                                                      {17, 17},
                                                                      {65, 63},
                                                                      {64, 128},
                                                                      {81, 7},
                                                                      {33, 1023},
                                                                      {3, 1024},
                                                                      {18, 1025},
                                                                      {2, 2049}}};
  struct Encoding {
    Storage storage;
    int bits;
    bool pruned;
  };
  constexpr std::array<Encoding, 12> kEncodings = {{{Storage::kF32, 0, false},
                                                    {Storage::kF32, 0, true},
                                                    {Storage::kF16, 0, false},
                                                    {Storage::kPerRow, 2, false},
                                                    {Storage::kPerRow, 3, true},
                                                    {Storage::kPerRow, 8, false},
                                                    {Storage::kPerRow, 9, true},
                                                    {Storage::kPerRow, 10, false},
                                                    {Storage::kPerRow, 16, false},
                                                    {Storage::kPerTensor, 9, false},
                                                    {Storage::kPerTensor, 13, true},
                                                    {Storage::kDivided, 9, false}}};
  constexpr std::array<int, 5> kXBits = {0, 2, 9, 16, 18};
  int turn = 0;
  for (const auto& [rows, cols] : kShapes) {
    for (const Encoding& encoding : kEncodings) {
      for (const int x_bits : kXBits) {
        MatVecShape shape{rows, cols, encoding.storage, encoding.bits, encoding.pruned, x_bits};
        shape.bias = ++turn % 3 != 0;
        shape.relu = turn % 4 == 0;
        cases.push_back(MatVecCase("MatVec", shape));
        if (x_bits != 0) continue;
        shape.input = TailInput::kFixedPoint15;
        cases.push_back(MatVecCase("MatVec", shape));
      }
    }
  }
  // No row at all, and vectors longer than a kernel's fixed-size scratch.
  cases.push_back(MatVecCase("MatVec", {0, 5}));
  cases.push_back(MatVecCase("MatVec", {2, 9001, Storage::kF32, 0}));
  cases.push_back(MatVecCase("MatVec", {2, 9001, Storage::kPerRow, 9, false, 9}));
  // Every number of bits with every remainder of columns modulo four.
  for (int bits = 2; bits <= 16; ++bits) {
    for (const uint64_t cols : {1u, 2u, 3u, 4u, 29u, 30u, 31u, 60u}) {
      const uint64_t rows = 16 + static_cast<uint64_t>(bits) * 11;
      cases.push_back(MatVecCase("MatVec", {rows, cols, Storage::kPerRow, bits, false, 0}));
      cases.push_back(MatVecCase("MatVec", {rows, cols, Storage::kPerRow, bits, true, 9}));
    }
  }
  // Sums that exceed 31 bits, with few columns and only with many.
  for (const uint64_t cols : {2u, 3u, 511u, 512u, 513u, 2049u, 8192u}) {
    for (const int bits : {8, 9, 10, 16}) {
      for (const int x_bits : {0, 9, 16}) {
        MatVecShape shape{21, cols, Storage::kPerRow, bits, false, x_bits};
        shape.fill = Fill::kExtreme;
        shape.input = x_bits == 0 ? TailInput::kFixedPoint15 : TailInput::kAsIs;
        cases.push_back(MatVecCase("MatVec", shape));
      }
    }
  }
  for (const Fill fill : {Fill::kSpecial, Fill::kZero, Fill::kTiny}) {
    for (const uint64_t cols : {5u, 33u, 1030u}) {
      for (const TailInput input : {TailInput::kAsIs, TailInput::kFixedPoint15}) {
        for (const Storage storage : {Storage::kF32, Storage::kPerRow}) {
          MatVecShape shape{19, cols, storage, 9};
          shape.input = input;
          shape.fill = fill;
          shape.relu = cols == 33;
          cases.push_back(MatVecCase("MatVec", shape));
        }
      }
    }
  }
}

// --- embedding rows

struct EmbedShape {
  uint32_t width;
  std::array<uint32_t, 3> sizes, cols;
  Storage storage;
  int bits, projection_bits;  // projection_bits 0: floats
  bool pruned = false;
};

OpCase EmbedCase(const std::string& prefix, const EmbedShape& shape, uint32_t token) {
  CaseBuilder builder(CaseName(prefix, {shape.width, static_cast<int>(shape.storage), shape.bits,
                                        shape.projection_bits, shape.pruned, token}),
                      shape.width);
  EmbedRow op;
  op.scale = std::sqrt(static_cast<double>(shape.width));
  uint32_t first = 0;
  for (size_t i = 0; i < shape.sizes.size(); ++i) {
    EmbeddingBin bin{first, shape.sizes[i], 0, std::nullopt};
    bin.table =
        builder.Matrix(shape.sizes[i], shape.cols[i], shape.storage, shape.bits, shape.pruned);
    if (shape.cols[i] != shape.width) {
      const bool real = shape.projection_bits == 0;
      bin.projection =
          builder.Matrix(shape.width, shape.cols[i], real ? Storage::kF32 : Storage::kPerRow,
                         shape.projection_bits);
    }
    op.bins.push_back(bin);
    first += shape.sizes[i];
  }
  op.out = builder.Floats("out", shape.width, Fill::kRandom);
  return builder.Finish(op, 1e-9, 0, token);
}

void AddEmbedEdges(std::vector<OpCase>& cases) {
  const std::vector<EmbedShape> shapes = {
      {33, {17, 5, 40}, {33, 7, 40}, Storage::kF32, 0, 0},
      {33, {17, 5, 40}, {33, 7, 40}, Storage::kF16, 0, 9},
      {33, {17, 5, 40}, {33, 7, 40}, Storage::kPerRow, 9, 9},
      {48, {17, 1, 40}, {48, 1, 33}, Storage::kPerRow, 9, 0, true},
      {48, {17, 1, 40}, {48, 1, 33}, Storage::kPerTensor, 16, 16},
      {48, {17, 1, 40}, {48, 1, 33}, Storage::kDivided, 9, 9},
      {16, {3, 3, 3}, {16, 1025, 600}, Storage::kPerRow, 16, 13},
  };
  for (const EmbedShape& shape : shapes) {
    const uint32_t total = shape.sizes[0] + shape.sizes[1] + shape.sizes[2];
    for (const uint32_t token : {0u, shape.sizes[0], shape.sizes[0] + shape.sizes[1], total - 1}) {
      cases.push_back(EmbedCase("EmbedRow", shape, token));
    }
  }
}

// --- elementwise operations and LogSumExp

OpCase LayerNormCase(const std::string& prefix, uint64_t n, Fill fill) {
  CaseBuilder builder(CaseName(prefix, {static_cast<int64_t>(n), static_cast<int>(fill)}), n);
  const BufferId x = builder.Floats("x", n, fill), y = builder.Floats("y", n, Fill::kRandom);
  const WeightId gain = builder.DenseVector(n), bias = builder.DenseVector(n);
  const bool comparable = fill == Fill::kRandom && n > 1;
  return builder.Finish(LayerNorm{x, gain, bias, 1e-5, y}, comparable ? 1e-9 : kNotComparable);
}

OpCase RootMeanSquareCase(uint64_t n, Fill fill) {
  CaseBuilder builder(
      CaseName("RootMeanSquareNorm", {static_cast<int64_t>(n), static_cast<int>(fill)}), n);
  const BufferId x = builder.Floats("x", n, fill), y = builder.Floats("y", n, Fill::kRandom);
  return builder.Finish(RootMeanSquareNorm{x, 0.25, y},
                        fill == Fill::kRandom ? 1e-9 : kNotComparable);
}

OpCase ActivationCase(uint64_t n, Activation activation, Fill fill) {
  CaseBuilder builder(
      CaseName("ApplyActivation",
               {static_cast<int64_t>(n), static_cast<int>(activation), static_cast<int>(fill)}),
      n);
  const BufferId x = builder.Floats("x", n, fill);
  return builder.Finish(ApplyActivation{x, activation},
                        fill == Fill::kRandom ? 1e-9 : kNotComparable);
}

OpCase QuantiseCase(const std::string& prefix, uint64_t n, int bits, Fill fill) {
  CaseBuilder builder(CaseName(prefix, {static_cast<int64_t>(n), bits, static_cast<int>(fill)}), n);
  // Values up to twice the limit, so that half are clamped.
  const BufferId x = builder.Given("x", builder.RandomFloats(n, fill, 8.0f));
  const BufferId codes = builder.Codes("codes", n, bits, Fill::kRandom);
  const bool comparable = fill == Fill::kRandom && n > 200;
  return builder.Finish(Quantise{x, codes}, comparable ? kRoundingTolerance : kNotComparable);
}

OpCase AddCase(const std::string& prefix, uint64_t n, int x_bits, Fill fill) {
  CaseBuilder builder(CaseName(prefix, {static_cast<int64_t>(n), x_bits, static_cast<int>(fill)}),
                      n);
  const BufferId x = builder.Vector("x", n, x_bits, fill), y = builder.Floats("y", n, fill);
  return builder.Finish(Add{x, y}, fill == Fill::kRandom ? 1e-9 : kNotComparable);
}

// Writes to the middle third of y.
OpCase AddScalarCase(const std::string& prefix, uint64_t n, Fill fill) {
  CaseBuilder builder(CaseName(prefix, {static_cast<int64_t>(n), static_cast<int>(fill)}), n);
  const BufferId x = builder.Floats("x", 3, fill), y = builder.Floats("y", n, fill);
  const auto first = static_cast<uint32_t>(n / 3);
  return builder.Finish(AddScalar{x, 1, y, first, static_cast<uint32_t>((n + 2) / 3)},
                        fill == Fill::kRandom ? 1e-9 : kNotComparable);
}

OpCase LogSumExpCase(const std::string& name, std::vector<float> values, double tolerance) {
  CaseBuilder builder(name, 1);
  const uint64_t count = SumTiles(values.size());
  const BufferId x = builder.Given("x", std::move(values));
  const BufferId out = builder.Floats("out", LogSumExp::kCount, Fill::kRandom);
  const LogitTiles tiles = {builder.Floats("largest", count, Fill::kZero),
                            builder.Floats("sums", count, Fill::kZero)};
  return builder.Finish(LogSumExp{x, out, tiles}, tolerance);
}

void AddElementwiseEdges(std::vector<OpCase>& cases) {
  for (const uint64_t n : kLengths) {
    for (const Fill fill : {Fill::kRandom, Fill::kSpecial, Fill::kZero}) {
      cases.push_back(LayerNormCase("LayerNorm", n, fill));
      cases.push_back(RootMeanSquareCase(n, fill));
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kSwish,
            Activation::kTanh, Activation::kSigmoid, Activation::kLeakyRelu,
            Activation::kDoubleSwish, Activation::kTanhGelu}) {
        if (n < 1000) cases.push_back(ActivationCase(n, activation, fill));
      }
      for (const int bits : {2, 9, 16, 18}) {
        cases.push_back(QuantiseCase("Quantise", n, bits, fill));
      }
      for (const int bits : {0, 9, 18}) cases.push_back(AddCase("Add", n, bits, fill));
      cases.push_back(AddScalarCase("AddScalar", n, fill));
      CaseBuilder values("", n);
      cases.push_back(LogSumExpCase(
          CaseName("LogSumExp", {static_cast<int64_t>(n), static_cast<int>(fill)}),
          values.RandomFloats(n, fill, 9.0f), fill == Fill::kRandom ? 1e-9 : kNotComparable));
    }
  }
  // Exactly half way between two codes.
  {
    CaseBuilder builder("Quantise/ties", 1);
    std::vector<float> ties;
    for (int i = -9; i < 10; ++i) ties.push_back(static_cast<float>(i) * 0.5f);
    const BufferId x = builder.Given("x", ties);
    const BufferId codes = builder.Codes("codes", ties.size(), 3, Fill::kRandom);
    OpCase tied = builder.Finish(Quantise{x, codes});
    tied.plan.buffers[1].quantiser = ActivationQuantiser{4.0f, 1.0f};
    cases.push_back(std::move(tied));
  }
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const size_t n : {5u, 40u, 1030u, 25000u}) {
    const auto with = [&](float common, size_t at, float odd) {
      std::vector<float> values(n, common);
      values[at % n] = odd;
      cases.push_back(LogSumExpCase(
          CaseName("LogSumExp/odd", {static_cast<int64_t>(n), static_cast<int64_t>(cases.size())}),
          std::move(values), kNotComparable));
    };
    for (const size_t at : {size_t{0}, size_t{3}, size_t{17}, size_t{8192}, n - 1}) {
      with(1.0f, at, kNaN);
      with(-70.0f, at, 70.0f);
      with(20.0f, at, 200.0f);
      with(-0.0f, at, 0.0f);  // of equal zeros the first is the maximum
      with(0.0f, at, -0.0f);
      with(-90.0f, at, 12.0f);  // exponentials that are denormal
      with(-kInf, at, 1.0f);
      with(1.0f, at, kInf);
      with(-kInf, at, -kInf);
    }
  }
  // A tile that begins with a NaN and contains the largest number.
  std::vector<float> hidden(25000, 1.0f);
  hidden[8192] = kNaN;
  hidden[8200] = 3.0f;
  cases.push_back(LogSumExpCase("LogSumExp/hidden", std::move(hidden), kNotComparable));
}

}  // namespace

std::vector<OpCase> EdgeOpCases() {
  std::vector<OpCase> cases;
  AddMatVecEdges(cases);
  AddEmbedEdges(cases);
  AddElementwiseEdges(cases);
  AddAttentionEdges(cases);
  AddRecurrentEdges(cases);
  AddTransformerEdges(cases);
  AddDefineEdges(cases);
  AddCodedEdges(cases);
  return cases;
}

std::vector<OpCase> RealisticOpCases() {
  constexpr TailInput kFixed = TailInput::kFixedPoint15;
  std::vector<OpCase> cases;
  // The demo model: width 128, 4 heads of 32, inner 512; the published best MicroNet: width 256.
  for (const int bits : {0, 9}) {
    const Storage storage = bits == 0 ? Storage::kF32 : Storage::kPerRow;
    cases.push_back(MatVecCase("qkv.demo", {384, 128, storage, bits, true, bits}));
    cases.push_back(MatVecCase("fc0.demo", {512, 128, storage, bits, true, bits}));
    cases.push_back(MatVecCase("fc3.demo", {128, 512, storage, bits, true, bits}));
    cases.push_back(MatVecCase("head.demo", {2500, 128, storage, bits, true, bits}));
    cases.push_back(MatVecCase("qkv.best", {576, 256, storage, bits, true, bits}));
    cases.push_back(MatVecCase("fc3.best", {256, 768, storage, bits, true, bits}));
    cases.push_back(MatVecCase("head.best", {3500, 256, storage, bits, true, bits}));
  }
  cases.push_back(MatVecCase("tail1.demo", {9500, 48, Storage::kPerRow, 9, true, 0, kFixed}));
  cases.push_back(MatVecCase("tail2.demo", {21278, 16, Storage::kPerRow, 9, true, 0, kFixed}));
  cases.push_back(MatVecCase("tail1.best", {21500, 64, Storage::kPerRow, 9, true, 0, kFixed}));
  cases.push_back(MatVecCase("uncalibrated.head.demo", {2500, 128, Storage::kPerRow, 9, true, 0}));
  cases.push_back(EmbedCase(
      "embed.demo", {128, {2500, 9500, 21278}, {128, 48, 16}, Storage::kPerRow, 9, 9}, 5000));
  AddRealisticAttentionCases(cases);
  // AWD-LSTM of Penn Treebank: 1,150 units.
  AddRealisticRecurrentCases(cases);
  AddRealisticTransformerCases(cases);
  AddRealisticDefineCases(cases);
  cases.push_back(MatVecCase("recurrent.awd", {4600, 1150, Storage::kPerRow, 9, false, 9}));
  cases.push_back(LayerNormCase("norm.best", 256, Fill::kRandom));
  cases.push_back(QuantiseCase("quantise.best", 256, 9, Fill::kRandom));
  cases.push_back(AddCase("add.best", 256, 9, Fill::kRandom));
  cases.push_back(AddScalarCase("add_scalar.demo", 21278, Fill::kRandom));
  CaseBuilder values("", 1);
  cases.push_back(
      LogSumExpCase("logsumexp.demo", values.RandomFloats(9500, Fill::kRandom, 9.0f), 1e-9));
  return cases;
}

}  // namespace kinglet
