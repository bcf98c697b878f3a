// Recipes that replace the tables of a family's network. With the network's own tensors as
// replacements, the results of the framework's equations (tests/data) do not change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "converters/convert.h"
#include "converters/texts/token_file.h"
#include "format/model_file.h"
#include "tests/converters/converted_streams.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/table_forms.h"

namespace kinglet::convert_tables_test {
namespace {

std::string Data(const std::string& name) { return KINGLET_TEST_DATA "/" + name; }

struct Own {
  const char* name;
  const char* checkpoint;  // in tests/data
  const char* ids;         // in the checkpoint's folder
  const char* golden;
  const char* family;
  const char* tables;
  double tolerance = 1e-6;
};

constexpr const char* kBins = R"({"bins": [
    {"table": "@.emb_layers.0.weight",
     "projection": {"tensor": "@.emb_projs.0", "transpose": false}},
    {"table": "@.emb_layers.1.weight",
     "projection": {"tensor": "@.emb_projs.1", "transpose": false}},
    {"table": "@.emb_layers.2.weight",
     "projection": {"tensor": "@.emb_projs.2", "transpose": false}}#]})";

constexpr Own kOwn[] = {
    {"TransformerXl", "transformer-xl-variants/kimi-base/model.pt", "tokens.txt", "golden_f64.tsv",
     "transformer-xl", R"("word_emb": {"table": "word_emb.emb_layers.0.weight"})"},
    {"TransformerXlTableAlone", "transformer-xl-variants/kimi-base/model.pt", "tokens.txt",
     "golden_f64.tsv", "transformer-xl",
     R"("word_emb.emb_layers.0.weight": "word_emb.emb_layers.0.weight")"},
    {"TransformerXlNarrow", "transformer-xl-variants/kimi-projected/model.pt", "tokens.txt",
     "golden_f64.tsv", "transformer-xl",
     R"("word_emb": {"table": "word_emb.emb_layers.0.weight",
                     "projection": {"tensor": "word_emb.emb_projs.0", "transpose": false}})"},
    {"TransformerXlDivided", "transformer-xl-variants/kimi-divided-pre-norm-zip/model.pt",
     "tokens.txt", "golden_f64.tsv", "transformer-xl", "\"word_emb\": @"},
    {"TransformerXlOneBand", "transformer-xl-variants/kimi-divided-pre-norm-zip/model.pt",
     "tokens.txt", "golden_f64.tsv", "transformer-xl",
     R"("word_emb.emb_layers.1.weight": "word_emb.emb_layers.1.weight")"},
    {"TransformerXlOutput", "transformer-xl-variants/kimi-untied-words-whole-table/model.pt",
     "tokens.txt", "golden_f64.tsv", "transformer-xl",
     R"("crit.out_layers.0.weight": "crit.out_layers.0.weight")"},
    // The softmax has no tensors of its own in the file.
    {"TransfoXlOmitted", "transformer-xl-variants/hf-published-omitted-safetensors", "tokens.txt",
     "golden_f64.tsv", "transfo-xl-hf", "\"transformer.word_emb\": @"},
    {"FairseqAdaptive", "fairseq-variants/args-tied-legacy/model.pt", "tokens.txt",
     "golden_f64.tsv", "fairseq", R"("decoder.embed_tokens": {"bins": [
       {"table": "decoder.embed_tokens.embeddings.0.0.weight",
        "projection": {"tensor": "decoder.embed_tokens.embeddings.0.1.weight", "transpose": false}},
       {"table": "decoder.embed_tokens.embeddings.1.0.weight",
        "projection": {"tensor": "decoder.embed_tokens.embeddings.1.1.weight", "transpose": false}},
       {"table": "decoder.embed_tokens.embeddings.2.0.weight",
        "projection": {"tensor": "decoder.embed_tokens.embeddings.2.1.weight",
         "transpose": false}}]})"},
    {"FairseqShared", "fairseq-variants/cfg-plain-shared/model.pt", "tokens.txt", "golden_f64.tsv",
     "fairseq", R"("decoder.embed_tokens": {"table": "decoder.embed_tokens.weight"})"},
    {"FairseqProjected", "fairseq-variants/args-plain-projected/model.pt", "tokens.txt",
     "golden_f64.tsv", "fairseq",
     R"("decoder.embed_tokens": {"table": "decoder.embed_tokens.weight",
       "projection": {"tensor": "decoder.project_in_dim.weight", "transpose": false}})"},
    {"Micronet", "micronet-small-fp32", "tokens.txt", "golden_f64.tsv", "neurips-micronet",
     R"("embed": {"bins": [{"table": "loss.layers.0.weight"},
       {"table": "loss.layers.1.weight",
        "projection": {"tensor": "embed.projections.0.weight", "transpose": false}},
       {"table": "loss.layers.2.weight",
        "projection": {"tensor": "embed.projections.1.weight", "transpose": false}}]})"},
    {"MicronetTail", "micronet-small-fp32", "tokens.txt", "golden_f64.tsv", "neurips-micronet",
     R"("loss.layers.2.weight": "loss.layers.2.weight")"},
    {"AwdLstm", "recurrent-variants/awd-lstm-split/model.pt", "tokens.txt", "golden_f64.tsv",
     "awd-lstm", R"("encoder": "encoder.weight")"},
    {"PytorchExamples", "recurrent-variants/examples-gru-tied/model.pt", "tokens.txt",
     "golden_f64.tsv", "pytorch-examples", R"("encoder": {"scale": 1, "table": "encoder.weight"})"},
    {"OpenNmt", "opennmt/plain/model_step_7.pt", "pairs.txt", "golden.tsv", "opennmt",
     R"("encoder.embeddings.make_embedding.emb_luts.0":
          "encoder.embeddings.make_embedding.emb_luts.0.weight",
        "decoder.embeddings.make_embedding.emb_luts.0.weight":
          "decoder.embeddings.make_embedding.emb_luts.0.weight")"}};

