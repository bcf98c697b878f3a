#include "converters/families/fairseq_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/families/pickled_options.h"
#include "format/limits.h"

namespace kinglet {
namespace {

// The number of positions of checkpoints that state none.
constexpr uint32_t kDefaultPositions = 1024;

constexpr const char* kArgs = "args";

// The network's options are those of fairseq's transformer_lm and its task language_modeling; the
// others are those of its trainer, optimisers, criterions and data.
constexpr FixedOption kFixedOptions[] = {
    {"arch", "'transformer_lm*'", true},
    {"_name", "'transformer_lm*'", true},
    {"layernorm_embedding", "False"},
    {"scale_attn", "False"},  // NormFormer
    {"scale_fc", "False"},
    {"scale_heads", "False"},
    {"scale_resids", "False"},
    {"base_layers", "0"},
    {"moe_freq", "0"},  // of the branch with experts
    {"moe_expert_count", "0"},
    {"is_moe", "False"},
    {"alternate_decoder_ffn_embed_dim", "0"},
    {"use_stable_embedding", "False"},
    {"alibi", "False"},
    {"decoder_layers_to_keep", ""},
    {"decoder_xformers_att_config", ""},
    {"cross_self_attention", "False"},
    {"char_inputs", "False"},
    {"quant_noise_scalar", "0"},  // evaluates with rounded weights
    {"quantization_config_path", ""},
    {"model_parallel_size", "1"},
    {"add_bos_token", "False"},
    {"output_dictionary_size", "-1"},
    {"self_target", "False"},
    {"past_target", "False"},
    {"pad", "1"},
    {"eos", "2"},
    {"unk", "3"},
};
constexpr OptionTable kOptionTable = {
    "`args`, `cfg.model`, `cfg.task`",
    "decoder_layers decoder_embed_dim decoder_input_dim decoder_output_dim decoder_ffn_embed_dim "
    "decoder_attention_heads decoder_normalize_before no_decoder_final_norm decoder_final_norm "
    "activation_fn max_target_positions max_positions tokens_per_sample "
    "no_token_positional_embeddings decoder_learned_pos no_scale_embedding adaptive_input "
    "adaptive_input_cutoff adaptive_input_factor adaptive_softmax_cutoff adaptive_softmax_factor "
    "tie_adaptive_weights tie_adaptive_proj no_tie_adaptive_proj "
    "share_decoder_input_output_embed character_embeddings character_filters "
    "character_embedding_dim char_embedder_highway_layers quant_noise_pq",
    kFixedOptions,
    "adadelta_* adafactor_* adam* aim_* align_suffix alignfile all_gather_list_size amp_* amp "
    "anneal_eps average_sync azureml_logging base_shuffle base_sublayers baseline_model "
    "baseline_model_langs batch_size batch_size_valid beam beam_mt bert_score_lang "
    "best_checkpoint_metric beta1 bf16 block_lr block_momentum bmuf bpe* broadcast_buffers "
    "bucket_cap_mb buffer_size checkpoint_activations checkpoint_shard_count checkpoint_suffix "
    "clip_norm clip_threshold combine_valid_subsets constraints context_window continue_once "
    "cpu cpu_offload criterion curriculum data data_buffer_size dataset_impl ddp_* "
    "debug_param_names decay_rate decay_steps decoder_embed_path decoder_layerdrop "
    "decoding_format destdir device_id dict_only disable_validation distributed_* "
    "diverse_beam_groups diverse_beam_strength diversity_rate *_dropout dropout dummy_a2a "
    "ema_decay ema_fp32 ema_seed_model ema_start_update ema_update_freq empty_cache_freq "
    "end_learning_rate eos_prob_threshold eos_token epoch2lr export fast_stat_sync "
    "final_lr_scale find_unused_parameters finetune_from_model fix_batches_to_gpus "
    "fixed_validation_seed force_anneal fp16* fp32_reduce_scatter future_target gen_subset "
    "global_sync_iter gpt2_* gradient_as_bucket_view grouped_shuffling heartbeat_timeout "
    "hold_steps ignore_prefix_size ignore_unused_valid_subsets init_lr_scale iter_decode_* "
    "joined_dictionary keep_* label_smoothing lamb_* lang_to_offline_shard_ratio langs "
    "lazy_load lenpen lenpen_mt lm_path lm_weight load_checkpoint_on_all_dp_ranks localsgd_* "
    "log_file log_format log_interval log_keys log_nvidia_smi lr_* lr match_source_len "
    "max_epoch max_len_a max_len_a_mt max_len_b max_len_b_mt max_lr max_sentences "
    "max_sentences_valid max_source_positions max_tokens max_tokens_valid max_update "
    "max_valid_steps maximize_best_checkpoint_metric memory_efficient_* min_len min_loss_scale "
    "min_lr min_params_to_wrap model_overrides moe_batch_prioritized_routing "
    "moe_eval_capacity_token_fraction moe_expert_ffn_dim moe_gate_loss_combine_method "
    "moe_gate_loss_transform moe_gate_loss_wt moe_gating_use_fp32 moe_normalize_expert_grad "
    "moe_normalize_gate_prob_before_dropping moe_second_expert_policy moe_top1_expert momentum "
    "moses_* multilang_sampling_alpha nbest no_beamable_mm no_best_checkpoints "
    "no_bias_correction no_cross_attention no_early_stop no_epoch_checkpoints "
    "no_last_checkpoints no_progress_bar no_repeat_ngram_size no_reshard_after_forward no_save* "
    "no_seed_provided not_fsdp_flatten_parameters nprocs_per_node num_shards num_workers "
    "num_workers_valid offload_activations on_cpu_convert_precision only_source optimizer "
    "optimizer_overrides output_format output_word_probs output_word_stats pad_to_fixed_bsz "
    "pad_to_fixed_length padding_factor path patience phase_ratio pipeline_* plasma_path "
    "post_process power prefix_size print_alignment print_step profile "
    "quant_noise_pq_block_size quiet raw_text record_a2a_perf_stats relative_step remove_bpe "
    "replace_unk report_accuracy required_batch_size_multiple required_seq_len_multiple reset_* "
    "restore_file results_path retain_dropout_modules retain_iter_history s3_upload_path "
    "sacrebleu* sample_break_mode sampling sampling_temperature sampling_topk sampling_topp "
    "save_* scale_parameter score_reference scoring seed sentence_avg sentencepiece_* shard_id "
    "shorten_data_split_list shorten_method shrink_min simul_type "
    "skip_invalid_size_inputs_valid_test skip_remainder_batch slowmo_* softmax_batch "
    "source_lang stats_path stop_min_lr stop_time_hours store_ema suppress_crashes "
    "symlink_best_and_last_checkpoints t_mult target_lang task tbmf_wrapper temperature "
    "tensorboard_* threshold_loss_scale tokenizer total_num_update tpu train_subset unkpen "
    "unnormalized update2lr update_epoch_batch_itr update_freq update_ordered_indices_seed "
    "use_bmuf use_moe_pad_mask use_nbm use_old_adam use_plasma_view use_sharded_state user_dir "
    "valid_subset validate_* wandb_* warmup_* weight_decay wer_* world_size "
    "write_checkpoints_asynchronously zero_sharding"};

// The option, or null if it is absent or None, or `options` is null.
const PickleNode* Entry(const PickleNode* options, std::string_view name) {
  const PickleNode* found = options == nullptr ? nullptr : PickledOption(*options, name);
  return found == nullptr || found->As<PickleNone>() != nullptr ? nullptr : found;
}

// The numbers of "20000,60000", as the command line takes them, also in brackets. Returns nullopt
// for any other text.
std::optional<std::vector<int64_t>> ParseIntegers(std::string text) {
  std::erase_if(text,
                [](char c) { return std::string_view(" []()").find(c) != std::string::npos; });
  std::vector<int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int64_t number = 0;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec != std::errc()) return std::nullopt;
    numbers.push_back(number);
    at = parsed.ptr;
    if (at != end && *at++ != ',') return std::nullopt;
  }
  return numbers;
}

