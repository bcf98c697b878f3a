// A small Transformer-XL in memory, for tests of its families.
#ifndef KINGLET_TESTS_CONVERTERS_TRANSFORMER_XL_SOURCE_H_
#define KINGLET_TESTS_CONVERTERS_TRANSFORMER_XL_SOURCE_H_

#include <string>

#include "tests/converters/recurrent_source.h"

namespace kinglet {

// One layer of width 8 with 2 heads of 3, 7 inner units; 20 words with cutoffs 6 and 11, tables
// tied and undivided. `prefix` is before all names but the softmax's.
inline RecurrentSource TransformerXlSource(const std::string& prefix) {
  RecurrentSource source;
  source.Add(prefix + "word_emb.emb_layers.0.weight", {20, 8});
  source.Add(prefix + "pos_emb.inv_freq", {4});
  source.Values(prefix + "pos_emb.inv_freq") = {1, 0.5F, 0.25F, 0.125F};
  source.Add(prefix + "r_w_bias", {2, 3});
  source.Add(prefix + "r_r_bias", {2, 3});
  const std::string layer = prefix + "layers.0.";
  source.Add(layer + "dec_attn.qkv_net.weight", {18, 8});
  source.Add(layer + "dec_attn.r_net.weight", {6, 8});
  source.Add(layer + "dec_attn.o_net.weight", {8, 6});
  source.Add(layer + "dec_attn.layer_norm.weight", {8});
  source.Add(layer + "dec_attn.layer_norm.bias", {8});
  source.Add(layer + "pos_ff.CoreNet.0.weight", {7, 8});
  source.Add(layer + "pos_ff.CoreNet.0.bias", {7});
  source.Add(layer + "pos_ff.CoreNet.3.weight", {8, 7});
  source.Add(layer + "pos_ff.CoreNet.3.bias", {8});
  source.Add(layer + "pos_ff.layer_norm.weight", {8});
  source.Add(layer + "pos_ff.layer_norm.bias", {8});
  source.Add("crit.cluster_weight", {2, 8});
  source.Add("crit.cluster_bias", {2});
  source.Add("crit.out_layers.0.weight", {20, 8});
  source.Copy(prefix + "word_emb.emb_layers.0.weight", "crit.out_layers.0.weight");
  source.Add("crit.out_layers.0.bias", {20});
  return source;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_TRANSFORMER_XL_SOURCE_H_