class OwnTables : public testing::TestWithParam<Own> {};

TEST_P(OwnTables, ChangeNothing) {
  const Own& own = GetParam();
  const TemporaryFolder folder;
  ConvertOptions options;
  options.checkpoint = Data(own.checkpoint);
  const std::filesystem::path path(options.checkpoint);
  const std::string own_folder =
      (std::filesystem::is_directory(path) ? path : path.parent_path()).string() + "/";
  options.output = folder.Path("model.kgl");
  options.golden = own_folder + own.golden;
  options.ids = own_folder + own.ids;
  options.tolerance = own.tolerance;
  std::string tables = own.tables;
  const std::string module =
      std::string(own.family) == "transfo-xl-hf" ? "transformer.word_emb" : "word_emb";
  if (const size_t at = tables.find('@'); at != std::string::npos) tables.replace(at, 1, kBins);
  const char* last = module == "word_emb" ? "" : R"(,
    {"table": "@.emb_layers.3.weight", "projection": {"tensor": "@.emb_projs.3",
                                                      "transpose": false}})";
  if (const size_t at = tables.find('#'); at != std::string::npos) tables.replace(at, 1, last);
  for (size_t at; (at = tables.find('@')) != std::string::npos;) tables.replace(at, 1, module);
  options.recipe = folder.Write("recipe.json", std::string("{\"family\": \"") + own.family +
                                                   "\", \"tables\": {" + tables + "}}");
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->family, own.family);
  EXPECT_GT(*summary->golden_positions, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, OwnTables, testing::ValuesIn(kOwn),
                         [](const auto& instance) { return std::string(instance.param.name); });

// Networks that the original framework trained with other inputs, in the folder that
// KINGLET_CHECKPOINTS names. tests/examples/table_recipes_test.cc has their golden values.
class OriginalInput : public testing::TestWithParam<const char*> {};

TEST_P(OriginalInput, StatesLanesAndForksKeepEveryBit) {
  const char* place = std::getenv("KINGLET_CHECKPOINTS");
  const std::string data = std::string(place == nullptr ? "" : place) + "/" + GetParam();
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "KINGLET_CHECKPOINTS has no " << GetParam();
  const TemporaryFolder folder;
  ConvertOptions options;
  options.checkpoint = data;
  const std::string recipe = std::string(KINGLET_EXAMPLES "/recipes/") + GetParam() + ".json";
  if (std::filesystem::exists(recipe)) options.recipe = recipe;
  options.output = folder.Path("model.kgl");
  std::vector<uint32_t> ids = *ReadIds(data + "/tokens.txt");
  ids.resize(120);
  for (const bool quantised : {false, true}) {
    if (quantised) {
      const auto model = *ModelFile::Open(options.output);
      options.vocabulary =
          folder.Write("vocab.txt", NumberedVocabulary(model->description().vocabulary_size));
      options.bits = 9;
      options.calibration_text = folder.Write("text", NumberedText(ids));
    }
    const auto summary = Convert(options);
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    DistributionsOfEveryBackend(options.output, ids);
    ExpectStatesAndLanesKeepEveryBit(options.output, ids);
  }
  // The unit stays, in a cache smaller than the text's words.
  if (std::string(GetParam()) != "reference-txl-define") return;
  options.define_cache_rows = 7;
  ASSERT_TRUE(Convert(options).ok());
  DistributionsOfEveryBackend(options.output, ids);
  ExpectStatesAndLanesKeepEveryBit(options.output, ids);
}

