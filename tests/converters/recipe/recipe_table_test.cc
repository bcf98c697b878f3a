#include "converters/recipe/recipe_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/converters/recipe/recipe_source.h"

namespace kinglet::recipe_table_test {
namespace {

class RecipeTableTest : public testing::Test {
 protected:
  Result<RecipeTable> Make(const std::string& json) const {
    return MakeTable(TableOf(json), Network(weights_), 2);
  }
  std::vector<float> Full(const std::string& json) const {
    const auto table = Make(json);
    EXPECT_TRUE(table.ok()) << table.status().message();
    return table.ok() ? FullTable(*table) : std::vector<float>();
  }
  const CheckpointTensors weights_ = {
      FloatTensor("dense", {2, 3}, {1, 2, 3, 4, 5, 6}),
      // Sub-vectors 0 to 3 of two values.
      FloatTensor("book", {4, 2}, {0, 1, 10, 11, 20, 21, 30, 31}),
      FloatTensor("book3", {2, 2, 2}, {0, 1, 10, 11, 20, 21, 30, 31}),
      FloatTensor("vector", {3}, {1, 2, 3}), IntegerTensor("one_pool", {3, 2}, {0, 3, 2, 2, 1, 0}),
      IntegerTensor("each", {3, 2}, {0, 1, 1, 1, 0, 0}),
      IntegerTensor("absolute", {3, 2}, {0, 3, 1, 3, 0, 2}), IntegerTensor("sizes", {1, 2}, {0, 2}),
      IntegerTensor("negative", {1, 2}, {0, -1}),
      IntegerTensor("huge", {1, 2}, {0, int64_t{1} << 62}), IntegerTensor("empty", {0, 2}, {}),
      IntegerTensor("three", {1, 3}, {0, 0, 0}), FloatTensor("real", {1, 2}, {0, 1}),
      FloatTensor("logits", {2, 2, 2}, {0.5F, 0.25F, -1, 2, 1, 1, -3, -2}),
      FloatTensor("kernel", {3, 2}, {1, 0, 0, 1, 1, 1}), FloatTensor("bias", {3}, {100, 200, 300}),
      FloatTensor("query", {2, 4}, {1, 0, 0, 1, 0, 2, -1, 0}),
      FloatTensor("keys", {1, 2, 2}, {1, 0, 0, 1}),
      FloatTensor("values", {1, 2, 3}, {1, 2, 3, 4, 5, 6}),
      FloatTensor("values4", {1, 4, 3}, std::vector<float>(12, 1)),
      FloatTensor("mean", {2}, {0, 10}), FloatTensor("variance", {2}, {1, 1}),
      FloatTensor("weight", {2, 3}, {1, 0, 1, 0, 1, 1}),
      FloatTensor("weight_rows", {2, 2}, {0, 1, 2, 0})};
};

TEST_F(RecipeTableTest, EveryFormExpandsToWhatItsEquationSays) {
  const std::string codes = R"({"codes": {"codebook": "book", "combine": "concatenate", )";
  const std::string other = R"({"codes": {"codebook": "book", "combine": )";
  const struct {
    std::string json;
    std::vector<float> values;
  } cases[] = {
      {R"("dense")", {1, 2, 3, 4, 5, 6}},
      {R"({"tensor": "dense", "rows": [1, 2]})", {4, 5, 6}},
      {codes + R"("codes": "one_pool", "pools": "one"}})",
       {0, 1, 30, 31, 20, 21, 20, 21, 10, 11, 0, 1}},
      {codes + R"("codes": "one_pool", "pools": [4], "indices": "pool"}})",
       {0, 1, 30, 31, 20, 21, 20, 21, 10, 11, 0, 1}},
      {codes + R"("codes": "each", "pools": "each", "indices": "pool"}})",
       {0, 1, 30, 31, 10, 11, 30, 31, 0, 1, 20, 21}},
      {R"({"codes": {"codebook": "book3", "codes": "each", "pools": "each", "indices": "pool",
                     "combine": "concatenate"}})",
       {0, 1, 30, 31, 10, 11, 30, 31, 0, 1, 20, 21}},
      {codes + R"("codes": "absolute", "pools": "each", "indices": "absolute"}})",
       {0, 1, 30, 31, 10, 11, 30, 31, 0, 1, 20, 21}},
      {codes + R"("codes": "sizes", "pools": [1, 3], "indices": "pool"}})", {0, 1, 30, 31}},
      {other + R"("sum", "codes": "each", "pools": "each", "indices": "pool"}})",
       {30, 32, 40, 42, 20, 22}},
      {other + R"("mean", "codes": "each", "pools": "each", "indices": "pool"}})",
       {15, 16, 20, 21, 10, 11}},
      // Of equal logits the first one counts.
      {codes + R"("logits": "logits", "pools": "each"}})", {0, 1, 30, 31, 0, 1, 30, 31}},
      {R"({"kd": {"codebook": "book", "codes": "each", "pools": "each"}})",
       {15, 16, 20, 21, 10, 11}},
      {R"({"kd": {"codebook": "book", "codes": "each", "pools": "each",
                 "kernel": "kernel", "bias": "bias"}})",
       {115, 216, 331, 120, 221, 341, 110, 211, 321}},
      // The keys are unit vectors, so the query's larger number chooses.
      {R"({"dpq": {"query": "query", "keys": "keys", "values": "values", "positions": 2,
                   "method": "sx", "combine": "concatenate", "batch_norm": "none"}})",
       {1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6}},
      // The batch norm subtracts 10 from the second choice, which never wins.
      {R"({"dpq": {"query": "query", "keys": "keys", "values": "values", "positions": 2,
                   "mean": "mean", "variance": "variance", "epsilon": 0.5, "combine": "mean",
                   "method": "sx", "batch_norm": "choices"}})",
       {1, 2, 3, 1, 2, 3}},
      {R"({"dpq": {"method": "vq", "query": "query", "keys": "keys", "positions": 2,
                   "batch_norm": "none", "combine": "concatenate"}})",
       {1, 0, 0, 1, 0, 1, 0, 1}},
      {R"({"define": {"map": [{"table": {"tensor": "dense", "columns": [0, 2]}, "scale": 2}],
                      "layers": [{"weight": "weight", "layout": "in_out", "activation": "none",
                                  "residual": "none"}]}})",
       {2, 4, 6, 8, 10, 18}},
      {R"({"define": {"map": [{"table": {"codes": {"codebook": "book", "codes": "each",
                                                       "pools": "each",
                                                   "indices": "pool", "combine": "sum"}},
                               "scale": 1}],
                      "layers": [{"weight": "weight_rows", "layout": "out_in",
                                  "residual": "none", "activation": "relu"}]}})",
       {32, 60, 42, 80, 22, 40}},
  };
  for (const auto& [json, values] : cases) EXPECT_EQ(Full(json), values) << json;
}

