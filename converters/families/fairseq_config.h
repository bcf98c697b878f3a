// The hyper-parameters of a fairseq language model (facebookresearch/fairseq, transformer_lm),
// which its checkpoints store as `args`, an argparse.Namespace, or as `cfg`, nested dicts with the
// model's under "model" and the task's under "task".
#ifndef KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_CONFIG_H_
#define KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_CONFIG_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "converters/checkpoints/pickle.h"
#include "converters/families/known_options.h"
#include "format/activation.h"
#include "kinglet/status.h"

namespace kinglet {

// Bands of words of an adaptive embedding or softmax.
struct FairseqBands {
  // The first words of all bands but the first; the size of the vocabulary may follow them.
  // Ascending, above 0. Empty: not adaptive.
  std::vector<uint32_t> cutoffs;
  uint32_t factor = 4;  // rows of band b have floor(width / factor^b) entries
};

// A character CNN in place of the embedding's table (character_embeddings). Its paddings fill a
// spelling up to 50 bytes, a number that no hyper-parameter changes.
struct FairseqCharacters {
  static constexpr uint32_t kLongest = 50;
  struct Filter {
    uint32_t width, channels;  // the width is at most kLongest
  };
  uint32_t vector_width = 4;    // character_embedding_dim
  std::vector<Filter> filters;  // character_filters; at least one
  uint32_t highway_layers = 2;  // char_embedder_highway_layers
  // If set, the CNN stays in the model, and each stream caches this many of its rows.
  std::optional<uint32_t> cache_rows = {};
};

// The comments give fairseq's names. Sizes are within the bounds of format/limits.h.
struct FairseqConfig {
  uint32_t layers = 0;        // decoder_layers
  uint32_t width = 0;         // decoder_embed_dim, even
  uint32_t input_width = 0;   // decoder_input_dim
  uint32_t output_width = 0;  // decoder_output_dim
  uint32_t inner = 0;         // decoder_ffn_embed_dim
  uint32_t heads = 0;         // decoder_attention_heads; divides the width
  // max_target_positions, or else tokens_per_sample: the longest block the model was made for.
  uint32_t positions = 0;
  bool has_positions = true;                  // not no_token_positional_embeddings
  bool learned_positions = false;             // decoder_learned_pos
  bool scaled = true;                         // not no_scale_embedding
  bool norm_first = true;                     // decoder_normalize_before
  bool final_norm = true;                     // norm_first, and not no_decoder_final_norm
  Activation activation = Activation::kRelu;  // activation_fn
  // quant_noise_pq: a matrix of its own follows a plain embedding; noise is added in training only.
  bool noise_matrix = false;
  FairseqBands input;             // adaptive_input, adaptive_input_cutoff, adaptive_input_factor
  FairseqBands output;            // adaptive_softmax_cutoff, adaptive_softmax_factor
  bool tied_tables = false;       // of bands: tie_adaptive_weights; otherwise
                                  // share_decoder_input_output_embed
  bool tied_projections = false;  // tie_adaptive_proj; only if the tables are tied
  // If set, adaptive_input and decoder_input_dim are ignored, and no tables are tied.
  std::optional<FairseqCharacters> characters;
};

// All options of fairseq's language models, from 0.6 to 0.12 and of the branch moe, and how
// conversion treats them.
std::span<const OptionTable> FairseqOptions();

// `root` is what torch.save wrote. A hyper-parameter that is absent or None has the default of all
// of fairseq's versions; a configuration (cfg) must state decoder_normalize_before, whose default
// differs between versions. The names of older versions (no_tie_adaptive_proj, decoder_final_norm)
// are read as fairseq reads them. `ignored` may be null. Errors: KINGLET_INVALID_CHECKPOINT naming
// the hyper-parameter; KINGLET_UNSUPPORTED for one that makes another network (NormFormer's scales,
// ..) or that no table has.
Result<FairseqConfig> ReadFairseqConfig(const PickleNode& root, IgnoredOptions* ignored = nullptr);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_FAIRSEQ_CONFIG_H_
