// The configuration of one MicroNet network: config.yaml of mit-han-lab/neurips-micronet, and the
// file that its search for cache parameters writes next to it.
#ifndef KINGLET_CONVERTERS_FAMILIES_MICRONET_CONFIG_H_
#define KINGLET_CONVERTERS_FAMILIES_MICRONET_CONFIG_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "converters/checkpoints/config_file.h"
#include "converters/families/known_options.h"
#include "kinglet/status.h"

namespace kinglet {

// Words [first, first + size) have embeddings of `width` entries.
struct MicronetBin {
  uint32_t first = 0;
  uint32_t size = 0;
  uint32_t width = 0;
};

// A parameter of the neural cache. `trained`: the state dict's parameter, if it has one, is used.
struct MicronetCacheNumber {
  bool trained = false;
  std::optional<double> fixed;
};

struct MicronetCache {
  uint32_t capacity = 0;  // > 0
  MicronetCacheNumber theta, lambda;
};

// The comments give the configuration's keys. Sizes are within the bounds of format/limits.h.
struct MicronetConfig {
  uint32_t vocabulary_size = 0;   // n_vocab
  uint32_t width = 0;             // n_embed
  std::vector<MicronetBin> bins;  // cutoffs, n_embeds; adjacent, cover the vocabulary
  uint32_t layers = 0;            // n_layers
  uint32_t heads = 0;             // n_head
  uint32_t key_size = 0;          // n_k
  uint32_t value_size = 0;        // n_v
  uint32_t inner = 0;             // n_inner
  uint32_t context = 0;           // n_seq: earlier tokens that attention sees
  std::optional<int> bits;        // quantize.Transformer
  std::optional<MicronetCache> cache;
  // The configuration gives starting values of cache parameters, so the state dict may have trained
  // ones.
  bool trains_cache = false;
};

std::span<const OptionTable> MicronetOptions();

// If `cache_step<step>_n<n_cache>.yaml` lies next to the configuration, its cache parameters
// replace all others, as in the original evaluation, unless use_cache_search is false. `ignored`
// may be null. Errors: those of ConfigFile, naming file and key, and of CheckOptions.
Result<MicronetConfig> ReadMicronetConfig(const ConfigFile& file, std::optional<int64_t> step,
                                          IgnoredOptions* ignored = nullptr);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_MICRONET_CONFIG_H_
