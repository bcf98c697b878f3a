#include "converters/families/micronet_config.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "converters/families/config_options.h"
#include "format/encoding.h"
#include "format/limits.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

constexpr std::array<FixedOption, 4> kFixedOfMicronet = {{
    {"pos_emb", "'trained'"},
    {"model", "'model.Transformer'|'quantize.Transformer'"},
    {"run_mode", "'explicit'"},  // as evaluation has it
    {"gen_soft", "False"},       // writes probabilities instead of answers
}};
constexpr OptionTable kMicronetConfig = {
    "`config.yaml`",
    "n_vocab n_embed n_embeds adaptive_ratio cutoffs n_layers n_head n_k n_v n_inner n_seq bits "
    "use_cache use_cache_search n_cache cache_theta cache_theta_init cache_lambda "
    "cache_lambda_init",
    kFixedOfMicronet,
    "annealing_* clip_grad compress debug device disable_amp distill distill_first_bin distributed "
    "dropout eval_batch eval_chunk hebbian hebbian_* keep_order local_rank logger loss_no_mean lr "
    "main name opt_level parallel patience quantizing res scheduler step step_* steps "
    "steps_per_epoch summary test time_save topk train_batch train_chunk valid world_size",
    {},
    "pos_emb run_mode use_cache_search"};

// What the search for cache parameters writes.
constexpr std::array<FixedOption, 1> kFixedOfSearch = {{{"use_cache", "True"}}};
constexpr OptionTable kMicronetSearch = {
    "`cache_step*.yaml`", "n_cache cache_theta cache_lambda", kFixedOfSearch, "", {}, "use_cache"};

class MicronetConfigReader {
 public:
  MicronetConfigReader(const ConfigFile& file, IgnoredOptions* ignored)
      : file_(file), ignored_(ignored) {}

  Result<MicronetConfig> Read(std::optional<int64_t> step) {
    const std::pair<const char*, uint32_t*> sizes[] = {
        {"n_vocab", &config_.vocabulary_size},
        {"n_embed", &config_.width},
        {"n_layers", &config_.layers},
        {"n_head", &config_.heads},
        {"n_k", &config_.key_size},
        {"n_v", &config_.value_size},
        {"n_inner", &config_.inner},
        {"n_seq", &config_.context},
    };
    for (const auto& [key, size] : sizes) {
      KINGLET_ASSIGN_OR_RETURN(*size, Size(key, 1, kMaxDimension - 1));
    }
    if (config_.layers > kMaxLayers) {
      return Refuse("n_layers", "at most " + std::to_string(kMaxLayers),
                    std::to_string(config_.layers));
    }
    KINGLET_RETURN_IF_ERROR(ReadBins());
    KINGLET_RETURN_IF_ERROR(ReadBits());
    KINGLET_RETURN_IF_ERROR(ReadCache(step));
    return std::move(config_);
  }