// Known values of XXH64: of {word, position} as two little-endian 32-bit numbers.
TEST_F(RecipeTableTest, HashedCodesAreXxh64) {
  const std::string json =
      R"({"hashed": {"codebook": "book", "words": 2, "positions": 1, "seed": 0, "pools": "one",
                     "combine": "concatenate"}})";
  const auto table = Make(json);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(table->seed, 0u);
  EXPECT_EQ(table->shape, (Shape{2, 2}));
  // XXH64 of eight zero bytes is 0x34c96acdcadb1bbb, which is 3 modulo 4.
  EXPECT_EQ(FullTable(*table)[0], 30);
  // A pool may have more sub-vectors than codes select.
  EXPECT_EQ(Full(R"({"hashed": {"codebook": "book", "words": 1, "positions": 2, "seed": 7,
                                "combine": "concatenate", "pools": [1, 3]}})")
                .size(),
            4u);
  EXPECT_EQ(Full(R"({"define": {"map": [{"table": {"hashed": {"codebook": "book", "words": 2,
                    "positions": 1, "seed": 0, "pools": "one", "combine": "sum"}}, "scale": 1}],
                    "layers": [{"weight": "weight", "layout": "in_out", "activation": "none",
                                "residual": "none"}]}})")[0],
            30);
}

