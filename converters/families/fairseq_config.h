// The hyper-parameters of a fairseq language model (facebookresearch/fairseq, transformer_lm) as
// its checkpoints carry them: `args`, an argparse.Namespace, or `cfg`, nested dicts with those of
// the model under "model" and of the task under "task".
#ifndef KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_CONFIG_H_
#define KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_CONFIG_H_

#include <cstdint>
#include <vector>

#include "converters/sources/pickle.h"
#include "kinglet/status.h"

namespace kinglet {

// Bands of an adaptive embedding or softmax.
struct FairseqBands {
  // First words of the bands after the first; the last may be the vocabulary's size instead.
  // Ascending, above 0. Empty: not adaptive.
  std::vector<uint32_t> cutoffs;
  uint32_t factor = 4;  // rows of band b have floor(width / factor^b) numbers
};

// In comments fairseq's names. Sizes are in the bounds of format/limits.h.
struct FairseqConfig {
  uint32_t layers = 0;        // decoder_layers
  uint32_t width = 0;         // decoder_embed_dim, even
  uint32_t input_width = 0;   // decoder_input_dim
  uint32_t output_width = 0;  // decoder_output_dim
  uint32_t inner = 0;         // decoder_ffn_embed_dim
  uint32_t heads = 0;         // decoder_attention_heads; divides the width
  // max_target_positions, or else tokens_per_sample: the longest block the model was made for.
  uint32_t positions = 0;
  bool learned_positions = false;  // decoder_learned_pos
  bool scaled = true;              // not no_scale_embedding
  bool final_norm = true;          // not no_decoder_final_norm
  FairseqBands input;              // adaptive_input, adaptive_input_cutoff, adaptive_input_factor
  FairseqBands output;             // adaptive_softmax_cutoff, adaptive_softmax_factor
  bool tied_tables = false;        // of bands: tie_adaptive_weights; otherwise
                                   // share_decoder_input_output_embed
  bool tied_projections = false;   // tie_adaptive_proj, where tables are tied
};

// `root` is what torch.save wrote. fairseq's defaults stand for what is absent or None, and the
// names of its older versions (no_tie_adaptive_proj, decoder_final_norm) mean what it makes of
// them. Errors: KINGLET_INVALID_CHECKPOINT naming the hyper-parameter; KINGLET_UNSUPPORTED for one
// that makes another network (activations other than ReLU, character embeddings, NormFormer's
// scales).
Result<FairseqConfig> ReadFairseqConfig(const PickleNode& root);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_CONFIG_H_
