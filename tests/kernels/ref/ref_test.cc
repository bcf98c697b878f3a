// Each operation of the reference backends on numbers small enough to work out by hand.
#include "kernels/ref/ref.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "tests/kernels/ref/one_node.h"

namespace kinglet::ref::ref_test {
namespace {

template <class T>
class Ref : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(Ref, Scalars);

TYPED_TEST(Ref, MatVecAddsTheBiasAndRectifies) {
  OneNode<TypeParam> one;
  const WeightId weight = one.Tensor({2, 3}, {1, 2, 3, -4, 5, -6});
  const WeightId bias = one.Tensor({2}, {0.5f, 1.0f});
  const BufferId x = one.Floats({1, 10, 100}), y = one.Floats({7, 7, 7});
  MatVec op{weight, bias, x, y};
  op.y_offset = 1;
  op.relu = true;
  one.Bind(op);
  one.Run();
  EXPECT_EQ(one.template Values<TypeParam>(y)[0], 7);  // below the offset
  EXPECT_EQ(one.template Values<TypeParam>(y)[1], 321.5);
  EXPECT_EQ(one.template Values<TypeParam>(y)[2], 0);  // -4 + 50 - 600 + 1 < 0
}

TYPED_TEST(Ref, BagsAddTokensButPadding) {
  for (const bool largest : {false, true}) {
    OneNode<TypeParam> one;
    const BufferId embedded = one.Zeros(2), sum = one.Floats({50, 60}, true),
                   tokens = one.Tokens(1);
    const BufferId most = one.Floats({70, 80}, true);
    BagAppend op{embedded, sum, tokens, std::nullopt, 9};
    if (largest) op.largest = most;
    one.Bind(op);
    const auto append = [&](uint64_t position, uint32_t token, TypeParam x, TypeParam y) {
      one.template Values<TypeParam>(embedded)[0] = x;
      one.template Values<TypeParam>(embedded)[1] = y;
      one.Run(position, token);
    };
    const auto expect = [&](std::vector<TypeParam> sums, uint32_t count,
                            std::vector<TypeParam> maxima) {
      EXPECT_EQ(*one.template Values<uint32_t>(tokens), count);
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(one.template Values<TypeParam>(sum)[i], sums[i]);
        if (largest) {
          EXPECT_EQ(one.template Values<TypeParam>(most)[i], maxima[i]);
        }
      }
    };
    append(0, 1, -1, 2);
    expect({-1, 2}, 1, {-1, 2});
    append(1, 2, -3, 4);
    expect({-4, 6}, 2, {-1, 4});
    append(2, 9, 100, 100);
    expect({-4, 6}, 2, {0, 4});
    append(0, 9, 100, 100);  // another list
    expect({0, 0}, 0, {0, 0});
    append(1, 9, 100, 100);
    append(2, 0, -5, 5);
    expect({-5, 5}, 1, {0, 5});
  }
}

TYPED_TEST(Ref, FeaturesOfABagAreTheMeanAndTheMaximum) {
  OneNode<TypeParam> one;
  const BufferId sum = one.Floats({3, -7}, true), tokens = one.Tokens(1);
  const BufferId largest = one.Floats({5, -1}, true), out = one.Zeros(4);
  one.Bind(BagFeatures{sum, tokens, largest, out});
  *one.template Values<uint32_t>(tokens) = 2;
  one.Run();
  const std::vector<TypeParam> expected = {1.5, -3.5, 5, -1};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(one.template Values<TypeParam>(out)[i], expected[i]);
}

TYPED_TEST(Ref, ScaleShiftRectifyMayWorkInPlace) {
  OneNode<TypeParam> one;
  const WeightId scale = one.Tensor({4}, {2, -1, 0, 1}), shift = one.Tensor({4}, {1, 1, 0.5, 0});
  const auto nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const BufferId x = one.Floats({3, 4, 100, nan});
  one.Bind(ScaleShiftRelu{x, scale, shift, x});
  one.Run();
  const TypeParam* y = one.template Values<TypeParam>(x);
  EXPECT_EQ(y[0], 7);
  EXPECT_EQ(y[1], 0);  // -4 + 1 < 0
  EXPECT_EQ(y[2], 0.5);
  EXPECT_TRUE(std::isnan(y[3]));  // an overflow stays visible
}

TYPED_TEST(Ref, LayerNormUsesTheBiasedVariance) {
  OneNode<TypeParam> one;
  const WeightId gain = one.Tensor({4}, {1, 1, 2, 1}), bias = one.Tensor({4}, {0, 0, 0, 10});
  const BufferId x = one.Floats({1, 2, 3, 6}), y = one.Zeros(4);
  one.Bind(LayerNorm{x, gain, bias, 0.5, y});
  one.Run();
  // mean 3, variance (4 + 1 + 0 + 9) / 4 = 3.5, deviation sqrt(4) = 2
  const std::vector<TypeParam> expected = {-1, -0.5, 0, 11.5};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(one.template Values<TypeParam>(y)[i], expected[i]);
}

TYPED_TEST(Ref, QuantiseAndAddAreInverseUpToTheScale) {
  OneNode<TypeParam> one;
  const BufferId x = one.Floats({0.3f, -5, 1.26f}), codes = one.Codes(3, {2, 0.5f});
  one.Bind(Quantise{x, codes});
  one.Run();
  EXPECT_EQ(one.template Values<int16_t>(codes)[0], 1);
  EXPECT_EQ(one.template Values<int16_t>(codes)[1], -4);
  EXPECT_EQ(one.template Values<int16_t>(codes)[2], 3);

  OneNode<TypeParam> sum;
  const BufferId added = sum.Codes(2, {2, 0.5f}), y = sum.Floats({1, 1});
  sum.Bind(Add{added, y});
  sum.template Values<int16_t>(added)[0] = -3;
  sum.template Values<int16_t>(added)[1] = 4;
  sum.Run();
  EXPECT_EQ(sum.template Values<TypeParam>(y)[0], -0.5);
  EXPECT_EQ(sum.template Values<TypeParam>(y)[1], 3);
}

TYPED_TEST(Ref, EmbedRowProjectsAndScalesTheTokensOwnBin) {
  OneNode<TypeParam> one;
  const WeightId first = one.Tensor({2, 2}, {1, 2, 3, 4}), second = one.Tensor({2, 1}, {5, 6});
  const WeightId projection = one.Tensor({2, 1}, {10, 100});
  const BufferId out = one.Zeros(2);
  one.Bind(EmbedRow{{{0, 2, first, std::nullopt}, {2, 2, second, projection}}, 2.0, out});
  one.Run(0, 1);
  EXPECT_EQ(one.template Values<TypeParam>(out)[1], 8);
  one.Run(0, 3);
  EXPECT_EQ(one.template Values<TypeParam>(out)[0], 120);
  EXPECT_EQ(one.template Values<TypeParam>(out)[1], 1200);
}

TYPED_TEST(Ref, LogSumExpOfEqualLogitsIsTheLogOfTheirNumber) {
  for (size_t n : {1, 2, 40, 3000}) {
    for (const int whole : {-700, -65, -64, -2, 0, 64, 65, 1000000}) {
      const auto logit = static_cast<TypeParam>(whole);
      OneNode<TypeParam> one;
      const BufferId x = one.Floats(std::vector<TypeParam>(n, logit));
      const BufferId out = one.Zeros(LogSumExp::kCount);
      one.Bind(LogSumExp{x, out, {one.Zeros(SumTiles(n)), one.Zeros(SumTiles(n))}});
      one.Run();
      const TypeParam* const found = one.template Values<TypeParam>(out);
      EXPECT_EQ(found[0], std::abs(logit) <= 64 ? TypeParam{0} : logit);
      EXPECT_NEAR(found[0] - logit + found[1], std::log(static_cast<double>(n)), 8e-6);
      EXPECT_EQ(found[2], logit);
    }
  }
}

// One head, key and value of one element, window 2. q = k = token, v = 10 token.
TYPED_TEST(Ref, WindowAttentionSeesOnlyItsWindow) {
  for (StreamStart start : {StreamStart::kMasked, StreamStart::kZeros}) {
    OneNode<TypeParam> one;
    const WeightId positions = one.Tensor({1, 2}, {0.0f, 0.0f});
    const BufferId qkv = one.Zeros(3), keys = one.Zeros(2, true), values = one.Zeros(2, true);
    const BufferId weights = one.Zeros(2), out = one.Zeros(1);
    WindowAttention op{};
    op.qkv = qkv;
    op.keys = keys;
    op.values = values;
    op.positions = SlotColumns{positions};
    op.heads = op.key_size = op.value_size = 1;
    op.window = 2;
    op.start = start;
    op.weights = weights;
    op.out = out;
    one.Bind(op);
    const auto feed = [&](uint64_t position, TypeParam token) {
      TypeParam* z = one.template Values<TypeParam>(qkv);
      z[0] = z[1] = token;
      z[2] = 10 * token;
      one.Run(position);
      return static_cast<double>(one.template Values<TypeParam>(out)[0]);
    };
    // The first token: alone, or with a slot of zeros that has part of the weight.
    const double alone = start == StreamStart::kMasked ? 10 : 10 * std::exp(1) / (std::exp(1) + 1);
    EXPECT_NEAR(feed(0, 1), alone, 1e-5);
    const double a = std::exp(2 * 1), b = std::exp(2 * 2);
    EXPECT_NEAR(feed(1, 2), (10 * a + 20 * b) / (a + b), 1e-5);
    // Slot 0 is reused: the first token is evicted.
    const double c = std::exp(0.5 * 2), d = std::exp(0.5 * 0.5);
    EXPECT_NEAR(feed(2, 0.5), (20 * c + 5 * d) / (c + d), 1e-5);
  }
}

TYPED_TEST(Ref, TheNeuralCacheRemembersPairsAndForgetsTheOldest) {
  constexpr uint32_t kCapacity = 2;
  OneNode<TypeParam> append;
  const BufferId hidden = append.Floats({3}, true), keys = append.Zeros(kCapacity, true),
                 tokens = append.Tokens(kCapacity);
  append.Bind(CacheAppend{hidden, keys, tokens, kCapacity});
  append.Run(0, 9);  // nothing before the first token
  EXPECT_EQ(append.template Values<uint32_t>(tokens)[0], 0u);
  for (uint64_t position = 1; position <= 3; ++position) {
    append.template Values<TypeParam>(hidden)[0] = static_cast<TypeParam>(position);
    append.Run(position, static_cast<uint32_t>(10 * position));
  }
  EXPECT_EQ(append.template Values<uint32_t>(tokens)[0],
            30u);  // the third pair replaced the first
  EXPECT_EQ(append.template Values<uint32_t>(tokens)[1], 20u);
  EXPECT_EQ(append.template Values<TypeParam>(keys)[0], 3);

  OneNode<TypeParam> query;
  const BufferId h = query.Floats({2}, true), stored = query.Floats({3, 2}, true);
  const BufferId weights = query.Floats({-1, -1}), total = query.Floats({-1});
  query.Bind(CacheWeights{h, stored, kCapacity, 0.5, weights, total});
  query.Run(0);
  EXPECT_EQ(query.template Values<TypeParam>(total)[0], 0);
  EXPECT_EQ(query.template Values<TypeParam>(weights)[0], -1);  // unchanged
  query.Run(1);
  EXPECT_EQ(query.template Values<TypeParam>(total)[0], 1);
  query.Run(5);
  EXPECT_EQ(query.template Values<TypeParam>(weights)[0], 1);
  EXPECT_NEAR(query.template Values<TypeParam>(weights)[1], std::exp(-1), 1e-7);
  EXPECT_NEAR(query.template Values<TypeParam>(total)[0], 1 + std::exp(-1), 1e-7);
}

double Sigma(double x) { return 1 / (1 + std::exp(-x)); }

// Two hidden elements, so that gates and elements cannot be mistaken for each other. Expected
// values: the equations of the cells (PyTorch's documentation of LSTM, GRU and RNN; Bradbury et al.
// 2016).
TYPED_TEST(Ref, LstmGates) {
  OneNode<TypeParam> one;
  const std::vector<TypeParam> in = {1, -2, 0.5, 3, -1, 0.25, 2, -0.5};
  const std::vector<TypeParam> back = {0.5, 1, -1, 0.75, 2, -1.25, -0.25, 1.5};
  const BufferId input = one.Floats(in), recurrent = one.Floats(back);
  const BufferId cell = one.Floats({0.5, -1.5}, true), hidden = one.Floats({9, 9});
  one.Bind(LstmGates{input, recurrent, cell, hidden});
  one.Run();
  const double before[] = {0.5, -1.5};
  for (size_t u = 0; u < 2; ++u) {
    const auto a = [&](size_t gate) {
      return double{in[2 * gate + u]} + double{back[2 * gate + u]};
    };
    const double c = Sigma(a(1)) * before[u] + Sigma(a(0)) * std::tanh(a(2));
    EXPECT_NEAR(one.template Values<TypeParam>(cell)[u], c, 3e-7);
    EXPECT_NEAR(one.template Values<TypeParam>(hidden)[u], Sigma(a(3)) * std::tanh(c), 3e-7);
  }
}

TYPED_TEST(Ref, GruGatesKeepTheHiddenBiasInsideTheReset) {
  OneNode<TypeParam> one;
  const std::vector<TypeParam> in = {1, -2, 0.5, 3, -1, 0.25};
  const std::vector<TypeParam> back = {0.5, 1, -1, 0.75, 2, -1.25};
  const BufferId input = one.Floats(in), recurrent = one.Floats(back);
  const BufferId hidden = one.Floats({0.5, -1.5}, true);
  one.Bind(GruGates{input, recurrent, hidden});
  one.Run();
  const double before[] = {0.5, -1.5};
  for (size_t u = 0; u < 2; ++u) {
    const double r = Sigma(double{in[u]} + double{back[u]});
    const double z = Sigma(double{in[2 + u]} + double{back[2 + u]});
    const double n = std::tanh(double{in[4 + u]} + r * double{back[4 + u]});
    EXPECT_NEAR(one.template Values<TypeParam>(hidden)[u], (1 - z) * n + z * before[u], 3e-7);
  }
}

TYPED_TEST(Ref, RnnGates) {
  for (const bool relu : {false, true}) {
    OneNode<TypeParam> one;
    const BufferId input = one.Floats({1, -2, 0.25}), recurrent = one.Floats({0.5, 1, -0.25});
    const BufferId hidden = one.Floats({9, 9, 9});
    one.Bind(RnnGates{input, recurrent, hidden, relu});
    one.Run();
    const TypeParam* h = one.template Values<TypeParam>(hidden);
    EXPECT_NEAR(h[0], relu ? 1.5 : std::tanh(1.5), 1e-7);
    EXPECT_NEAR(h[1], relu ? 0 : std::tanh(-1.0), 1e-7);
    EXPECT_EQ(h[2], 0);
  }
}

TYPED_TEST(Ref, QrnnGatesWithAndWithoutThePreviousToken) {
  for (const bool has_previous : {false, true}) {
    OneNode<TypeParam> one;
    const std::vector<TypeParam> in = {1, -2, 0.5, 3, -1, 0.25};
    const std::vector<TypeParam> back = {0.5, 1, -1, 0.75, 2, -1.25};
    const BufferId input = one.Floats(in), previous = one.Floats(back);
    const BufferId cell = one.Floats({0.5, -1.5}, true), hidden = one.Floats({9, 9});
    QrnnGates op{input, std::nullopt, cell, hidden};
    if (has_previous) op.previous = previous;
    one.Bind(op);
    one.Run();
    const double before[] = {0.5, -1.5};
    for (size_t u = 0; u < 2; ++u) {
      const auto a = [&](size_t gate) {
        return double{in[2 * gate + u]} + (has_previous ? double{back[2 * gate + u]} : 0);
      };
      const double f = Sigma(a(1)), c = f * std::tanh(a(0)) + (1 - f) * before[u];
      EXPECT_NEAR(one.template Values<TypeParam>(cell)[u], c, 3e-7);
      EXPECT_NEAR(one.template Values<TypeParam>(hidden)[u], Sigma(a(2)) * c, 3e-7);
    }
  }
}

// Two heads. In the memory a query of 9s lies before each key; the third slot is beyond the source.
TYPED_TEST(Ref, SourceAttentionIsASoftmaxOverTheSource) {
  using T = TypeParam;
  OneNode<T> one;
  const BufferId query = one.Floats({1, 0, 0, 2});
  const BufferId memory = one.Floats({9, 9, 1,  5,  10, 9, 9, 3,  4,  20,  //
                                      9, 9, 2,  6,  30, 9, 9, 7,  8,  40,  //
                                      9, 9, 50, 50, 99, 9, 9, 50, 50, 99});
  const BufferId weights = one.Floats({7, 7, 7, 7, 7, 7}), out = one.Zeros(2);
  one.Bind(SourceAttention{query, memory, 2, 2, 1, 3, std::nullopt, weights, out});
  one.Run(5, 0, 2);
  const double root = std::sqrt(2.0);
  const auto share = [](double a, double b) { return std::exp(a) / (std::exp(a) + std::exp(b)); };
  const double first = share(1 / root, 2 / root), second = share(8 / root, 16 / root);
  const T* found = one.template Values<T>(weights);
  const double expected[] = {first, 1 - first, 7, second, 1 - second, 7};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(found[i], expected[i], 3e-7) << i;
  EXPECT_NEAR(one.template Values<T>(out)[0], 10 * first + 30 * (1 - first), 1e-5);
  EXPECT_NEAR(one.template Values<T>(out)[1], 20 * second + 40 * (1 - second), 1e-5);

  one.Run(0, 0, 1);  // one token has all the weight, exactly
  EXPECT_EQ(one.template Values<T>(weights)[0], 1);
  EXPECT_EQ(one.template Values<T>(out)[1], 20);
}

// One head and two slots; codes of a quarter, keys before values, weights rounded to eighths.
TYPED_TEST(Ref, SourceAttentionInIntegers) {
  using T = TypeParam;
  OneNode<T> one;
  const BufferId query = one.Codes(2, {8, 0.25f});
  const BufferId memory = one.Codes(6, {20, 0.5f});
  const BufferId weights = one.Zeros(2), out = one.Zeros(1);
  SourceAttention op{query, memory, 1, 2, 1, 2, ActivationQuantiser{1, 0.125f}, weights, out};
  one.Bind(op);
  const int16_t queries[] = {4, -8};                // 1, -2
  const int16_t stored[] = {2, 3, 40, 6, -1, -12};  // (1, 1.5), 20; (3, -0.5), -6
  std::copy_n(queries, 2, one.template Values<int16_t>(query));
  std::copy_n(stored, 6, one.template Values<int16_t>(memory));
  one.Run(0, 0, 2);
  const double root = std::sqrt(2.0), a = std::exp(-2 / root), b = std::exp(4 / root);
  EXPECT_NEAR(one.template Values<T>(weights)[0], a / (a + b), 3e-7);
  EXPECT_EQ(one.template Values<T>(out)[0], -6);  // 0.0142 and 0.986 round to 0 and 8 eighths
  one.Run(0, 0, 1);
  EXPECT_EQ(one.template Values<T>(out)[0], 20);
}

// Two slots of which the second is beyond the source, then both; a slot is both key and value.
TYPED_TEST(Ref, SourceAttentionOfProducts) {
  using T = TypeParam;
  OneNode<T> one;
  const BufferId query = one.Floats({1, 2}), memory = one.Floats({3, 1, 4, -1});
  const BufferId weights = one.Zeros(2), out = one.Zeros(2);
  SourceAttention op{query, memory, 1, 2, 2, 2, std::nullopt, weights, out};
  op.score = SourceScore::kDot;
  one.Bind(op);
  one.Run(0, 0, 1);
  EXPECT_EQ(one.template Values<T>(out)[0], 3);
  EXPECT_EQ(one.template Values<T>(out)[1], 1);
  one.Run(0, 0, 2);
  const double first = std::exp(5) / (std::exp(5) + std::exp(2));
  EXPECT_NEAR(one.template Values<T>(weights)[0], first, 3e-7);
  EXPECT_NEAR(one.template Values<T>(out)[1], first - (1 - first), 1e-6);
}

// A slot is a key followed by a value.
TYPED_TEST(Ref, SourceAttentionOfSums) {
  using T = TypeParam;
  OneNode<T> one;
  const BufferId query = one.Floats({1, -0.5}), memory = one.Floats({0.25, 1, 7, 8, -2, 3, 9, 4});
  const BufferId weights = one.Zeros(2), out = one.Zeros(2);
  SourceAttention op{query, memory, 1, 2, 2, 2, std::nullopt, weights, out};
  op.score = SourceScore::kAdditive;
  op.score_weight = one.Tensor({1, 2}, {2, -1});
  one.Bind(op);
  one.Run(0, 0, 2);
  const double a = 2 * std::tanh(1.25) - std::tanh(0.5), b = 2 * std::tanh(-1.0) - std::tanh(2.5);
  const double first = std::exp(a) / (std::exp(a) + std::exp(b));
  EXPECT_NEAR(one.template Values<T>(weights)[0], first, 3e-7);
  EXPECT_NEAR(one.template Values<T>(out)[0], 7 * first + 9 * (1 - first), 1e-5);
}

TYPED_TEST(Ref, JoinPutsPartsInARow) {
  using T = TypeParam;
  OneNode<T> one;
  const BufferId a = one.Floats({1, 2, 3}), b = one.Floats({4, 5});
  const BufferId y = one.Floats({9, 9, 9, 9, 9});
  one.Bind(Join{{{b, 1, 1}, {a, 0, 2}}, y});
  one.Run(0, 0);
  const T* joined = one.template Values<T>(y);
  EXPECT_EQ((std::vector<T>(joined, joined + 5)), (std::vector<T>{5, 1, 2, 0, 0}));
}

TYPED_TEST(Ref, RowsOfASourceAreStoredAndLoaded) {
  using T = TypeParam;
  OneNode<T> store;
  const BufferId x = store.Floats({1, 2}), rows = store.Floats({7, 7, 7, 7, 7, 7});
  store.Bind(StoreRow{x, rows});
  store.Run(2, 0, 3);
  const T* stored = store.template Values<T>(rows);
  EXPECT_EQ((std::vector<T>(stored, stored + 6)), (std::vector<T>{7, 7, 7, 7, 1, 2}));

  OneNode<T> load;
  const BufferId from = load.Floats({1, 2, 3, 4, 5, 6}), to = load.Zeros(2);
  load.Bind(LoadRow{from, to});
  load.Run(1, 0, 3);
  EXPECT_EQ(load.template Values<T>(to)[0], 3);
  EXPECT_EQ(load.template Values<T>(to)[1], 4);

  OneNode<T> codes;
  const ActivationQuantiser quantiser{8, 0.25f};
  const BufferId one = codes.Codes(2, quantiser), all = codes.Codes(4, quantiser);
  codes.Bind(StoreRow{one, all});
  codes.template Values<int16_t>(one)[0] = -5;
  codes.template Values<int16_t>(one)[1] = 9;
  codes.Run(1, 0, 2);
  const int16_t* written = codes.template Values<int16_t>(all);
  EXPECT_EQ((std::vector<int16_t>(written, written + 4)), (std::vector<int16_t>{0, 0, -5, 9}));
}

// The one difference between ref and ref64 apart from exp and log: docs/NUMERICS.md, rule 2.
TEST(FixedPointInput, RoundsInFloatAndIsExactInDouble) {
  const auto run = [](auto scalar) {
    using T = decltype(scalar);
    OneNode<T> one;
    const WeightId weight = one.Tensor({1, 2}, {1, 1});
    const BufferId x = one.Floats({T{1}, static_cast<T>(0.3)}), y = one.Zeros(1);
    MatVec op{weight, std::nullopt, x, y};
    op.input = TailInput::kFixedPoint15;
    one.Bind(op);
    one.Run();
    return static_cast<double>(one.template Values<T>(y)[0]);
  };
  EXPECT_EQ(run(double{}), 1.0 + 0.3);
  const double in_float = run(float{});
  EXPECT_NE(in_float, static_cast<double>(1.0f + 0.3f));
  EXPECT_NEAR(in_float, 1.0 + 0.3, 0.5 / 16383 + 1e-6);  // half of the scale
}

}  // namespace
}  // namespace kinglet::ref::ref_test
