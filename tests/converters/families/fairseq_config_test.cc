#include "converters/families/fairseq_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/families/families.h"
#include "tests/converters/fairseq_nodes.h"

namespace kinglet::fairseq_config_test {
namespace {

using Words = std::vector<uint32_t>;

FairseqConfig Read(FairseqNodes& nodes) {
  const auto config = ReadFairseqConfig(nodes.Args());
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? *config : FairseqConfig();
}

void ExpectRefused(FairseqNodes& nodes, const std::string& part,
                   kinglet_status code = KINGLET_INVALID_CHECKPOINT) {
  for (const bool newer : {false, true}) {
    const Status status = ReadFairseqConfig(newer ? nodes.Config() : nodes.Args()).status();
    EXPECT_EQ(status.code(), code) << part;
    EXPECT_NE(status.message().find((newer ? "cfg.model." : "args.") + part), std::string::npos)
        << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

TEST(FairseqConfig, ArgsAndCfgSayTheSame) {
  FairseqNodes nodes;
  for (const PickleNode* root : {&nodes.Args(), &nodes.Config()}) {
    const auto config = ReadFairseqConfig(*root);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config->layers, 2u);
    EXPECT_EQ(config->width, 16u);
    EXPECT_EQ(config->input_width, 16u);
    EXPECT_EQ(config->output_width, 16u);
    EXPECT_EQ(config->inner, 20u);
    EXPECT_EQ(config->heads, 4u);
    EXPECT_EQ(config->positions, 24u);
    EXPECT_TRUE(config->has_positions);
    EXPECT_FALSE(config->learned_positions);
    EXPECT_TRUE(config->scaled);
    EXPECT_TRUE(config->final_norm);
    EXPECT_EQ(config->input.cutoffs, (Words{12, 26}));
    EXPECT_EQ(config->input.factor, 2u);
    EXPECT_EQ(config->output.cutoffs, (Words{12, 26}));
    EXPECT_TRUE(config->tied_tables);
    EXPECT_TRUE(config->tied_projections);
  }
}

TEST(FairseqConfig, WithoutHyperParameters) {
  ModuleNodes nodes;
  PickleDict nothing;
  EXPECT_NE(ReadFairseqConfig(*nodes.Add(nothing)).status().message().find("found neither"),
            std::string::npos);
  nothing.items.emplace_back(nodes.Add(std::string("cfg")), nodes.Add(PickleDict{}));
  EXPECT_NE(ReadFairseqConfig(*nodes.Add(nothing)).status().message().find("'cfg' without 'model'"),
            std::string::npos);
  // `args` that is not an object has no hyper-parameters.
  for (const FairseqNodes::Value& value :
       {FairseqNodes::Value(int64_t{3}), FairseqNodes::Value(PickleObject{})}) {
    PickleDict dict;
    dict.items.emplace_back(nodes.Add(std::string("args")), nodes.Add(value));
    EXPECT_NE(ReadFairseqConfig(*nodes.Add(dict)).status().message().find("args.decoder_layers"),
              std::string::npos);
  }
  EXPECT_FALSE(ReadFairseqConfig(*nodes.Add(int64_t{3})).ok());
}

// fairseq's two rules for the names of older versions, in the order in which it applies them.
TEST(FairseqConfig, FinalNorm) {
  const struct {
    std::vector<std::pair<const char*, bool>> given;
    bool norm, tied_projections;
  } cases[] = {
      {{{"no_decoder_final_norm", true}}, false, false},
      {{{"no_decoder_final_norm", false}}, true, false},
      {{{"no_tie_adaptive_proj", false}}, false, true},
      {{{"no_tie_adaptive_proj", true}}, false, false},
      {{{"decoder_final_norm", true}}, true, false},
      {{{"decoder_final_norm", false}}, false, false},
      {{{"no_tie_adaptive_proj", false}, {"decoder_final_norm", true}}, true, true},
      {{{"no_decoder_final_norm", true}, {"decoder_final_norm", true}}, true, false},
  };
  for (const auto& [given, norm, tied_projections] : cases) {
    FairseqNodes nodes;
    nodes.Remove("tie_adaptive_proj");
    for (const auto& [name, value] : given) nodes.Set(name, value);
    EXPECT_EQ(Read(nodes).final_norm, norm) << given[0].first;
    EXPECT_EQ(Read(nodes).tied_projections, tied_projections) << given[0].first;
  }
}

TEST(FairseqConfig, LongestBlocks) {
  FairseqNodes nodes;
  nodes.Set("max_target_positions", int64_t{7});
  EXPECT_EQ(Read(nodes).positions, 7u);
  nodes.Remove("max_target_positions");
  EXPECT_EQ(Read(nodes).positions, 24u);
  nodes.Remove("tokens_per_sample");
  EXPECT_EQ(Read(nodes).positions, 1024u);
  nodes.Set("max_target_positions", int64_t{0});
  ExpectRefused(nodes, "max_target_positions: expected 1 to 1048576, found 0");
}

TEST(FairseqConfig, FormsOfLists) {
  for (const char* text : {"12,26", "12, 26", "[12, 26]", "(12,26)", "12,26,"}) {
    FairseqNodes nodes;
    nodes.Set("adaptive_input_cutoff", std::string(text));
    EXPECT_EQ(Read(nodes).input.cutoffs, (Words{12, 26})) << text;
  }
  FairseqNodes nodes;
  nodes.SetList("adaptive_input_cutoff", {int64_t{12}, int64_t{26}});
  EXPECT_EQ(Read(nodes).input.cutoffs, (Words{12, 26}));

  for (const char* text : {"12;26", "a", "12,,26", ",12", "26,12", "12,12", "0,12", "-1,2",
                           "99999999999", "99999999999999999999"}) {
    nodes.Set("adaptive_input_cutoff", std::string(text));
    ExpectRefused(nodes, "adaptive_input_cutoff: expected ascending words from 1");
  }
  nodes.SetList("adaptive_input_cutoff", {int64_t{12}, std::string("26")});
  ExpectRefused(nodes, "adaptive_input_cutoff");
  nodes.Set("adaptive_input_cutoff", 12.5);
  ExpectRefused(nodes, "adaptive_input_cutoff");
  for (const FairseqNodes::Value& absent :
       {FairseqNodes::Value(PickleNone{}), FairseqNodes::Value(std::string())}) {
    nodes.Set("adaptive_input_cutoff", absent);
    ExpectRefused(nodes, "adaptive_input_cutoff: expected a list, as adaptive_input is set");
  }
  PickleList many;
  PickleNode one{int64_t{1}};
  many.items.assign(5000, &one);
  nodes.Set("adaptive_input_cutoff", many);
  ExpectRefused(nodes, "adaptive_input_cutoff");
}

TEST(FairseqConfig, Sizes) {
  for (const char* name :
       {"decoder_layers", "decoder_embed_dim", "decoder_ffn_embed_dim", "decoder_attention_heads",
        "decoder_input_dim", "decoder_output_dim", "adaptive_input_factor"}) {
    for (const int64_t value : {int64_t{0}, int64_t{-3}, int64_t{1} << 40}) {
      FairseqNodes nodes;
      nodes.Set(name, value);
      ExpectRefused(nodes, name);
    }
    FairseqNodes nodes;
    nodes.Set(name, std::string("16"));
    ExpectRefused(nodes, std::string(name) + ": expected a number, found");
  }
  for (const char* name : {"decoder_layers", "decoder_embed_dim", "decoder_ffn_embed_dim"}) {
    FairseqNodes nodes;
    nodes.Remove(name);
    ExpectRefused(nodes, std::string(name) + ": expected a number, found none");
  }
  FairseqNodes nodes;
  nodes.Set("decoder_attention_heads", int64_t{3});
  ExpectRefused(nodes, "decoder_attention_heads: expected a divisor of 16, found 3");
  for (const int64_t width : {2, 15}) {
    nodes.Set("decoder_embed_dim", width);
    ExpectRefused(nodes, "decoder_embed_dim: expected an even number from 4");
  }
}

TEST(FairseqConfig, FactorsMayBeFloats) {
  FairseqNodes nodes;
  nodes.Set("adaptive_input_factor", 2.0);
  nodes.Set("adaptive_softmax_factor", 2.0);
  EXPECT_EQ(Read(nodes).input.factor, 2u);
  EXPECT_EQ(Read(nodes).output.factor, 2u);
  for (const double factor : {2.5, 0.0, -2.0, 1e300, std::nan("")}) {
    nodes.Set("adaptive_input_factor", factor);
    ExpectRefused(nodes, "adaptive_input_factor: expected ");
  }
}

TEST(FairseqConfig, OtherNetworks) {
  for (const char* name : {"layernorm_embedding", "add_bos_token", "scale_attn", "scale_fc",
                           "scale_heads", "scale_resids", "self_target", "cross_self_attention"}) {
    FairseqNodes nodes;
    nodes.Set(name, false);
    EXPECT_EQ(Read(nodes).layers, 2u);
    nodes.Set(name, true);
    ExpectRefused(nodes, std::string(name) + ": expected False, found True", KINGLET_UNSUPPORTED);
  }
  const auto refused = [](const char* name, FairseqNodes::Value value, const std::string& part) {
    FairseqNodes nodes;
    nodes.Set(name, std::move(value));
    ExpectRefused(nodes, name + part, KINGLET_UNSUPPORTED);
  };
  refused("base_layers", int64_t{2}, ": expected 0, found 2");
  refused("decoder_layers_to_keep", std::string("0,1"), ": expected None, found '0,1'");
  refused("quant_noise_scalar", 0.5, ": expected 0, found 0.5");
  refused("output_dictionary_size", int64_t{9}, ": expected -1, found 9");
  refused("decoder_xformers_att_config", std::string("{}"), ": expected None, found '{}'");
  refused("arch", std::string("lightconv_lm"),
          ": expected 'transformer_lm*', found 'lightconv_lm'");
  for (const char* name : {"gelu_accurate", "gelu_fast", "relu_squared", "swish"}) {
    refused("activation_fn", std::string(name),
            ": expected 'relu', 'gelu', 'tanh' or 'linear', found '" + std::string(name) + "' (");
  }
  refused("hyper_gate", true,
          ": expected an option that kinglet knows, found 'hyper_gate' = True (");
}

TEST(FairseqConfig, WhereTheNormsAre) {
  FairseqNodes nodes;
  nodes.Set("decoder_normalize_before", false);
  EXPECT_FALSE(Read(nodes).norm_first || Read(nodes).final_norm);
  nodes.Set("decoder_normalize_before", true);
  EXPECT_TRUE(Read(nodes).norm_first && Read(nodes).final_norm);
  // Only old versions do not save it in args, and their norms come first.
  nodes.Remove("decoder_normalize_before");
  EXPECT_TRUE(Read(nodes).norm_first);
  EXPECT_EQ(ReadFairseqConfig(nodes.Config()).status().message(),
            "checkpoint: cfg.model.decoder_normalize_before: expected True or False, found none "
            "(the default differs between versions of fairseq)");
}

TEST(FairseqConfig, ACfgKeepsTheNamesOfModelAndTaskApart) {
  FairseqNodes nodes;
  nodes.Set("_name", std::string("transformer_lm_gpt"));
  EXPECT_TRUE(ReadFairseqConfig(nodes.Config()).ok());
  IgnoredOptions ignored{{"arch", "mine"}};
  nodes.Set("arch", std::string("my_preset"));
  nodes.Set("mine", int64_t{3});
  EXPECT_FALSE(ReadFairseqConfig(nodes.Args()).ok());
  EXPECT_TRUE(ReadFairseqConfig(nodes.Args(), &ignored).ok());
  EXPECT_EQ(ignored.met.size(), 2u);
}

// A quant noise adds a matrix where the embedding is plain.
TEST(FairseqConfig, Noise) {
  FairseqNodes nodes;
  nodes.Set("quant_noise_pq", 0.1);
  EXPECT_FALSE(Read(nodes).noise_matrix);
  for (const char* name : {"adaptive_input", "tie_adaptive_weights", "tie_adaptive_proj"}) {
    nodes.Set(name, false);
  }
  EXPECT_TRUE(Read(nodes).noise_matrix);
  nodes.Set("quant_noise_pq", 0.0);
  EXPECT_FALSE(Read(nodes).noise_matrix);
  nodes.Set("quant_noise_pq", 0.1);
  nodes.Set("decoder_input_dim", int64_t{8});
  ExpectRefused(nodes, "quant_noise_pq: expected 0, as the embedding is not a plain table",
                KINGLET_UNSUPPORTED);
}

// All hyper-parameters as one text.
std::string TextOf(const FairseqConfig& config) {
  std::ostringstream text;
  text << config.layers << ' ' << config.width << ' ' << config.input_width << ' '
       << config.output_width << ' ' << config.inner << ' ' << config.heads << ' '
       << config.positions << ' ' << config.has_positions << config.learned_positions
       << config.scaled << config.norm_first << config.final_norm << config.noise_matrix
       << config.tied_tables << config.tied_projections << static_cast<int>(config.activation);
  for (const FairseqBands& bands : {config.input, config.output}) {
    text << " |";
    for (const uint32_t cutoff : bands.cutoffs) text << ' ' << cutoff;
    text << " / " << bands.factor;
  }
  if (!config.characters) return text.str();
  text << " | " << config.characters->vector_width << ' ' << config.characters->highway_layers;
  for (const auto& [width, channels] : config.characters->filters) {
    text << ' ' << width << 'x' << channels;
  }
  return text.str();
}

// Each option that is honoured makes another network when it has another value. That these are
// fairseq's is tested with golden values (convert_fairseq_test.cc).
TEST(FairseqConfig, EachHonouredOptionCounts) {
  using Value = FairseqNodes::Value;
  struct Flip {
    Value value;
    std::vector<std::pair<const char*, Value>> with;  // the options without which it has no effect
  };
  const std::vector<std::pair<const char*, Value>> untied = {{"tie_adaptive_weights", false}},
                                                   plain = {{"tie_adaptive_weights", false},
                                                            {"adaptive_input", false},
                                                            {"adaptive_softmax_cutoff",
                                                             PickleNone{}}},
                                                   characters = {{"tie_adaptive_weights", false},
                                                                 {"character_embeddings", true}};
  const std::map<std::string_view, Flip> flips = {
      {"decoder_layers", {int64_t{3}, {}}},
      {"decoder_embed_dim", {int64_t{32}, untied}},
      {"decoder_input_dim", {int64_t{8}, untied}},
      {"decoder_output_dim", {int64_t{8}, untied}},
      {"decoder_ffn_embed_dim", {int64_t{24}, {}}},
      {"decoder_attention_heads", {int64_t{2}, {}}},
      {"decoder_normalize_before", {false, {}}},
      {"no_decoder_final_norm", {true, {}}},
      {"decoder_final_norm", {false, {}}},
      {"activation_fn", {std::string("gelu"), {}}},
      {"max_target_positions", {int64_t{7}, {}}},
      {"max_positions", {int64_t{7}, {}}},
      {"tokens_per_sample", {int64_t{25}, {}}},
      {"no_token_positional_embeddings", {true, {}}},
      {"decoder_learned_pos", {true, {}}},
      {"no_scale_embedding", {true, {}}},
      {"adaptive_input", {false, untied}},
      {"adaptive_input_cutoff", {std::string("12"), untied}},
      {"adaptive_input_factor", {int64_t{4}, untied}},
      {"adaptive_softmax_cutoff", {std::string("12"), untied}},
      {"adaptive_softmax_factor", {int64_t{4}, untied}},
      {"tie_adaptive_weights", {false, {}}},
      {"tie_adaptive_proj", {false, {}}},
      {"no_tie_adaptive_proj", {false, {}}},
      {"share_decoder_input_output_embed", {true, plain}},
      {"character_embeddings", {true, untied}},
      {"character_filters", {std::string("[(1, 2)]"), characters}},
      {"character_embedding_dim", {int64_t{5}, characters}},
      {"char_embedder_highway_layers", {int64_t{1}, characters}},
      {"quant_noise_pq", {0.1, plain}},
  };
  const auto names = OptionNames(kFairseq.options().front().honoured);
  EXPECT_EQ(names.size(), flips.size());
  for (const std::string_view name : names) {
    const auto flip = flips.find(name);
    ASSERT_NE(flip, flips.end()) << name;
    FairseqNodes nodes;
    for (const auto& [other, value] : flip->second.with) nodes.Set(other, value);
    const std::string before = TextOf(Read(nodes));
    nodes.Set(std::string(name), flip->second.value);
    EXPECT_NE(TextOf(Read(nodes)), before) << name;
  }
}

// A character CNN of the given filters, nothing tied.
FairseqNodes Characters() {
  FairseqNodes nodes;
  nodes.Set("character_embeddings", true);
  nodes.Set("tie_adaptive_weights", false);
  nodes.Set("tie_adaptive_proj", false);
  return nodes;
}

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

Pairs FiltersOf(const FairseqConfig& config) {
  Pairs pairs;
  if (!config.characters) return pairs;
  for (const auto& [width, channels] : config.characters->filters) {
    pairs.emplace_back(width, channels);
  }
  return pairs;
}

TEST(FairseqConfig, CharactersHaveFairseqsDefaults) {
  FairseqNodes nodes = Characters();
  const FairseqConfig config = Read(nodes);
  EXPECT_EQ(FiltersOf(config),
            (Pairs{{1, 64}, {2, 128}, {3, 192}, {4, 256}, {5, 256}, {6, 256}, {7, 256}}));
  ASSERT_TRUE(config.characters.has_value());
  EXPECT_EQ(config.characters->vector_width, 4u);
  EXPECT_EQ(config.characters->highway_layers, 2u);
  EXPECT_TRUE(config.input.cutoffs.empty());  // adaptive_input is ignored
  EXPECT_EQ(config.output.cutoffs, (Words{12, 26}));
  for (const int64_t layers : {0, 1, 7}) {
    nodes.Set("char_embedder_highway_layers", layers);
    EXPECT_EQ(Read(nodes).characters->highway_layers, static_cast<uint32_t>(layers));
  }
  nodes.Set("character_embedding_dim", int64_t{128});
  EXPECT_EQ(Read(nodes).characters->vector_width, 128u);
  nodes.Set("character_embeddings", false);
  EXPECT_FALSE(Read(nodes).characters.has_value());
}

TEST(FairseqConfig, FormsOfFilters) {
  FairseqNodes nodes = Characters();
  for (const char* text : {"[(1, 12), (50, 16)]", "[(1,12),(50,16)]", "((1, 12), (50, 16))",
                           "(1, 12), (50, 16)", "[[1, 12], [50, 16],]"}) {
    nodes.Set("character_filters", std::string(text));
    EXPECT_EQ(FiltersOf(Read(nodes)), (Pairs{{1, 12}, {50, 16}})) << text;
  }
  nodes.Set("character_filters", std::string("[(3, 4)]"));
  EXPECT_EQ(FiltersOf(Read(nodes)), (Pairs{{3, 4}}));
  for (const char* text : {"[1, 12]", "[(1, 12) (2, 3)]", "[(1, 12), 2]", "[(1, (12, 3))]", "(1, 2",
                           "[(1, 12), (2, 3, 4)]", "[(1,)]", "[]", "()", "", "[(a, 2)]",
                           "[(1.5, 2)]", "[(1, 12)]]", "__import__('os')"}) {
    nodes.Set("character_filters", std::string(text));
    ExpectRefused(nodes,
                  "character_filters: expected a list of pairs (width, channels), widths "
                  "from 1 to 50, found ");
  }
  for (const char* text : {"[(0, 12)]", "[(51, 12)]", "[(-1, 12)]", "[(1, 0)]", "[(1, 2000000)]"}) {
    nodes.Set("character_filters", std::string(text));
    ExpectRefused(nodes, "character_filters: expected 1 to ");
  }
  nodes.Set("character_filters", int64_t{3});
  ExpectRefused(nodes, "character_filters: expected a list of pairs");
  nodes.SetList("character_filters", {std::string("(1, 2)")});
  ExpectRefused(nodes, "character_filters: expected a list of pairs");
  nodes.SetList("character_filters", {});
  ExpectRefused(nodes, "character_filters: expected a list of pairs");
  PickleNode one{int64_t{1}}, twelve{int64_t{12}}, pair{PickleList{{&one, &twelve}}};
  nodes.Set("character_filters", PickleList{{&pair, &pair}});
  EXPECT_EQ(FiltersOf(Read(nodes)), (Pairs{{1, 12}, {1, 12}}));
}

TEST(FairseqConfig, CharactersThatCannotBe) {
  const auto expect = [](const char* name, FairseqNodes::Value value, const std::string& part) {
    FairseqNodes nodes = Characters();
    nodes.Set(name, std::move(value));
    ExpectRefused(nodes, part);
  };
  expect("tie_adaptive_weights", true,
         "tie_adaptive_weights: expected False, as the input is computed from characters");
  expect("char_embedder_highway_layers", int64_t{-1},
         "char_embedder_highway_layers: expected 1 to 4096, found -1");
  expect("char_embedder_highway_layers", int64_t{1} << 40, "char_embedder_highway_layers");
  expect("char_embedder_highway_layers", std::string("2"), "char_embedder_highway_layers");
  expect("character_embedding_dim", int64_t{0}, "character_embedding_dim");
  expect("character_embeddings", std::string("yes"), "character_embeddings");
  FairseqNodes plain = Characters();
  plain.Remove("adaptive_softmax_cutoff");
  EXPECT_TRUE(Read(plain).characters.has_value());
  plain.Set("share_decoder_input_output_embed", true);
  ExpectRefused(plain,
                "share_decoder_input_output_embed: expected False, as the input is computed");
}

TEST(FairseqConfig, TiesThatCannotBe) {
  const auto expect = [](const char* name, FairseqNodes::Value value, const char* tie) {
    FairseqNodes nodes;
    nodes.Set(name, std::move(value));
    ExpectRefused(nodes, tie);
  };
  expect("adaptive_softmax_factor", int64_t{4}, "tie_adaptive_weights");
  expect("adaptive_softmax_cutoff", std::string("12"), "tie_adaptive_weights");
  expect("adaptive_input", false, "tie_adaptive_weights");
  expect("decoder_input_dim", int64_t{8}, "tie_adaptive_weights");
  FairseqNodes nodes;
  nodes.Set("decoder_input_dim", int64_t{8});
  nodes.Set("decoder_output_dim", int64_t{8});
  ExpectRefused(nodes, "tie_adaptive_weights");
  nodes.Set("adaptive_softmax_cutoff", PickleNone{});
  nodes.Set("share_decoder_input_output_embed", true);
  ExpectRefused(nodes, "share_decoder_input_output_embed");
  nodes.Set("adaptive_input", false);
  const FairseqConfig plain = Read(nodes);
  EXPECT_TRUE(plain.tied_tables);
  EXPECT_FALSE(plain.tied_projections);
  EXPECT_TRUE(plain.input.cutoffs.empty() && plain.output.cutoffs.empty());
}

}  // namespace
}  // namespace kinglet::fairseq_config_test