INSTANTIATE_TEST_SUITE_P(All, OriginalInput,
                         testing::Values("reference-txl-define", "reference-txl-dpq", "dpq-lm-sx"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A Transformer-XL of 51 words, whose softmax shares the embedding's table.
class Replaced : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(Data("transformer-xl-variants/kimi-base/model.pt"),
                          folder_.Path("model.pt"));
    TinyTensors tensors;
    tensors.Floats("book", {8, 4});
    tensors.Floats("wide", {8, 5});
    tensors.Integers("codes", {51, 4}, 8);
    tensors.Integers("fewer", {50, 4}, 8);
    tensors.Floats("query", {51, 16});
    tensors.Floats("keys", {4, 3, 4});
    tensors.Floats("mean", {12});
    tensors.Floats("variance", {12}, 0.3, 1);
    folder_.Write("tables", tensors.Safetensors());
    options_.checkpoint = folder_.Path("model.pt");
    options_.output = folder_.Path("model.kgl");
  }
  Result<ConvertSummary> Converted(const std::string& tables) {
    options_.recipe =
        folder_.Write("recipe.json", R"({"family": "transformer-xl", "sources": {"t": "tables"},
                           "unused": ["t.*"], "tables": {)" +
                                         tables + "}}");
    return Convert(options_);
  }
  static std::string Codes(const std::string& book, const std::string& codes) {
    return R"({"codes": {"combine": "concatenate", "pools": "one",
                         "codebook": "t.)" +
           book + R"(", "codes": "t.)" + codes + "\"}}";
  }

  const TemporaryFolder folder_;
  ConvertOptions options_;
};

TEST_F(Replaced, TheDenseTableIsUnusedOrStaysTheOutputs) {
  for (const std::string name : {"word_emb", "word_emb.emb_layers.0.weight"}) {
    const auto summary = Converted("\"" + name + "\": " + Codes("book", "codes"));
    ASSERT_TRUE(summary.ok()) << summary.status().message();
    const bool whole = name == "word_emb";
    EXPECT_EQ(summary->notes.size(), whole ? 1u : 0u);
    const auto file = *ModelFile::Open(options_.output);
    const auto* embedding = FindBlock<AdaptiveEmbedding>(file->description());
    ASSERT_EQ(embedding->bins.size(), 1u);
    EXPECT_NE(file->tensors()[embedding->bins[0].table].coded(), nullptr);
    EXPECT_EQ(embedding->scale, 4);  // the network's own, sqrt(16)
    const auto* softmax = FindBlock<AdaptiveSoftmax>(file->description());
    EXPECT_EQ(file->tensors()[*softmax->head_table].coded(), nullptr);
  }
}

// The softmax splits the table into four bins, which share the codebook.
TEST_F(Replaced, AnOutputsTableIsCutWhereTheNetworkCutsIt) {
  ASSERT_TRUE(Converted(R"("crit.out_layers.0.weight": )" + Codes("book", "codes")).ok());
  const auto file = *ModelFile::Open(options_.output);
  const auto* softmax = FindBlock<AdaptiveSoftmax>(file->description());
  ASSERT_EQ(softmax->tails.size(), 3u);
  const auto* head = file->tensors()[*softmax->head_table].coded();
  ASSERT_NE(head, nullptr);
  for (const SoftmaxTail& tail : softmax->tails) {
    const auto* coded = file->tensors()[tail.table].coded();
    ASSERT_NE(coded, nullptr);
    EXPECT_EQ(coded->scheme.codebook, head->scheme.codebook);
  }
  DistributionsOfEveryBackend(options_.output, {1, 50, 30, 2, 7, 7, 40});
}

