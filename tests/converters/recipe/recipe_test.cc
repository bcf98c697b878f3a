#include "converters/recipe/recipe.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kinglet::recipe_test {
namespace {

Result<Recipe> Parsed(const std::string& text) {
  const auto node = RecipeNode::Parse("r", text);
  EXPECT_TRUE(node.ok()) << node.status().message() << "\n" << text;
  return ParseRecipe(*node);
}

// A valid recipe with these blocks.
std::string With(const std::string& embedding, const std::string& recurrent,
                 const std::string& softmax, const std::string& more = "") {
  return R"({"embedding": )" + embedding + R"(, "recurrent": )" + recurrent + R"(, "softmax": )" +
         softmax + more + "}";
}
const std::string kEmbedding = R"({"scale": 1, "table": "e"})",
                  kLstm = R"({"cell": "lstm", "torch": "lstm", "layers": 1})",
                  kSoftmax = R"({"table": "s"})";
std::string WithEmbedding(const std::string& embedding) { return With(embedding, kLstm, kSoftmax); }
std::string WithTable(const std::string& table) {
  return WithEmbedding(R"({"scale": 1, "table": )" + table + "}");
}
std::string WithRecurrent(const std::string& recurrent) {
  return With(kEmbedding, recurrent, kSoftmax);
}
std::string WithSoftmax(const std::string& softmax) { return With(kEmbedding, kLstm, softmax); }
std::string WithMore(const std::string& more) {
  return With(kEmbedding, kLstm, kSoftmax, ", " + more);
}

TEST(ParseRecipe, NamesEveryTensorOnce) {
  const auto recipe = Parsed(With(
      R"({"scale": 2, "bins": [
           {"table": {"codes": {"codebook": "a", "logits": "b", "pools": "each",
                               "combine": "sum"}}},
           {"table": {"tensor": "c", "rows": [3, 9], "columns": [0, 4], "transpose": true},
            "projection": "d"}]})",
      R"({"cell": "gru", "gates": "rzn", "weighs": "old", "reset": "after",
          "layers": [{"input_weight": "e", "recurrent_bias": "f"}]})",
      R"({"head": {"table": "g", "bias": "h"},
          "clusters": {"weight": "i", "bias": "j", "order": "reversed"},
          "tails": [{"table": "k", "projection": "l"}]})",
      R"(, "cache": {"capacity": 9, "theta": 0.5, "lambda": 0.25, "start": "past_capacity"},
          "unused": ["m*"], "sources": {"n": "n.npy"}, "comment": {"any": ["thing"]})"));
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  EXPECT_EQ(recipe->references,
            (std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}));
  const EmbeddingRecipe& embedding = *recipe->embedding;
  EXPECT_EQ(embedding.scale, 2);
  const auto& codes = std::get<CodesRecipe>(embedding.bins[0].table.form);
  EXPECT_TRUE(codes.logits);
  EXPECT_EQ(codes.pools.kind, PoolsRecipe::Kind::kEach);
  const TensorRef& part = std::get<DenseRecipe>(embedding.bins[1].table.form).values;
  EXPECT_EQ(part, (TensorRef{"c", TensorRef::Range{3, 9}, TensorRef::Range{0, 4}, true}));
  EXPECT_EQ(recipe->recurrent->cell, RecurrentCell::kGru);
  EXPECT_FALSE(recipe->recurrent->layers[0].recurrent_weight);
  EXPECT_TRUE(recipe->softmax->reversed);
  EXPECT_EQ(recipe->cache->start, CacheStart::kPastCapacity);
  EXPECT_EQ(recipe->sources.at("n"), "n.npy");
}

