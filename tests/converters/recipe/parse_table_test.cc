#include "converters/recipe/parse_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kinglet::parse_table_test {
namespace {

// ParseRecipe's tests (recipe_test.cc) go through every refusal; these look at the values.
class ParseTable : public testing::Test {
 protected:
  TableRecipe Table(const std::string& text) {
    const auto node = RecipeNode::Parse("r", text);
    EXPECT_TRUE(node.ok()) << node.status().message();
    const auto table = parser_.Table(*node);
    EXPECT_TRUE(table.ok()) << table.status().message();
    return table.ok() ? *table : TableRecipe{};
  }
  std::vector<std::string> references_;
  TableParser parser_{references_};
};

TEST_F(ParseTable, CodesFromOnePoolAreItsRows) {
  const auto codes = std::get<CodesRecipe>(
      Table(R"({"codes": {"codebook": "b", "codes": "c", "combine": "concatenate",
                          "pools": "one"}})")
          .form);
  EXPECT_EQ(codes.combine, Combine::kConcatenate);
  EXPECT_EQ(codes.pools.kind, PoolsRecipe::Kind::kOne);
  EXPECT_FALSE(codes.logits);
  EXPECT_FALSE(codes.absolute);
  EXPECT_EQ(references_, (std::vector<std::string>{"b", "c"}));
}

TEST_F(ParseTable, CodesHaveChoices) {
  const auto codes = std::get<CodesRecipe>(Table(R"({"codes": {
      "codebook": "b", "codes": "c", "combine": "sum", "pools": [3, 4],
      "indices": "absolute"}})")
                                               .form);
  const auto logits = std::get<CodesRecipe>(Table(R"({"codes": {
      "codebook": "b", "logits": "l", "combine": "mean", "pools": "each"}})")
                                                .form);
  EXPECT_TRUE(logits.logits);
  EXPECT_EQ(logits.codes.name, "l");
  EXPECT_EQ(codes.combine, Combine::kSum);
  EXPECT_EQ(codes.pools.kind, PoolsRecipe::Kind::kSizes);
  EXPECT_EQ(codes.pools.sizes, (std::vector<uint32_t>{3, 4}));
  EXPECT_FALSE(codes.logits);
  EXPECT_TRUE(codes.absolute);
  EXPECT_EQ(codes.codes.name, "c");
}

TEST_F(ParseTable, HashedCodesAreCounted) {
  const TableRecipe table = Table(R"({"hashed": {
      "codebook": "b", "words": 7, "positions": 3, "combine": "sum",
      "pools": "one", "seed": 18446744073709551615}})");
  const HashedRecipe* hashed = table.hashed();
  ASSERT_NE(hashed, nullptr);
  EXPECT_EQ(hashed->words, 7u);
  EXPECT_EQ(hashed->positions, 3u);
  EXPECT_EQ(hashed->seed, UINT64_MAX);
  EXPECT_EQ(table.dense(), nullptr);
  EXPECT_EQ(table.define(), nullptr);
}

TEST_F(ParseTable, DpqReadsMethodAndNorm) {
  const auto dpq = std::get<DpqRecipe>(Table(R"({"dpq": {
      "method": "vq", "positions": 2, "query": "q", "keys": "k", "batch_norm": "responses",
      "mean": "m", "variance": "v", "epsilon": 0.5, "combine": "mean"}})")
                                           .form);
  EXPECT_EQ(dpq.response, DpqTraining::Response::kEuclidean);
  EXPECT_EQ(dpq.batch_norm, DpqTraining::BatchNorm::kPerResponse);
  EXPECT_EQ(dpq.epsilon, 0.5);
  EXPECT_TRUE(dpq.additive);
  EXPECT_FALSE(dpq.values);
  EXPECT_EQ(references_, (std::vector<std::string>{"q", "k", "m", "v"}));
}

TEST_F(ParseTable, KdCodesWithoutAKernelAreCodesWithAMean) {
  const auto codes = std::get<CodesRecipe>(
      Table(R"({"kd": {"codebook": "b", "codes": "c", "pools": "each"}})").form);
  EXPECT_EQ(codes.combine, Combine::kMean);
  const auto kd = std::get<KdRecipe>(
      Table(R"({"kd": {"codebook": "b", "codes": "c", "pools": "each", "kernel": "k", "gain": "g",
                       "epsilon": 0.25}})")
          .form);
  EXPECT_EQ(kd.epsilon, 0.25);
  EXPECT_EQ(kd.codes.combine, Combine::kMean);
  EXPECT_EQ(kd.kernel.name, "k");
  EXPECT_EQ(kd.gain->name, "g");
}

TEST_F(ParseTable, DefineHasMapAndLayers) {
  const TableRecipe table = Table(R"({"define": {
      "map": [{"table": "a", "scale": 3}, {"table": "b", "projection": "p", "scale": 2}],
      "entry_layers": 1, "cache_rows": 9,
      "every_layer": {"layout": "out_in", "shuffle": "none", "activation": "relu",
                      "residual": "none"},
      "layers": [{"weight": "w", "groups": 4},
                 {"weight": "x", "norm": "whole", "epsilon": 0.5, "gain": "g", "layout": "in_out",
                  "activation": "none"}]}})");
  const DefineRecipe* define = table.define();
  ASSERT_NE(define, nullptr);
  ASSERT_EQ(define->map.size(), 2u);
  EXPECT_EQ(define->map[0].table.at(0).dense()->values.name, "a");
  EXPECT_EQ(define->map[1].projection->name, "p");
  EXPECT_EQ(define->map[1].scale, 2);
  EXPECT_EQ(define->map[0].scale, 3);
  EXPECT_EQ(define->entry_layers, 1u);
  EXPECT_EQ(define->cache_rows, 9u);
  EXPECT_EQ(define->layers.at(0).layer.groups, 4u);
  EXPECT_FALSE(define->layers[0].layer.norm_gain);
  EXPECT_TRUE(define->layers.at(1).layer.norm_gain);
  EXPECT_EQ(define->layers[0].layout, DefineLayout::kOutIn);
  EXPECT_EQ(define->layers[0].layer.activation, DefineLayer::Activation::kRelu);
  EXPECT_EQ(define->layers[1].layout, DefineLayout::kInOut);
  EXPECT_EQ(define->layers[1].layer.activation, DefineLayer::Activation::kNone);
  EXPECT_EQ(references_, (std::vector<std::string>{"a", "b", "p", "w", "x", "g"}));
}

TEST_F(ParseTable, NamedTensorsAreReferences) {
  EXPECT_EQ(parser_.Named("n").name, "n");
  EXPECT_EQ(references_, std::vector<std::string>{"n"});
}

}  // namespace
}  // namespace kinglet::parse_table_test
