#include "converters/families/hugging_face.h"

#include <algorithm>
#include <array>

#include "converters/checkpoints/checkpoint_path.h"
#include "converters/checkpoints/quoted.h"
#include "converters/families/config_options.h"
#include "format/limits.h"

namespace kinglet {

Result<ConfigFile> ReadHuggingFaceConfig(const OptionTable& table, const FamilyInput& input) {
  std::string path = input.config;
  if (path.empty()) {
    KINGLET_ASSIGN_OR_RETURN(path, FindConfig(input.checkpoint, "config.json"));
  }
  KINGLET_ASSIGN_OR_RETURN(ConfigFile file, ConfigFile::Read(path));
  KINGLET_RETURN_IF_ERROR(CheckConfig(table, file, input.ignored));
  return file;
}

Result<uint32_t> ReadSize(const ConfigFile& file, const std::string& key, uint64_t most) {
  KINGLET_ASSIGN_OR_RETURN(const int64_t value, file.Integer(key));
  if (value >= 1 && static_cast<uint64_t>(value) <= most) return static_cast<uint32_t>(value);
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, file.path(), key,
                         "1 to " + std::to_string(most), std::to_string(value));
}

Result<TransformerConfig> ReadTransformerSizes(const ConfigFile& file,
                                               const TransformerKeys& keys) {
  TransformerConfig sizes;
  const struct {
    const char* key;
    uint32_t* size;
    uint64_t most;
  } all[] = {{keys.width, &sizes.width, kMaxExtent},
             {keys.layers, &sizes.layers, kMaxLayers},
             {keys.heads, &sizes.heads, kMaxExtent},
             {keys.positions, &sizes.positions, kMaxExtent},
             {keys.words, &sizes.words, kMaxDimension}};
  for (const auto& one : all) {
    KINGLET_ASSIGN_OR_RETURN(*one.size, ReadSize(file, one.key, one.most));
  }
  if (sizes.width % sizes.heads == 0) return sizes;
  return Status::Refusal(
      KINGLET_INVALID_CHECKPOINT, file.path(), keys.width,
      "a multiple of " + std::string(keys.heads) + ", " + std::to_string(sizes.heads),
      std::to_string(sizes.width));
}

Result<Activation> ReadActivation(const ConfigFile& file, const char* key) {
  struct Known {
    std::string_view name;
    Activation activation;
  };
  static constexpr std::array<Known, 8> kKnown = {{{"gelu", Activation::kGelu},
                                                   {"gelu_new", Activation::kTanhGelu},
                                                   {"gelu_pytorch_tanh", Activation::kTanhGelu},
                                                   {"relu", Activation::kRelu},
                                                   {"silu", Activation::kSwish},
                                                   {"swish", Activation::kSwish},
                                                   {"tanh", Activation::kTanh},
                                                   {"sigmoid", Activation::kSigmoid}}};
  KINGLET_ASSIGN_OR_RETURN(const std::string name, file.Text(key));
  const auto known = std::find_if(kKnown.begin(), kKnown.end(),
                                  [&name](const Known& one) { return one.name == name; });
  if (known != kKnown.end()) return known->activation;
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, file.path(), key,
                         "gelu, gelu_new, gelu_pytorch_tanh, relu, silu, swish, tanh or sigmoid",
                         QuotedName(name));
}

Result<bool> TiesWordTables(const ConfigFile& file) {
  return file.Has("tie_word_embeddings") ? file.Boolean("tie_word_embeddings") : Result<bool>(true);
}

void ShareWordTables(bool tied, const std::string& words, const std::string& decoder,
                     Network& network) {
  if (tied) {
    network.Share(words, decoder);
  } else {
    network.MayShare(words, decoder, "\"tie_word_embeddings\": true in config.json");
  }
}

}  // namespace kinglet