TEST_F(RecipeTableTest, KdCodesWithADenseLayerBringTheirProjection) {
  const auto table =
      Make(R"({"kd": {"codebook": "book", "codes": "each", "pools": "each", "kernel": "kernel"}})");
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(table->projection.size(), 6u);
  ASSERT_TRUE(table->coded);
  EXPECT_EQ(table->coded->positions, 2u);
}

TEST_F(RecipeTableTest, RefusalsNameTheTensor) {
  const std::string codes = R"({"codes": {"codebook": "book", "combine": "concatenate", "codes": )";
  const std::string hashed = R"({"hashed": {"codebook": "book", "seed": 1, "combine": "sum", )";
  const std::string dpq =
      R"({"dpq": {"method": "sx", "combine": "mean", "query": "query", "keys": "keys", )";
  const std::pair<std::string, std::string> cases[] = {
      {R"("vector")", "tensor 'vector': expected a table [words, width], found [3]"},
      {codes + R"("one_pool", "pools": "each", "indices": "pool"}})",
       "tensor 'one_pool': expected at position 1 codes from 0 to 1, found 3 of word 0"},
      {codes + R"("each", "pools": "each", "indices": "absolute"}})",
       "tensor 'each': expected at position 1 codes from 2 to 3, found 1 of word 0"},
      {codes + R"("negative", "pools": "one"}})",
       "tensor 'negative': expected at position 1 codes from 0 to 3, found -1"},
      {codes + R"("huge", "pools": "one"}})",
       "codes from 0 to 3, found 4611686018427387904 of word 0"},
      {codes + R"("empty", "pools": "one"}})",
       "tensor 'empty': expected codes [words, positions], found [0, 2]"},
      {codes + R"("vector", "pools": "one"}})", "vector"},
      {codes + R"("real", "pools": "one"}})", "real"},
      {codes + R"("three", "pools": "each", "indices": "pool"}})",
       "tensor 'book': expected a multiple of 3 sub-vectors, as many for each position, "
       "found 4"},
      {codes + R"("each", "pools": [1, 1, 2], "indices": "pool"}})",
       "tensor 'book': expected 2 pools, one for each"},
      {codes + R"("each", "pools": [1, 4294967295], "indices": "pool"}})",
       "tensor 'book': expected 4294967296 sub-vectors in all pools, found 4"},
      {R"({"codes": {"codebook": "vector", "codes": "each", "combine": "sum", "pools": "one"}})",
       "tensor 'vector': expected [sub-vectors, length] or [positions, choices, length], found "
       "[3]"},
      {R"({"codes": {"codebook": "book3", "codes": "one_pool", "combine": "sum", "pools": "one"}})",
       "tensor 'book3': expected [sub-vectors, length] or [1, choices, length] for one pool, "
       "found 2 positions"},
      {R"({"codes": {"codebook": "book3", "codes": "three", "combine": "sum", "pools": "each",
                     "indices": "pool"}})",
       "tensor 'book3': expected 3 positions, as the codes have, found 2"},
      {R"({"codes": {"codebook": "book", "logits": "dense", "combine": "sum", "pools": "one"}})",
       "tensor 'dense': expected logits [words, positions, choices], found [2, 3]"},
      {hashed + R"("pools": "one", "words": 0, "positions": 1}})",
       "tensor 'book': expected 1 to 2147483647 words and 1 to "},
      {hashed + R"("pools": "one", "words": 18446744073709551615, "positions": 1}})",
       "2147483647 words and 1 to "},
      {hashed + R"("pools": "one", "words": 1, "positions": 18446744073709551615}})",
       "2147483647 words and 1 to "},
      {hashed + R"("words": 9, "positions": 3, "pools": "each"}})", "a multiple of 3 sub-vectors"},
      {R"({"define": {"map": [{"table": {"hashed": {"codebook": "book", "seed": 1,
                                                        "words": 2147483647,
          "positions": 1048576, "pools": "one", "combine": "sum"}}, "scale": 1}], "layers": []}})",
       "tensor 'book': expected a table of at most 2147483647 entries"},
      {dpq + R"("positions": 3, "values": "values", "batch_norm": "none"}})", "dpq"},
      {dpq + R"("positions": 18446744073709551615, "values": "values",
                "batch_norm": "none"}})",
       "dpq"},
      {dpq + R"("positions": 2, "values": "values", "batch_norm": "choices", "epsilon": 0.001}})",
       "batch norm"},
      {dpq + R"("positions": 2, "values": "values", "batch_norm": "none", "mean": "mean"}})",
       "batch norm mean"},
      {dpq + R"("positions": 2, "values": "values", "batch_norm": "choices", "mean": "mean",
                "variance": "mean", "epsilon": -1}})",
       "dpq"},
      {dpq + R"("positions": 2, "values": "values", "batch_norm": "choices", "epsilon": 0.001,
                "mean": "vector", "variance": "variance"}})",
       "statistics with batch_norm"},
      {dpq + R"("positions": 2, "values": "values4", "batch_norm": "none"}})",
       "tensor 'values4': expected values [1, 2, length], as the keys, found [1, 4, 3]"},
      {R"({"dpq": {"query": "query", "keys": "book", "positions": 2, "method": "vq",
                   "batch_norm": "none", "combine": "mean"}})",
       "tensor 'book': expected keys [2 or 1, choices, length], found [4, 2]"},
      {R"({"dpq": {"query": "vector", "keys": "keys", "positions": 2, "method": "vq",
                   "batch_norm": "none", "combine": "mean"}})",
       "tensor 'vector': expected query vectors [words, width], found [3]"},
      {R"({"kd": {"codebook": "book", "codes": "each", "pools": "each", "kernel": "dense"}})",
       "tensor 'dense': expected [width, 2], found [2, 3]"},
      {R"({"kd": {"codebook": "book", "codes": "each", "pools": "each",
                 "kernel": "kernel", "bias": "mean"}})",
       "tensor 'mean': expected shape [3], found [2]"},
      {R"({"kd": {"codebook": "book", "codes": "sizes", "pools": [1, 3], "kernel": "kernel"}})",
       "kd"},
      {R"({"define": {"map": [], "layers": []}})", "define"},
      {R"({"define": {"map": [{"table": "dense", "scale": 1, "projection": "weight_rows"}],
                      "layers": []}})",
       "tensor 'weight_rows': expected [width, 3], found [2, 2]"},
      {R"({"define": {"map": [{"table": "dense", "scale": 1}], 
                      "layers": [{"weight": "vector", "layout": "in_out", "shuffle": "none",
                                  "activation": "none", "residual": "none"}]}})",
       "tensor 'vector': expected 1 matrices [3, outputs] for 3 inputs in 1 groups, found [3]"},
      {R"({"define": {"map": [{"table": "dense", "scale": 1}],
                      "layers": [{"weight": "weight", "groups": 0,
                                  "layout": "in_out", "shuffle": "none",
                                  "activation": "none", "residual": "none"}]}})",
       "tensor 'weight': expected 0 matrices"},
      {R"({"define": {"map": [{"table": "dense", "scale": 1}],
                      "layers": [{"weight": "weight", "groups": 2,
                                  "layout": "in_out", "shuffle": "none",
                                  "activation": "none", "residual": "none"}]}})",
       "for 3 inputs in 2 groups"},
      {R"({"define": {"map": [{"table": {"tensor": "dense", "columns": [0, 2]}, "scale": 1}],
                      "entry_layers": 3,
                      "layers": [{"weight": "weight", "bias": "mean",
                                  "layout": "in_out", "shuffle": "none",
                                  "activation": "none", "residual": "none"}]}})",
       "define"},
  };
  for (const auto& [json, refusal] : cases) {
    const auto table = Make(json);
    ASSERT_FALSE(table.ok()) << json;
    EXPECT_NE(table.status().message().find(refusal), std::string::npos)
        << table.status().message() << "\ninstead of " << refusal;
    EXPECT_EQ(table.status().message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace kinglet::recipe_table_test