TEST(ParseRecipe, TorchStandsForTheNamesOfItsParameters) {
  const auto one = Parsed(WithRecurrent(R"({"cell": "rnn_relu", "torch": "rnn", "layers": 2})"));
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->recurrent->layers[1].input_weight.name, "rnn.weight_ih_l1");
  EXPECT_EQ(one->recurrent->layers[1].recurrent_bias->name, "rnn.bias_hh_l1");
  const auto several =
      Parsed(WithRecurrent(R"({"cell": "gru", "torch": "rnns.{}.module", "layers": 2})"));
  ASSERT_TRUE(several.ok());
  EXPECT_EQ(several->recurrent->layers[1].recurrent_weight->name, "rnns.1.module.weight_hh_l0");
}

TEST(ParseRecipe, AFamilyNeedsNoBlocks) {
  const auto recipe = Parsed(R"({"family": "x", "passes": [{"pass": "half", "tensors": ["*"]}]})");
  ASSERT_TRUE(recipe.ok());
  EXPECT_EQ(recipe->family, "x");
  EXPECT_FALSE(recipe->embedding);
  EXPECT_EQ(recipe->passes.size(), 1u);
}

TEST(ParseRecipe, PassesAloneNeedNoBlocks) {
  const auto recipe = Parsed(R"({"comment": 1, "passes": [{"pass": "half", "tensors": ["*"]}]})");
  ASSERT_TRUE(recipe.ok()) << recipe.status().message();
  EXPECT_EQ(recipe->family, "");
  EXPECT_FALSE(recipe->embedding);
  EXPECT_EQ(recipe->passes.size(), 1u);
}

TEST(ParseRecipe, WhereTheNetworkIs) {
  using Keys = std::vector<std::string>;
  const auto alone = Parsed(R"({"state_dict": "ema", "prefix": "model."})");
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_EQ(alone->state_dict, Keys{"ema"});
  EXPECT_EQ(alone->prefix, "model.");
  EXPECT_FALSE(alone->embedding);
  EXPECT_EQ(Parsed(R"({"family": "f", "state_dict": ["a.b", "c"]})")->state_dict,
            (Keys{"a.b", "c"}));
  EXPECT_EQ(Parsed(WithMore(R"("prefix": "lm.")"))->prefix, "lm.");
  for (const char* wrong :
       {R"({"state_dict": 3})", R"({"state_dict": [3]})", R"({"prefix": []})"}) {
    EXPECT_EQ(Parsed(wrong).status().code(), KINGLET_INVALID_ARGUMENT) << wrong;
  }
}

