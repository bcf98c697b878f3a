// A small Transformer-XL in memory, for tests of its families.
#ifndef KINGLET_TESTS_CONVERTERS_TRANSFORMER_XL_SOURCE_H_
#define KINGLET_TESTS_CONVERTERS_TRANSFORMER_XL_SOURCE_H_

#include <cstdint>
#include <string>

#include "tests/converters/recurrent_source.h"

namespace kinglet {

// One layer with 2 heads of size 3 and 7 inner units; cutoffs 6 and 11; tied tables of full width.
// All names but the softmax's begin with `prefix`. REQUIRES: words > 11, an even width.
inline RecurrentSource TransformerXlSource(const std::string& prefix, uint64_t words = 20,
                                           uint64_t width = 8) {
  RecurrentSource source;
  source.Add(prefix + "word_emb.emb_layers.0.weight", {words, width});
  source.Add(prefix + "pos_emb.inv_freq", {width / 2});
  float frequency = 2;
  for (float& value : source.Values(prefix + "pos_emb.inv_freq")) value = frequency /= 2;
  source.Add(prefix + "r_w_bias", {2, 3});
  source.Add(prefix + "r_r_bias", {2, 3});
  const std::string layer = prefix + "layers.0.";
  source.Add(layer + "dec_attn.qkv_net.weight", {18, width});
  source.Add(layer + "dec_attn.r_net.weight", {6, width});
  source.Add(layer + "dec_attn.o_net.weight", {width, 6});
  source.Add(layer + "dec_attn.layer_norm.weight", {width});
  source.Add(layer + "dec_attn.layer_norm.bias", {width});
  source.Add(layer + "pos_ff.CoreNet.0.weight", {7, width});
  source.Add(layer + "pos_ff.CoreNet.0.bias", {7});
  source.Add(layer + "pos_ff.CoreNet.3.weight", {width, 7});
  source.Add(layer + "pos_ff.CoreNet.3.bias", {width});
  source.Add(layer + "pos_ff.layer_norm.weight", {width});
  source.Add(layer + "pos_ff.layer_norm.bias", {width});
  source.Add("crit.cluster_weight", {2, width});
  source.Add("crit.cluster_bias", {2});
  source.Add("crit.out_layers.0.weight", {words, width});
  source.Copy(prefix + "word_emb.emb_layers.0.weight", "crit.out_layers.0.weight");
  source.Add("crit.out_layers.0.bias", {words});
  return source;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_TRANSFORMER_XL_SOURCE_H_
