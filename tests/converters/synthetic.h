// Small synthetic MicroNet checkpoints for tests: in memory, and as files like those of torch.save.
#ifndef KINGLET_TESTS_CONVERTERS_SYNTHETIC_H_
#define KINGLET_TESTS_CONVERTERS_SYNTHETIC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/micronet_config.h"
#include "tests/support/temporary_folder.h"

namespace kinglet {

struct SyntheticTensor {
  std::string name;
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

struct SyntheticOptions {
  std::vector<uint32_t> cutoffs = {6, 14};
  uint32_t vocabulary_size = 23;
  // Integer weights times truncated scales, and activation quantisers.
  std::optional<int> bits = std::nullopt;
  uint32_t cache = 4;          // n_cache
  bool trained_cache = false;  // parameters in the state dict instead of numbers in the config
};

class SyntheticMicronet {
 public:
  explicit SyntheticMicronet(const SyntheticOptions& options = {});

  // The tensors that the framework saves, in its order; tied tables occur twice. Tests edit them.
  std::vector<SyntheticTensor> tensors;
  std::vector<std::string> config;  // lines of config.yaml; tests edit it

  SyntheticTensor& Get(std::string_view name);
  void Remove(std::string_view name);
  bool Has(std::string_view name) const;
  // Refer to `tensors`.
  CheckpointTensors Weights() const;
  std::string ConfigText() const;
  // Writes the config to a file and reads it with ReadMicronetConfig.
  Result<MicronetConfig> Config(std::optional<int64_t> step = std::nullopt) const;
  // torch.save's legacy stream of {"step": 7, "net": tensors}, or of the bare state dict.
  std::string LegacyFile(bool bare = false) const;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_SYNTHETIC_H_