TEST_F(Replaced, RefusalsSayWhatWouldFit) {
  const std::string dpq = R"("word_emb": {"dpq": {"method": "sx", "positions": 4,
      "combine": "concatenate", "query": "t.query", "keys": "t.keys", "values": "t.keys",
      "epsilon": 0.001, "mean": "t.mean", "variance": "t.variance", "batch_norm": )";
  const std::pair<std::string, std::string> cases[] = {
      {"\"word_emb\": " + Codes("wide", "codes"),
       "found shape word_emb: expected [51, 16], found [51, 20]"},
      {"\"word_emb\": " + Codes("book", "fewer"),
       "found shape word_emb: expected [51, 16], found [50, 16]"},
      {"\"word_embs\": " + Codes("book", "codes"), "unused 'word_embs'"},
      {"\"layers.0.dec_attn.layer_norm.weight\": " + Codes("book", "codes"),
       "shape layers.0.dec_attn.layer_norm.weight: expected [16], found [51, 16]"},
      {dpq + R"("choices"}})",
       "tensor 't.mean': expected 3 statistics with batch_norm \"choices\", 12 with \"responses\", "
       "found 12 with \"choices\""},
      {"\"word_emb\": " + Codes("book", "none"), "missing t.none"},
  };
  for (const auto& [tables, message] : cases) {
    const Status status = Converted(tables).status();
    ASSERT_FALSE(status.ok()) << tables;
    EXPECT_NE(status.message().find(message), std::string::npos)
        << status.message() << "\ninstead of " << message;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
  EXPECT_TRUE(Converted(dpq + R"("responses"}})").ok());
}

// A Transformer-XL whose input has bins of three widths, each with a projection. Units in the
// place of two of them give the same results whether they stay or become tables.
TEST(UnitsInBins, GiveTheResultsOfTheirTables) {
  const TemporaryFolder folder;
  std::filesystem::copy(Data("transformer-xl-variants/kimi-untied/model.pt"),
                        folder.Path("model.pt"));
  ConvertOptions options;
  options.checkpoint = folder.Path("model.pt");
  options.output = folder.Path("plain.kgl");
  ASSERT_TRUE(Convert(options).ok());
  const auto plain = *ModelFile::Open(options.output);
  const auto& bins = FindBlock<AdaptiveEmbedding>(plain->description())->bins;
  ASSERT_GE(bins.size(), 3U);
  TinyTensors tensors;
  std::string tables;
  for (const size_t bin : {size_t{0}, bins.size() - 1}) {
    const std::string number = std::to_string(bin);
    tensors.Floats("map" + number, {bins[bin].size, 3});
    tensors.Floats("wide" + number, {3, 6});
    tensors.Floats("out" + number, {9, Cols(plain->tensors()[bins[bin].table].shape)});
    tables += std::string(tables.empty() ? "" : ", ") + "\"word_emb.emb_layers." + number +
              R"(.weight": {"define": {"map": [{"scale": 1, "table": "t.map)" + number +
              R"("}], "entry_layers": 0, "every_layer": {"layout": "in_out", "residual": "none"},
                "layers": [{"groups": 1, "weight": "t.wide)" +
              number + R"(", "activation": "gelu"},
                {"groups": 1, "skip": "concatenate", "order": "input_first", "activation": "none",
                 "weight": "t.out)" +
              number + "\"}]}}";
  }
  folder.Write("tables", tensors.Safetensors());
  options.recipe = folder.Write(
      "recipe.json",
      R"({"family": "transformer-xl", "sources": {"t": "tables"}, "tables": {)" + tables + "}}");
  const std::vector<uint32_t> ids = {1, 47, 30, 2, 7, 7, 40, 47, 46, 3};
  const auto distributions = [&](const std::string& name) {
    options.output = folder.Path(name);
    const auto summary = Convert(options);
    EXPECT_TRUE(summary.ok()) << summary.status().message();
    return summary.ok() ? DistributionsOfEveryBackend(options.output, ids)
                        : LogProbabilitiesOfAll();
  };
  const LogProbabilitiesOfAll of_tables = distributions("tables.kgl");
  options.define_cache_rows = 2;
  const LogProbabilitiesOfAll of_units = distributions("units.kgl");
  const auto kept = *ModelFile::Open(options.output);
  const auto* embedding = FindBlock<AdaptiveEmbedding>(kept->description());
  ASSERT_EQ(embedding->units.size(), 2U);
  EXPECT_EQ(embedding->units[1].first_bin, bins.size() - 1);
  ASSERT_EQ(of_units.size(), of_tables.size());
  for (size_t t = 0; t < of_units.size(); ++t) {
    for (size_t word = 0; word < of_units[t].size(); ++word) {
      EXPECT_NEAR(of_units[t][word], of_tables[t][word], 1e-5);
    }
  }
}

}  // namespace
}  // namespace kinglet::convert_tables_test