 private:
  Status Refuse(const std::string& key, const std::string& expected,
                const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, file_.path(), key, expected, found);
  }

  Result<uint32_t> InRange(const std::string& key, int64_t value, int64_t low,
                           uint64_t high) const {
    if (value >= low && value <= static_cast<int64_t>(high)) return static_cast<uint32_t>(value);
    return Refuse(key, std::to_string(low) + " to " + std::to_string(high), std::to_string(value));
  }

  Result<uint32_t> Size(const std::string& key, int64_t low, uint64_t high) const {
    KINGLET_ASSIGN_OR_RETURN(const int64_t value, file_.Integer(key));
    return InRange(key, value, low, high);
  }

  // Embedding widths by bin: the list n_embeds, or n_embed divided by powers of adaptive_ratio.
  Result<std::vector<int64_t>> BinWidths(size_t bins) const {
    if (file_.Has("n_embeds")) {
      KINGLET_ASSIGN_OR_RETURN(std::vector<int64_t> widths, file_.Integers("n_embeds"));
      if (widths.size() != bins) {
        return Refuse("n_embeds", std::to_string(bins) + " numbers, one more than the cutoffs",
                      std::to_string(widths.size()));
      }
      return widths;
    }
    uint32_t ratio = 1;
    if (file_.Has("adaptive_ratio")) {
      KINGLET_ASSIGN_OR_RETURN(ratio, Size("adaptive_ratio", 1, kMaxDimension));
    }
    std::vector<int64_t> widths;
    // The original divides once, by a power; (n // r) // r == n // r^2.
    for (int64_t width = config_.width; widths.size() < bins; width /= ratio) {
      widths.push_back(width);
    }
    return widths;
  }

  Status ReadBins() {
    std::vector<int64_t> ends;
    if (file_.Has("cutoffs")) {
      KINGLET_ASSIGN_OR_RETURN(ends, file_.Integers("cutoffs"));
    }
    if (ends.size() >= kMaxBins) {
      return Refuse("cutoffs", "at most " + std::to_string(kMaxBins - 1) + " numbers",
                    std::to_string(ends.size()));
    }
    ends.push_back(config_.vocabulary_size);
    KINGLET_ASSIGN_OR_RETURN(const std::vector<int64_t> widths, BinWidths(ends.size()));
    int64_t first = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
      if (ends[i] <= first || ends[i] > config_.vocabulary_size) {
        return Refuse(
            "cutoffs",
            "ascending numbers between 0 and n_vocab, " + std::to_string(config_.vocabulary_size),
            std::to_string(i + 1 < ends.size() ? ends[i] : first) + " at index " +
                std::to_string(i + 1 < ends.size() ? i : i - 1));
      }
      MicronetBin bin;
      bin.first = static_cast<uint32_t>(first);
      bin.size = static_cast<uint32_t>(ends[i] - first);
      KINGLET_ASSIGN_OR_RETURN(
          bin.width, InRange("width of bin " + std::to_string(i), widths[i], 1, kMaxDimension));
      config_.bins.push_back(bin);
      first = ends[i];
    }
    if (config_.bins[0].width != config_.width) {
      return Refuse("n_embeds", "n_embed, " + std::to_string(config_.width) + ", at index 0",
                    std::to_string(config_.bins[0].width));
    }
    return {};
  }

  Status ReadBits() {
    bool quantised = file_.Has("bits");
    if (file_.Has("model")) {
      KINGLET_ASSIGN_OR_RETURN(const std::string model, file_.Text("model"));
      quantised = quantised || model == "quantize.Transformer";
    }
    if (!quantised) return {};
    KINGLET_ASSIGN_OR_RETURN(const uint32_t bits, Size("bits", kMinBits, kMaxBits));
    config_.bits = static_cast<int>(bits);
    return {};
  }

  // The framework ignores a starting value of 0.
  Result<bool> IsTrained(const std::string& name) const {
    if (!file_.Has(name + "_init")) return false;
    KINGLET_ASSIGN_OR_RETURN(const double start, file_.Number(name + "_init"));
    return start != 0;
  }

  // The parameter `name` of the cache; trained if the configuration has a starting value,
  // NAME_init.
  Result<MicronetCacheNumber> CacheNumber(const std::string& name) const {
    MicronetCacheNumber number;
    KINGLET_ASSIGN_OR_RETURN(number.trained, IsTrained(name));
    if (file_.Has(name)) {
      KINGLET_ASSIGN_OR_RETURN(number.fixed, file_.Number(name));
    } else if (!number.trained) {
      return Refuse(name, "a number, or a starting value as " + name + "_init", "neither");
    }
    return number;
  }

  Status ReadCache(std::optional<int64_t> step) {
    KINGLET_ASSIGN_OR_RETURN(const bool trains_theta, IsTrained("cache_theta"));
    KINGLET_ASSIGN_OR_RETURN(const bool trains_lambda, IsTrained("cache_lambda"));
    config_.trains_cache = trains_theta || trains_lambda;
    bool use = false;  // the original's default
    if (file_.Has("use_cache")) {
      KINGLET_ASSIGN_OR_RETURN(use, file_.Boolean("use_cache"));
    }
    if (!use) return {};
    MicronetCache cache;
    KINGLET_ASSIGN_OR_RETURN(cache.capacity, Size("n_cache", 0, kMaxCacheCapacity));
    if (cache.capacity == 0) return {};
    bool searches = true;  // the original's default
    if (file_.Has("use_cache_search")) {
      KINGLET_ASSIGN_OR_RETURN(searches, file_.Boolean("use_cache_search"));
    }
    if (step && searches) {
      KINGLET_ASSIGN_OR_RETURN(const bool searched, ReadSearchedCache(*step, cache));
      if (searched) {
        config_.cache = cache;
        return {};
      }
    }
    KINGLET_ASSIGN_OR_RETURN(cache.theta, CacheNumber("cache_theta"));
    KINGLET_ASSIGN_OR_RETURN(cache.lambda, CacheNumber("cache_lambda"));
    config_.cache = cache;
    return {};
  }

  // Reads what the search for cache parameters found for this step and capacity; false if it did
  // not run.
  Result<bool> ReadSearchedCache(int64_t step, MicronetCache& cache) const {
    const std::filesystem::path path =
        std::filesystem::path(file_.path()).parent_path() /
        ("cache_step" + std::to_string(step) + "_n" + std::to_string(cache.capacity) + ".yaml");
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return false;
    KINGLET_ASSIGN_OR_RETURN(const ConfigFile searched, ConfigFile::Read(path.string()));
    KINGLET_RETURN_IF_ERROR(CheckConfig(kMicronetSearch, searched, ignored_));
    if (searched.Has("n_cache")) {
      KINGLET_ASSIGN_OR_RETURN(const int64_t capacity, searched.Integer("n_cache"));
      if (capacity != cache.capacity) {
        return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path.string(), "n_cache",
                               std::to_string(cache.capacity) + " as in the file's name",
                               std::to_string(capacity));
      }
    }
    KINGLET_ASSIGN_OR_RETURN(cache.theta.fixed, searched.Number("cache_theta"));
    KINGLET_ASSIGN_OR_RETURN(cache.lambda.fixed, searched.Number("cache_lambda"));
    return true;
  }

  const ConfigFile& file_;
  IgnoredOptions* ignored_;
  MicronetConfig config_;
};

}  // namespace

std::span<const OptionTable> MicronetOptions() {
  static const std::array kTables = {kMicronetConfig, kMicronetSearch};
  return kTables;
}

Result<MicronetConfig> ReadMicronetConfig(const ConfigFile& file, std::optional<int64_t> step,
                                          IgnoredOptions* ignored) {
  KINGLET_RETURN_IF_ERROR(CheckConfig(kMicronetConfig, file, ignored));
  return MicronetConfigReader(file, ignored).Read(step);
}

}  // namespace kinglet
