#include "converters/families/espnet_config.h"

#include <algorithm>
#include <array>
#include <utility>

#include "converters/checkpoints/checkpoint_path.h"
#include "converters/checkpoints/quoted.h"
#include "converters/families/config_options.h"
#include "converters/families/speech_stream.h"

namespace kinglet {
namespace {

constexpr const char* kLmOptions = "lm_conf";

constexpr std::array<FixedOption, 3> kFixedOfEspnet = {
    {{"model", "'lm'"}, {"use_adapter", "False"}, {"use_lora", "False"}}};
// Options of the task around the network. The tokenizer splits text, so its options do not matter
// here.
constexpr OptionTable kEspnetTask = {
    "`config.yaml`",
    "lm lm_conf token_list",
    kFixedOfEspnet,
    "accum_grad adapter adapter_conf allow_* batch_* beta best_model_criterion bpemodel category_* "
    "chunk_* cleaner collect_stats config create_graph_in_tensorboard cudnn_* dataset_* ddp_* "
    "deepspeed_config detect_anomaly dist_* distributed drop_last_iter dry_run "
    "early_stopping_criterion exclude_weight_decay exclude_weight_decay_conf fold_length "
    "freeze_param g2p grad_* gradient_as_bucket_view ignore_init_mismatch init init_param "
    "iterator_type keep_nbest_models local_rank log_interval log_level lora_conf max_* min_* "
    "model_conf multi_task_dataset multiple_iterator multiprocessing_distributed "
    "nbest_averaging_interval ngpu no_forward_run non_linguistic_symbols num_* optim optim_conf "
    "output_dir patience pretrain_* print_config required resume save_lora_only save_strategy "
    "scheduler scheduler_conf seed sharded_ddp shuffle_within_batch sort_batch sort_in_batch "
    "token_type train_* unused_parameters upsampling_factor use_amp use_deepspeed use_matplotlib "
    "use_preprocessor use_tensorboard use_tf32 use_wandb val_scheduler_criterion valid_* version "
    "wandb_* write_collected_feats",
    {},
    "lm token_list"};

char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

Result<int64_t> EspnetConfig::Integer(const std::string& name, int64_t otherwise) const {
  return lm.Has(name) ? lm.Integer(name) : Result<int64_t>(otherwise);
}

Result<std::string> EspnetConfig::Text(const std::string& name,
                                       const std::string& otherwise) const {
  if (!lm.Has(name)) return otherwise;
  KINGLET_ASSIGN_OR_RETURN(std::string text, lm.Text(name));
  std::transform(text.begin(), text.end(), text.begin(), LowerCase);
  return text;
}

Status EspnetConfig::RefuseOption(const std::string& name, const std::string& expected,
                                  const std::string& found) const {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, lm.path(),
                         std::string(kLmOptions) + ", " + name, expected, found);
}

OptionTable EspnetTaskOptions() { return kEspnetTask; }

Result<EspnetConfig> ReadEspnetConfig(const FamilyInput& input, std::string_view type,
                                      const OptionTable& lm_options) {
  std::string path = input.config;
  if (path.empty()) {
    KINGLET_ASSIGN_OR_RETURN(path, FindConfig(input.checkpoint, "config.yaml"));
  }
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ConfigFile::Read(path));
  KINGLET_RETURN_IF_ERROR(CheckConfig(kEspnetTask, file, input.ignored));
  if (file.Has("lm")) {
    KINGLET_ASSIGN_OR_RETURN(const std::string lm, file.Text("lm"));
    if (lm != type) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "lm", QuotedName(type),
                             QuotedName(lm) + " (give the checkpoint's own file with --config)");
    }
  }
  KINGLET_ASSIGN_OR_RETURN(std::vector<std::string> tokens, file.Texts("token_list"));
  // A model with default options has "lm_conf: {}" or no lm_conf.
  Result<ConfigFile> options = file.Has(kLmOptions) ? file.Section(kLmOptions) : file.Empty();
  if (!options.ok()) return options.status();
  KINGLET_RETURN_IF_ERROR(
      CheckConfig(lm_options, *options, input.ignored, std::string(kLmOptions) + ", "));
  return EspnetConfig{std::move(options).value(), std::move(tokens)};
}

Status SetEspnetTokens(const EspnetConfig& config, LoadedModel& model) {
  ModelDescription& description = model.draft.description;
  const uint64_t words = description.vocabulary_size;
  if (config.tokens.size() != words) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, config.lm.path(), "token_list",
                           std::to_string(words) + " tokens, as many as the tables have rows",
                           std::to_string(config.tokens.size()));
  }
  model.draft.vocabulary = config.tokens;
  return SetSentenceTokens({words - 1, words - 1}, config.lm.path() + ", token_list", description);
}

}  // namespace kinglet