// The pairs of "[(1, 64), (2, 128)]", as the command line takes filters: Python's text of a list or
// tuple of pairs. Returns nullopt for any other text.
std::optional<std::vector<std::vector<int64_t>>> ParsePairs(std::string text) {
  std::erase(text, ' ');
  std::replace(text.begin(), text.end(), '[', '(');
  std::replace(text.begin(), text.end(), ']', ')');
  const bool enclosed = text.starts_with("((") && text.ends_with(')');
  if (enclosed) text = text.substr(1, text.size() - 2);
  std::vector<std::vector<int64_t>> pairs;
  std::string_view left = text;
  while (!left.empty()) {
    const size_t end = left.find(')');
    if (left.front() != '(' || end == std::string_view::npos) return std::nullopt;
    const std::string_view pair = left.substr(1, end - 1);
    const auto numbers = ParseIntegers(std::string(pair));
    if (!numbers || pair.find('(') != std::string_view::npos) return std::nullopt;
    pairs.push_back(*numbers);
    left.remove_prefix(end + 1);
    if (left.empty()) break;
    if (left.front() != ',') return std::nullopt;
    left.remove_prefix(1);
  }
  if (!enclosed && pairs.size() == 1) return std::nullopt;  // "[1, 64]" is a pair, not a list
  return pairs;
}