TEST(ParseRecipe, EveryRefusalNamesItsPlace) {
  const std::string ref = R"({"tensor": "t", "rows": )";
  const std::pair<std::string, std::string_view> cases[] = {
      {"[]", ": expected an object, found an array"},
      {"{}", ": expected \"embedding\", found none"},
      {R"({"comment": "no passes"})", ": expected \"embedding\", found none"},
      {R"({"passes": [], "sources": {}})", ": expected \"embedding\", found none"},
      {R"({"passes": [], "tables": {}})", ", /tables: expected \"tables\" only with \"family\""},
      {R"({"embeding": {}})", ": expected a key \"comment\", "},
      {R"({"family": ""})", ", /family: expected the name of a family, found none"},
      {R"({"family": 3})", ", /family: expected a text, found 3"},
      {R"({"family": "x", "cache": {}})",
       ", /cache: expected no \"cache\" with \"family\", which names the blocks"},
      {With(kEmbedding, "3", kSoftmax), ", /recurrent: expected an object, found 3"},
      {R"({"embedding": {"scale": 1, "table": "e"}, "recurrent": {}})",
       ": expected \"softmax\", found none"},
      {WithMore(R"("sources": ["a"])"), ", /sources: expected an object, found an array"},
      {WithMore(R"("sources": {"a\nb": 1})"), ", /sources/'a\\x0ab': expected a text, found 1"},
      {WithMore(R"("unused": "x")"), ", /unused: expected an array, found 'x'"},
      {WithMore(R"("unused": ["x", null])"), ", /unused/1: expected a text, found null"},
      {WithMore(R"("passes": {})"), ", /passes: expected an array, found an object"},
      // References.
      {WithTable("true"), ", /embedding/table: expected an object, found true"},
      {WithTable(R"({"tensor": 1})"), ", /embedding/table/tensor: expected a text, found 1"},
      {WithTable(R"({"tensor": "t", "row": [0, 1]})"), ", /embedding/table: expected a key"},
      {WithTable(ref + "3}"), ", /embedding/table/rows: expected an array, found 3"},
      {WithTable(ref + "[3]}"), ", /embedding/table/rows: expected [begin, end], found 1 numbers"},
      {WithTable(ref + "[3, 3]}"),
       ", /embedding/table/rows: expected [begin, end] with begin < end"},
      {WithTable(ref + "[-1, 3]}"),
       ", /embedding/table/rows/0: expected an integer from 0, found -1"},
      {WithTable(ref + "[0, 1e30]}"), ", /embedding/table/rows/1: expected an integer from 0"},
      {WithTable(R"({"tensor": "t", "transpose": "yes"})"),
       ", /embedding/table/transpose: expected true or false, found 'yes'"},
      // Tables.
      {WithTable("{}"),
       ", /embedding/table: expected a tensor or one form of table, found 0 forms"},
      {WithTable(R"({"codes": {}, "dpq": {}})"),
       ", /embedding/table: expected a tensor or one form"},
      {WithTable(R"({"cods": {}})"), ", /embedding/table: expected a key \"codes\""},
      {WithTable(R"({"codes": {}})"),
       ", /embedding/table/codes: expected \"combine\": \"concatenate\", \"sum\" or \"mean\", "
       "found"},
      {WithTable(R"({"codes": {"combine": "sum"}})"), "/codes: expected \"pools\", the codebook's"},
      {WithTable(R"({"codes": {"combine": "sum", "pools": "one"}})"),
       "/codes: expected \"codebook\", found none"},
      {WithTable(R"({"codes": {"codebook": "b", "combine": "sum", "pools": "one"}})"),
       "codes: expected \"codes\", found none"},
      {WithTable(R"({"codes": {"codebook": "b", "combine": "sum", "pools": "one", "codes": "c",
                               "logits": "l"}})"),
       "/codes: expected codes or logits, found both"},
      {WithTable(R"({"codes": {"codebook": "b", "combine": "sum", "pools": "one", "codes": "c",
                               "indices": "pool"}})"),
       "/codes/indices: expected \"indices\" only for codes in several pools (delete it), found "
       "'pool'"},
      {WithTable(
           R"({"codes": {"codebook": "b", "combine": "sum", "pools": "each", "codes": "c"}})"),
       "/codes: expected \"indices\": \"pool\" or \"absolute\", found none"},
      {WithTable(R"({"codes": {"combine": "sum", "codebook": "b", "codes": "c", "pools": "two"}})"),
       "/codes/pools: expected \"one\" or \"each\", found 'two'"},
      {WithTable(
           R"({"codes": {"combine": "sum", "codebook": "b", "codes": "c", "pools": [3, 0]}})"),
       "/codes/pools/1: expected 1 to 4294967295, found 0"},
      {WithTable(R"({"codes": {"codebook": "b", "codes": "c", "combine": "max"}})"),
       "/codes/combine: expected \"concatenate\", \"sum\" or \"mean\", found 'max'"},
      {WithTable(R"({"codes": {"combine": "sum", "pools": [1, 2], "codebook": "b", "codes": "c",
                               "indices": 0}})"),
       "/codes/indices: expected \"pool\" or \"absolute\", found 0"},
      {WithTable(R"({"hashed": {"combine": "sum", "pools": "one", "codebook": "b", "words": 3,
                                "positions": 2}})"),
       "/hashed: expected \"seed\", found none"},
      {WithTable(R"({"hashed": {"combine": "sum", "pools": "one", "codebook": "b", "words": 3,
                                "positions": 2, "seed": -1}})"),
       "/hashed/seed: expected an integer from 0, found -1"},
      {WithTable(R"({"dpq": {}})"), "/dpq: expected \"method\": \"sx\" or \"vq\", found none"},
      {WithTable(R"({"dpq": {"method": "SX"}})"), "/dpq/method: expected \"sx\""},
      {WithTable(R"({"dpq": {"method": "sx"}})"),
       "/dpq: expected \"batch_norm\": \"none\", \"choices\" or \"responses\", found none"},
      {WithTable(R"({"dpq": {"method": "sx", "batch_norm": "choices"}})"),
       "/dpq: expected \"epsilon\", what the batch norm adds to the variance: 1e-05 (PyTorch) or "
       "0.001 (TensorFlow, Keras), unless the program sets another, found none"},
      {WithTable(R"({"dpq": {"method": "sx", "batch_norm": "none", "epsilon": 0.1}})"),
       "/dpq/epsilon: expected \"epsilon\" only with a batch norm (delete it), found 0.1"},
      {WithTable(R"({"dpq": {"method": "sx", "batch_norm": "none"}})"),
       "/dpq: expected \"combine\": \"concatenate\" or \"mean\", found none"},
      {WithTable(R"({"dpq": {"method": "sx", "batch_norm": "none", "combine": "sum"}})"),
       "/dpq/combine: expected \"concatenate\" or \"mean\", found 'sum'"},
      {WithTable(R"({"dpq": {"method": "sx", "batch_norm": "none", "combine": "mean"}})"),
       "/dpq: expected \"positions\""},
      {WithTable(R"({"dpq": {"method": "sx", "batch_norm": "none", "combine": "mean",
                             "positions": 0}})"),
       "/dpq/positions: expected 1 or more, found 0"},
      {WithTable(R"({"dpq": {"method": "sx", "batch_norm": "none", "combine": "mean",
                             "positions": 2, "query": "q", "keys": "k"}})"),
       "/dpq: expected \"values\", found none"},
      {WithTable(R"({"kd": {"codebook": "b", "codes": "c", "aggregator": "rnn"}})"),
       "/kd/aggregator: expected \"mean\" or \"mean_linear\", found 'rnn'"},
      {WithTable(R"({"kd": {"codebook": "b", "codes": "c", "aggregator": "mean_linear"}})"),
       "/kd: expected \"kernel\", which \"mean_linear\" needs, found none"},
      {WithTable(R"({"kd": {"codebook": "b", "codes": "c", "aggregator": "mean", "kernel": "k"}})"),
       "/kd: expected \"aggregator\": \"mean_linear\", as there is a kernel, found \"mean\""},
      {WithTable(R"({"kd": {"codebook": "b", "codes": "c", "pools": "one", "bias": "k"}})"),
       "/kd/bias: expected \"bias\" only with \"kernel\" (delete it, or add the kernel), found "
       "'k'"},
      {WithTable(R"({"kd": {"codebook": "b", "pools": "one", "codes": "c", "logits": "l"}})"),
       "/kd: expected codes or logits, found both"},
      {WithTable(R"({"kd": {"codebook": "b", "codes": "c"}})"), "/kd: expected \"pools\""},
      {WithTable(R"({"kd": {"codebook": "b", "pools": "one", "codes": "c", "kernel": "k",
                            "mean": "m", "variance": "v"}})"),
       "/kd: expected \"epsilon\", what the batch norm adds"},
      {WithTable(R"({"kd": {"codebook": "b", "pools": "one", "codes": "c", "kernel": "k",
                            "epsilon": 1}})"),
       "/kd/epsilon: expected \"epsilon\" only with a batch norm (delete it), found 1"},
      {WithTable(R"({"define": {"map": "m", "layers": []}})"), "/define/map: expected an array"},
      {WithTable(R"({"define": {"map": [{"table": "m"}], "layers": []}})"),
       "/define/map/0: expected \"scale\", what multiplies every vector: 1, or, "},
      {WithTable(R"({"define": {"map": [], "map_scale": 1, "layers": []}})"),
       "expected a key \"map\""},
      {WithTable(R"({"define": {"map": [], "every_layer": {"weight": "w"}, "layers": []}})"),
       "/define/every_layer: expected a key \"weights\""},
      {WithTable(R"({"define": {"map": [], "layers": [{"layers": 1}]}})"),
       "/define/layers/0: expected a key \"weight\""},
      {WithTable(
           R"({"define": {"map": [{"table": {"define": {"map": [], "layers": []}}}],
                       "layers": []}})"),
       "/define/map/0/table: expected a table of another form than \"define\", found"},
      {WithTable(R"({"define": {"map": [], "layers": [{"layout": "in_out", "activation": "none",
                                                        "residual": "none"}]}})"),
       "/define/layers/0: expected \"weight\", found none"},
      {WithTable(R"({"define": {"map": [], "layers": [{"layout": "in_out", "activation": "none",
                                    "residual": "none", "weight": "w", "gain": "g"}]}})"),
       "/define/layers/0: expected \"norm\", as the layer has a gain or an offset, found none"},
      {WithTable(R"({"define": {"map": [], "layers": [{"layout": "in_out", "activation": "none",
          "residual": "none", "weight": "w", "skip": "mix", "order": "input_first"}]}})"),
       "/define: expected \"entry_layers\", how many layers make what skips bring back: 0"},
      {WithTable(R"({"define": {"map": [], "layers": [{"layout": "in_out", "activation": "none",
                                                        "weight": "w", "skip": "mixer"}]}})"),
       "/define/layers/0/skip: expected \"none\", \"concatenate\" or \"mix\", found 'mixer'"},
      // Blocks.
      {WithEmbedding(R"({"bins": [], "table": "e"})"), ", /embedding: expected a key \"scale\""},
      {WithEmbedding(R"({"scale": 1, "bins": [{}]})"),
       ", /embedding/bins/0: expected \"table\", found none"},
      {WithEmbedding(R"({"table": "e"})"),
       ", /embedding: expected \"scale\", what multiplies every vector: 1, or, as in Transformers"},
      {WithEmbedding(R"({"table": "e", "scale": "2"})"), "/embedding/scale: expected a number"},
      {WithRecurrent(R"({"cell": "LSTM"})"), "/recurrent/cell: expected \"lstm\", \"gru\""},
      {WithRecurrent(R"({"torch": "x", "layers": 1})"),
       "/recurrent: expected \"cell\": \"lstm\", \"gru\", \"rnn_tanh\", \"rnn_relu\" or \"qrnn\", "
       "found none"},
      {WithRecurrent(R"({"cell": "lstm", "torch": "x", "layers": 0})"),
       "/recurrent/layers: expected 1 to 4096"},
      {WithRecurrent(R"({"cell": "lstm", "torch": "x", "layers": 18446744073709551615})"),
       "/recurrent/layers: expected 1 to 4096, found 18446744073709551615"},
      {WithRecurrent(R"({"cell": "lstm", "torch": "x", "layers": []})"),
       "/recurrent/layers: expected an integer"},
      {WithRecurrent(R"({"cell": "lstm", "gates": "ifgo", "forget_bias": 0, "projection": true,
                         "layers": []})"),
       "/recurrent/projection: expected \"projection\" of each layer, as without \"torch\""},
      {WithRecurrent(R"({"cell": "qrnn", "torch": "x", "layers": 1})"),
       "/recurrent/torch: expected no \"torch\" for a QRNN, which torch.nn does not have (list its "
       "tensors in \"layers\"), found 'x'"},
      {WithRecurrent(R"({"cell": "lstm", "torch": "x", "layers": 1, "gates": "ifgo"})"),
       "/recurrent/gates: expected no such key with \"torch\", which fixes the gates (delete it), "
       "found 'ifgo'"},
      {WithRecurrent(R"({"cell": "rnn_tanh", "layers": 2})"),
       "/recurrent/layers: expected an array, found 2"},
      {WithRecurrent(R"({"cell": "rnn_tanh", "layers": [{"input_bias": "b"}]})"),
       "/recurrent/layers/0: expected \"input_weight\", found none"},
      {WithSoftmax(R"({"table": "s", "tails": [], "clusters": {"weight": "c"}})"),
       ", /softmax: expected a key \"head\", \"clusters\" or \"tails\", found 'table'"},
      {WithSoftmax(R"({"tails": []})"), ", /softmax: expected \"clusters\", found none"},
      {WithSoftmax(R"({"tails": [], "clusters": {"weight": "c"}})"),
       "/softmax/clusters: expected \"order\": \"forward\" or \"reversed\", found none"},
      {WithSoftmax(R"({"head": {"table": "h", "projection": "p"}, "tails": [],
                       "clusters": {"weight": "c", "order": "forward"}})"),
       "/softmax/clusters: expected \"reads\": \"projected\" or \"hidden\", found none"},
      {WithSoftmax(R"({"head": {"table": "h"}, "tails": [],
                       "clusters": {"weight": "c", "order": "forward", "reads": "hidden"}})"),
       "/softmax/clusters/reads: expected no \"reads\", as the head has no projection (delete it), "
       "found 'hidden'"},
      {WithSoftmax(R"({"tails": {}, "clusters": {"weight": "c", "order": "forward"}})"),
       "/softmax/tails: expected an array"},
      {WithSoftmax(
           R"({"tails": [{"bias": "b"}], "clusters": {"weight": "c", "order": "forward"}})"),
       "/softmax/tails/0: expected \"table\", found none"},
      {WithSoftmax(R"({"tails": [], "clusters": {"weight": "c", "order": "up"}})"),
       "/softmax/clusters/order: expected \"forward\" or \"reversed\", found 'up'"},
      {WithMore(R"("cache": {"capacity": 2, "theta": 1})"), ", /cache: expected \"lambda\""},
      {WithMore(R"("cache": {"capacity": 2, "theta": 1, "lambda": 0.5})"),
       ", /cache: expected \"start\": \"first_pair\" or \"past_capacity\", found none"},
      {R"({"embedding": {"scale": 1, "table": "e"}, "classifier": {"weight": "w"}})",
       ", /classifier: expected \"padding\": the id of the word that pads lists, or "
       "\"none\", found none"},
      {R"({"embedding": {"scale": 1, "table": "e"}, "classifier": {"padding": "no"}})",
       ", /classifier/padding: expected the id of the word"},
      {R"({"embedding": {"scale": 1, "table": "e"}, "classifier": {"padding": 0, "weight": "w",
           "hidden": {"input_norm": {"mean": "m", "variance": "v"}}}})",
       "/classifier/hidden/input_norm: expected \"epsilon\", what the batch norm adds"},
      {WithMore(R"("cache": {"capacity": 2.5, "theta": 1, "lambda": 1})"),
       ", /cache/capacity: expected an integer from 0, found 2.5"},
      {WithMore(R"("cache": {"capacity": 2, "theta": [], "lambda": 1})"),
       ", /cache/theta: expected a number, found an array"},
  };
  for (const auto& [text, refusal] : cases) {
    const auto recipe = Parsed(text);
    ASSERT_FALSE(recipe.ok()) << text;
    EXPECT_EQ(recipe.status().code(), KINGLET_INVALID_ARGUMENT);
    EXPECT_NE(recipe.status().message().find(refusal), std::string::npos)
        << recipe.status().message() << "\ninstead of " << refusal;
    EXPECT_EQ(recipe.status().message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace kinglet::recipe_test