class FairseqConfigReader {
 public:
  // Hyper-parameters are looked for in `model`, then in `task`, which may be nullptr.
  FairseqConfigReader(std::string where, const PickleNode& model, const PickleNode* task)
      : where_(std::move(where)), model_(model), task_(task) {}

  Result<FairseqConfig> Read(IgnoredOptions* ignored) {
    KINGLET_RETURN_IF_ERROR(CheckNetwork(ignored));
    KINGLET_RETURN_IF_ERROR(ReadSizes());
    KINGLET_RETURN_IF_ERROR(ReadActivation());
    KINGLET_RETURN_IF_ERROR(ReadPositions());
    KINGLET_RETURN_IF_ERROR(ReadNorms());
    KINGLET_RETURN_IF_ERROR(ReadTables());
    KINGLET_RETURN_IF_ERROR(ReadNoise());
    KINGLET_ASSIGN_OR_RETURN(const bool unscaled, Truth("no_scale_embedding"));
    config_.scaled = !unscaled;
    return std::move(config_);
  }

 private:
  Status Refuse(std::string_view name, const std::string& expected,
                const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint",
                           where_ + "." + std::string(name), expected, found);
  }

  const PickleNode* Find(std::string_view name) const {
    const PickleNode* found = Entry(&model_, name);
    return found != nullptr ? found : Entry(task_, name);
  }

  // False if the option is absent.
  Result<bool> Truth(std::string_view name) const {
    const PickleNode* node = Find(name);
    if (node == nullptr) return false;
    if (const auto* truth = node->As<bool>()) return *truth;
    if (const auto number = node->Integer()) return *number != 0;
    return Refuse(name, "True or False", node->Describe());
  }

  Result<uint32_t> InRange(std::string_view name, int64_t value, uint64_t most) const {
    if (value >= 1 && static_cast<uint64_t>(value) <= most) return static_cast<uint32_t>(value);
    return Refuse(name, "1 to " + std::to_string(most), std::to_string(value));
  }

  Result<uint32_t> Size(std::string_view name, uint64_t most) const {
    const PickleNode* node = Find(name);
    if (node == nullptr) return Refuse(name, "a number", "none");
    const std::optional<int64_t> number = node->Integer();
    if (!number) return Refuse(name, "a number", node->Describe());
    return InRange(name, *number, most);
  }
  Result<uint32_t> SizeOr(std::string_view name, uint64_t most, uint32_t otherwise) const {
    if (Find(name) == nullptr) return otherwise;
    return Size(name, most);
  }

  // A float in newer versions. The width is divided by its powers and rounded down.
  Result<uint32_t> Factor(std::string_view name, uint32_t otherwise) const {
    const PickleNode* node = Find(name);
    const auto* number = node == nullptr ? nullptr : node->As<double>();
    if (number == nullptr) return SizeOr(name, kMaxExtent, otherwise);
    if (*number == std::floor(*number) && std::abs(*number) <= kMaxExtent) {
      return InRange(name, static_cast<int64_t>(*number), kMaxExtent);
    }
    return Refuse(name, "an integer", OptionText(*node));
  }

  Status CheckNetwork(IgnoredOptions* ignored) const {
    KINGLET_RETURN_IF_ERROR(
        CheckOptions(kOptionTable, "checkpoint", where_ + ".", PickledOptions(model_), ignored));
    if (task_ == nullptr) return {};
    std::vector<StatedOption> task = PickledOptions(*task_);
    std::erase_if(task, [](const StatedOption& option) { return option.name == "_name"; });
    return CheckOptions(kOptionTable, "checkpoint", "cfg.task.", task, ignored);
  }

  Status ReadActivation() {
    struct Known {
      std::string_view name;
      Activation activation;
    };
    static constexpr Known kKnown[] = {{"relu", Activation::kRelu},
                                       {"gelu", Activation::kGelu},
                                       {"tanh", Activation::kTanh},
                                       {"linear", Activation::kNone}};
    const PickleNode* node = Find("activation_fn");
    if (node == nullptr) return {};
    const auto* name = node->As<std::string>();
    for (const Known& known : kKnown) {
      if (name == nullptr || *name != known.name) continue;
      config_.activation = known.activation;
      return {};
    }
    return Status::Refusal(KINGLET_UNSUPPORTED, "checkpoint", where_ + ".activation_fn",
                           "'relu', 'gelu', 'tanh' or 'linear'",
                           OptionText(*node) + " (convert a model trained with one of these)");
  }

  Status ReadSizes() {
    KINGLET_ASSIGN_OR_RETURN(config_.layers, Size("decoder_layers", kMaxLayers));
    KINGLET_ASSIGN_OR_RETURN(config_.width, Size("decoder_embed_dim", kMaxExtent));
    KINGLET_ASSIGN_OR_RETURN(config_.inner, Size("decoder_ffn_embed_dim", kMaxExtent));
    KINGLET_ASSIGN_OR_RETURN(config_.heads, Size("decoder_attention_heads", kMaxExtent));
    KINGLET_ASSIGN_OR_RETURN(config_.input_width,
                             SizeOr("decoder_input_dim", kMaxExtent, config_.width));
    KINGLET_ASSIGN_OR_RETURN(config_.output_width,
                             SizeOr("decoder_output_dim", kMaxExtent, config_.width));
    // The sinusoids' frequencies are width / 2 numbers, divided by one less.
    if (config_.width < 4 || config_.width % 2 != 0) {
      return Refuse("decoder_embed_dim", "an even number from 4", std::to_string(config_.width));
    }
    if (config_.width % config_.heads == 0) return {};
    return Refuse("decoder_attention_heads", "a divisor of " + std::to_string(config_.width),
                  std::to_string(config_.heads));
  }

  // The number of positions. The oldest files have one length for sources and targets.
  Status ReadPositions() {
    const char* name = "tokens_per_sample";
    if (Find("max_positions") != nullptr) name = "max_positions";
    if (Find("max_target_positions") != nullptr) name = "max_target_positions";
    KINGLET_ASSIGN_OR_RETURN(config_.positions, SizeOr(name, kMaxExtent, kDefaultPositions));
    KINGLET_ASSIGN_OR_RETURN(const bool none, Truth("no_token_positional_embeddings"));
    config_.has_positions = !none;
    KINGLET_ASSIGN_OR_RETURN(config_.learned_positions, Truth("decoder_learned_pos"));
    return {};
  }

  // Versions that save `args` have the norms first and always state it. Newer versions have
  // no_decoder_final_norm, older ones decoder_final_norm, and those with no_tie_adaptive_proj had
  // no final norm.
  Status ReadNorms() {
    const char* order = "decoder_normalize_before";
    if (Find(order) != nullptr) {
      KINGLET_ASSIGN_OR_RETURN(config_.norm_first, Truth(order));
    } else if (where_ != kArgs) {
      return Refuse(order, "True or False",
                    "none (the default differs between versions of fairseq)");
    }
    KINGLET_ASSIGN_OR_RETURN(const bool none, Truth("no_decoder_final_norm"));
    config_.final_norm = !none && Find("no_tie_adaptive_proj") == nullptr;
    if (Find("decoder_final_norm") != nullptr) {
      KINGLET_ASSIGN_OR_RETURN(config_.final_norm, Truth("decoder_final_norm"));
    }
    config_.final_norm = config_.final_norm && config_.norm_first;
    return {};
  }

  Status ReadNoise() {
    const char* name = "quant_noise_pq";
    const PickleNode* node = Find(name);
    if (node == nullptr) return {};
    const std::string value = OptionText(*node);
    KINGLET_ASSIGN_OR_RETURN(const bool adaptive, Truth("adaptive_input"));
    if (value == "0" || adaptive) return {};
    if (config_.characters || config_.input_width != config_.width) {
      return Status::Refusal(KINGLET_UNSUPPORTED, "checkpoint", where_ + "." + name,
                             "0, as the embedding is not a plain table of the network's width",
                             value + " (convert a model trained without it)");
    }
    config_.noise_matrix = true;
    return {};
  }

  Status ReadCharacters() {
    KINGLET_ASSIGN_OR_RETURN(const bool present, Truth("character_embeddings"));
    if (!present) return {};
    FairseqCharacters& characters = config_.characters.emplace();
    KINGLET_ASSIGN_OR_RETURN(characters.vector_width, SizeOr("character_embedding_dim", kMaxExtent,
                                                             characters.vector_width));
    KINGLET_ASSIGN_OR_RETURN(characters.filters, Filters("character_filters"));
    const char* layers = "char_embedder_highway_layers";
    const PickleNode* node = Find(layers);
    if (node != nullptr && node->Integer() == 0) {
      characters.highway_layers = 0;
      return {};
    }
    KINGLET_ASSIGN_OR_RETURN(characters.highway_layers,
                             SizeOr(layers, kMaxLayers, characters.highway_layers));
    return {};
  }

  Result<std::vector<FairseqCharacters::Filter>> Filters(std::string_view name) const {
    // fairseq's DEFAULT_CHARACTER_FILTERS.
    static constexpr FairseqCharacters::Filter kDefault[] = {{1, 64},  {2, 128}, {3, 192}, {4, 256},
                                                             {5, 256}, {6, 256}, {7, 256}};
    const PickleNode* node = Find(name);
    if (node == nullptr) return std::vector(std::begin(kDefault), std::end(kDefault));
    const std::string expected = "a list of pairs (width, channels), widths from 1 to " +
                                 std::to_string(FairseqCharacters::kLongest);
    std::optional<std::vector<std::vector<int64_t>>> pairs;
    if (const auto* text = node->As<std::string>()) {
      pairs = ParsePairs(*text);
      if (!pairs) return Refuse(name, expected, QuotedName(*text));
    } else if (const auto* list = node->As<PickleList>()) {
      pairs.emplace();
      for (const PickleNode* item : list->items) {
        const auto pair = item->Integers();
        if (!pair) return Refuse(name, expected, "a list with " + item->Describe());
        pairs->push_back(*pair);
      }
    } else {
      return Refuse(name, expected, node->Describe());
    }
    if (pairs->empty()) return Refuse(name, expected, "none");
    std::vector<FairseqCharacters::Filter> filters;
    for (const std::vector<int64_t>& pair : *pairs) {
      if (pair.size() != 2) {
        return Refuse(name, expected, std::to_string(pair.size()) + " numbers");
      }
      KINGLET_ASSIGN_OR_RETURN(const uint32_t width,
                               InRange(name, pair[0], FairseqCharacters::kLongest));
      KINGLET_ASSIGN_OR_RETURN(const uint32_t channels, InRange(name, pair[1], kMaxExtent));
      filters.push_back({width, channels});
    }
    return filters;
  }

  Status ReadTables() {
    KINGLET_RETURN_IF_ERROR(ReadCharacters());
    KINGLET_ASSIGN_OR_RETURN(const bool adaptive, Truth("adaptive_input"));
    if (adaptive && !config_.characters) {
      KINGLET_ASSIGN_OR_RETURN(config_.input,
                               Bands("adaptive_input_cutoff", "adaptive_input_factor"));
      if (config_.input.cutoffs.empty()) {
        return Refuse("adaptive_input_cutoff", "a list, as adaptive_input is set", "none");
      }
    }
    KINGLET_ASSIGN_OR_RETURN(config_.output,
                             Bands("adaptive_softmax_cutoff", "adaptive_softmax_factor"));
    const bool adaptive_softmax = !config_.output.cutoffs.empty();
    const char* tie =
        adaptive_softmax ? "tie_adaptive_weights" : "share_decoder_input_output_embed";
    KINGLET_ASSIGN_OR_RETURN(config_.tied_tables, Truth(tie));
    KINGLET_ASSIGN_OR_RETURN(bool tied_projections, Truth("tie_adaptive_proj"));
    if (Find("no_tie_adaptive_proj") != nullptr) {
      KINGLET_ASSIGN_OR_RETURN(const bool not_tied, Truth("no_tie_adaptive_proj"));
      tied_projections = tied_projections || !not_tied;
    }
    config_.tied_projections = config_.tied_tables && adaptive_softmax && tied_projections;
    return CheckTies(tie);
  }

  Result<FairseqBands> Bands(std::string_view cutoffs, std::string_view factor) const {
    FairseqBands bands;
    const PickleNode* node = Find(cutoffs);
    if (node == nullptr) return bands;
    const std::string expected = "ascending words from 1, at most " + std::to_string(kMaxBins - 1);
    std::optional<std::vector<int64_t>> words;
    if (const auto* text = node->As<std::string>()) {
      words = ParseIntegers(*text);
      if (!words) return Refuse(cutoffs, expected, QuotedName(*text));
    } else {
      words = node->Integers();
      if (!words) return Refuse(cutoffs, expected, node->Describe());
    }
    if (words->size() >= kMaxBins) return Refuse(cutoffs, expected, std::to_string(words->size()));
    int64_t before = 0;
    for (const int64_t word : *words) {
      if (word <= before || word > static_cast<int64_t>(kMaxDimension)) {
        return Refuse(cutoffs, expected, std::to_string(word));
      }
      bands.cutoffs.push_back(static_cast<uint32_t>(word));
      before = word;
    }
    KINGLET_ASSIGN_OR_RETURN(bands.factor, Factor(factor, bands.factor));
    return bands;
  }

  // Refuses ties that fairseq itself refuses.
  Status CheckTies(const char* tie) const {
    if (!config_.tied_tables) return {};
    if (config_.characters) {
      return Refuse(tie, "False, as the input is computed from characters", "True");
    }
    if (config_.input_width != config_.output_width) {
      return Refuse(tie, "False, as decoder_input_dim and decoder_output_dim differ", "True");
    }
    if (config_.output.cutoffs.empty()) {
      if (config_.input.cutoffs.empty()) return {};
      return Refuse(tie, "False, as the input is adaptive and the softmax is not", "True");
    }
    if (config_.input.cutoffs != config_.output.cutoffs ||
        config_.input.factor != config_.output.factor) {
      return Refuse(tie, "False, as the bands of input and softmax differ", "True");
    }
    if (config_.width == config_.output_width) return {};
    return Refuse(tie, "False, as decoder_embed_dim and decoder_output_dim differ", "True");
  }

  const std::string where_;
  const PickleNode& model_;
  const PickleNode* const task_;
  FairseqConfig config_;
};

}  // namespace

std::span<const OptionTable> FairseqOptions() { return {&kOptionTable, 1}; }

Result<FairseqConfig> ReadFairseqConfig(const PickleNode& root, IgnoredOptions* ignored) {
  if (const PickleNode* args = Entry(&root, kArgs)) {
    return FairseqConfigReader(kArgs, *args, nullptr).Read(ignored);
  }
  const PickleNode* config = Entry(&root, "cfg");
  if (const PickleNode* model = Entry(config, "model")) {
    return FairseqConfigReader("cfg.model", *model, Entry(config, "task")).Read(ignored);
  }
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", "hyper-parameters",
                         "'args' or 'cfg' with 'model' next to the state dict, as fairseq saves",
                         config != nullptr ? "'cfg' without 'model'" : "neither");
}

}  // namespace kinglet
