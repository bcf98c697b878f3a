#include "converters/families/opennmt_settings.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/families/pickled_options.h"
#include "format/limits.h"

namespace kinglet {
namespace {

// Options of OpenNMT-py 0.2 to 3.5 that play a part in training only, or in encoders, word
// features, losses and experts that other options refuse.
#define KINGLET_OPENNMT_IGNORED                                                                   \
  "accum_* adagrad_accumulator_init adam_* alignment_* apex_opt_level audio_enc_pooling "         \
  "average_decay average_every avg_tok_* batch_size* batch_type bidir_edges both_embeddings "     \
  "bridge_extra_node bucket_size* cnn_kernel_width config copy_attn_force copy_attn_type "        \
  "copy_loss_by_seqlength data data_ids data_to_noise data_type data_weights decay_method "       \
  "decay_steps default_specials device_id doc_length *dropout dropout_steps dump_* dynamic_dict " \
  "early_stopping early_stopping_criteria embeddings_type epochs exp exp_host feat_merge "        \
  "feat_vec_* features_vocabs_prefix filter_too_long filter_valid fix_word_vecs_* freeze_* "      \
  "full_context_alignment fuzzy* gpu_* gpuid group_size image_channel_size insert_ratio "         \
  "isolated_tag keep_checkpoint label_smoothing lambda_* langid learn_subwords "                  \
  "learn_subwords_size learning_rate learning_rate_decay lm_prior_* local_rank log_file "         \
  "log_file_level lora_alpha lora_rank loss_scale lower mask_length mask_ratio master_ip "        \
  "master_port max_context max_generator_batches max_grad_norm max_shard_size max_tags "          \
  "model_dtype n_edge_types n_node n_sample n_steps norm_numbers norm_quote_commas "              \
  "normalization num_experts_per_tok num_threads num_workers optim override_opts overwrite "      \
  "paired_* parallel_mode param_init param_init_glorot penn permute_sent_ratio poisson_lambda "   \
  "pool_factor post_remove_control_chars pre_replace_unicode_punct pre_word_vecs_* "              \
  "prefetch_factor prior_tokenization quant_type queue_size random_ratio replace_length "         \
  "report_every reset_optim response_patterns reuse_copy_attn reversible_tokenization rotary_* "  \
  "rotate_ratio same_char same_word sample_rate save_checkpoint_steps save_config save_data "     \
  "save_format save_model scoring_debug scripts_* seed shard_size share_src_tgt_subword "         \
  "share_vocab shuffle single_pass skip_empty_level src_delimiter src_dir src_embeddings "        \
  "src_eq_tgt src_feats_defaults src_feats_vocab src_ggnn_size src_lang src_noise "               \
  "src_noise_prob src_onmttok_kwargs src_prefix src_seq_length* src_spacy_language_model "        \
  "src_subword_* src_suffix src_term_stoken src_tgt_ratio src_vocab src_vocab_size "              \
  "src_vocab_threshold src_words_min_frequency start_decay_steps state_dim subword_prefix* "      \
  "switchout_temperature tags_* tensorboard tensorboard_log_dir term_* termbase_path "            \
  "tgt_embeddings tgt_lang tgt_onmttok_kwargs tgt_prefix tgt_seq_length* "                        \
  "tgt_spacy_language_model tgt_subword_* tgt_suffix tgt_term_* tgt_vocab tgt_vocab_size "        \
  "tgt_vocab_threshold tgt_words_min_frequency timeout tm_* tokendrop_temperature "               \
  "tokenmask_temperature train_align train_eval_steps train_from train_ids train_metrics "        \
  "train_src train_steps train_tgt transforms truncated_decoder update_vocab upper_corpus_ratio " \
  "use_ckpting valid_align valid_batch_size valid_metrics valid_src valid_steps valid_tgt "       \
  "verbose vocab_sample_queue_size vocab_size_multiple w_bit warmup_steps window window_size "    \
  "window_stride with_score world_size zero_out_prompt_loss "
// Sizes and sharing.
#define KINGLET_OPENNMT_BY_TENSORS                                                            \
  "layers enc_layers dec_layers rnn_size enc_rnn_size dec_rnn_size hidden_size enc_hid_size " \
  "dec_hid_size word_vec_size src_word_vec_size tgt_word_vec_size share_embeddings "          \
  "share_decoder_embeddings "
// What both kinds of network run in one way only.
#define KINGLET_OPENNMT_FIXED                                                                 \
  {"model_type", "'text'"}, {"model_task", "'seq2seq'"}, {"generator_function", "'softmax'"}, \
      {"copy_attn", "False"}, {"coverage_attn", "False"}, {"n_src_feats", "0"},               \
      {"src_feats", "''|[]"}, {"lora_layers", "[]"}, {"lora_embedding", "False"},             \
      {"quant_layers", "[]"}, {"residual", "False"}, {                                        \
    "decoder_start_token", "'<s>'"                                                            \
  }

constexpr FixedOption kTransformerFixed[] = {
    KINGLET_OPENNMT_FIXED,
    {"encoder_type", "'transformer'"},
    {"decoder_type", "'transformer'"},
    {"self_attn_type", "'scaled-dot'|'scaled-dot-flash'"},
    {"max_relative_positions", "0"},
    {"relative_positions_buckets", "0"},
    {"sliding_window", "0"},
    {"position_encoding", "True"},
    {"position_encoding_type", "'SinusoidalInterleaved'|'SinusoidalConcat'"},  // stored as a table
    {"aan_useffn", "False"},
    {"layer_norm", "'standard'"},
    {"norm_eps", "1e-06"},
    {"shared_layer_norm", "False"},
    {"parallel_residual", "False"},
    {"multiquery", "False"},
    {"num_kv", "0"},
    {"num_experts", "0"},
};
constexpr FixedOption kRecurrentFixed[] = {
    KINGLET_OPENNMT_FIXED,
    {"decoder_type", "'rnn'"},
    {"global_attention_function", "'softmax'"},
    {"position_encoding", "False"},
    {"context_gate", ""},
};
constexpr OptionTable kOptionTables[] = {
    {"`opt` of a Transformer", "heads pos_ffn_activation_fn add_qkvbias add_ffnbias",
     kTransformerFixed,
     KINGLET_OPENNMT_IGNORED
     "brnn bridge context_gate global_attention global_attention_function input_feed rnn_type",
     KINGLET_OPENNMT_BY_TENSORS "transformer_ff"},
    {"`opt` of a recurrent model", "encoder_type rnn_type global_attention input_feed bridge",
     kRecurrentFixed,
     KINGLET_OPENNMT_IGNORED
     "aan_useffn add_ffnbias add_qkvbias heads layer_norm max_relative_positions multiquery "
     "norm_eps "
     "num_experts num_kv parallel_residual pos_ffn_activation_fn position_encoding_type "
     "relative_positions_buckets self_attn_type shared_layer_norm sliding_window transformer_ff",
     KINGLET_OPENNMT_BY_TENSORS "brnn"},
};
#undef KINGLET_OPENNMT_IGNORED
#undef KINGLET_OPENNMT_BY_TENSORS
#undef KINGLET_OPENNMT_FIXED

// The second element of a pair whose first is a name; null for anything else.
NodeRef SecondOf(const PickleNode& pair, std::string_view* name = nullptr) {
  const auto* items = pair.As<PickleList>();
  if (items == nullptr || items->items.size() != 2) return nullptr;
  const auto* first = items->items[0]->As<std::string>();
  if (first == nullptr) return nullptr;
  if (name != nullptr) *name = *first;
  return items->items[1];
}

// The text of an option that names a kind of network. OpenNMT's default is no Transformer.
Result<std::string> RequiredText(const PickleNode& options, std::string_view option,
                                 const char* expected) {
  const NodeRef found = PickledOption(options, option);
  const auto* text = found == nullptr ? nullptr : found->As<std::string>();
  if (text != nullptr) return *text;
  return RefuseCheckpoint("option " + std::string(option), expected,
                          found == nullptr ? "none" : OptionText(*found));
}

// An option that names one of several values; `absent` where there is none.
template <class Value>
struct Choice {
  std::string_view name;
  Value value;
};
template <class Value, size_t N>
Result<Value> Choose(const PickleNode& options, std::string_view option,
                     const Choice<Value> (&choices)[N], Value absent) {
  const NodeRef found = PickledOption(options, option);
  if (found == nullptr) return absent;
  const auto* text = found->As<std::string>();
  std::string expected;
  for (const Choice<Value>& choice : choices) {
    if (text != nullptr && *text == choice.name) return choice.value;
    expected += (expected.empty() ? "" : " or ") + QuotedName(choice.name);
  }
  return RefuseCheckpoint("option " + std::string(option), expected, OptionText(*found));
}

// An option that is a bool or, in the framework's own files, the number 0 or 1.
Result<bool> ReadTruth(const PickleNode& options, std::string_view option, bool absent) {
  const NodeRef found = PickledOption(options, option);
  if (found == nullptr) return absent;
  if (const auto* truth = found->As<bool>()) return *truth;
  const std::optional<int64_t> number = found->Integer();
  if (number && (*number == 0 || *number == 1)) return *number == 1;
  return RefuseCheckpoint("option " + std::string(option), "0 or 1", OptionText(*found));
}

Result<OpenNmtRecurrent> ReadRecurrent(const PickleNode& options) {
  using Score = std::optional<AttentionScore>;
  OpenNmtRecurrent recurrent;
  recurrent.both_directions = *PickledOption(options, "encoder_type")->As<std::string>() == "brnn";
  constexpr Choice<RecurrentCell> kCells[] = {{"LSTM", RecurrentCell::kLstm},
                                              {"GRU", RecurrentCell::kGru}};
  KINGLET_ASSIGN_OR_RETURN(recurrent.cell,
                           Choose(options, "rnn_type", kCells, RecurrentCell::kLstm));
  constexpr Choice<Score> kScores[] = {{"general", AttentionScore::kGeneral},
                                       {"dot", AttentionScore::kDot},
                                       {"mlp", AttentionScore::kMlp},
                                       {"none", std::nullopt}};
  KINGLET_ASSIGN_OR_RETURN(recurrent.attention, Choose(options, "global_attention", kScores,
                                                       Score(AttentionScore::kGeneral)));
  KINGLET_ASSIGN_OR_RETURN(recurrent.input_feed, ReadTruth(options, "input_feed", true));
  KINGLET_ASSIGN_OR_RETURN(recurrent.bridge, ReadTruth(options, "bridge", false));
  return recurrent;
}

Result<Activation> ReadActivation(const PickleNode& options) {
  // silu has a gate, a third matrix (w_3).
  constexpr Choice<Activation> kActivations[] = {{"relu", Activation::kRelu},
                                                 {"gelu", Activation::kGelu}};
  return Choose(options, "pos_ffn_activation_fn", kActivations, Activation::kRelu);
}

Result<uint32_t> ReadHeads(const PickleNode& options) {
  const NodeRef found = PickledOption(options, "heads");
  const std::optional<int64_t> heads = found == nullptr ? std::nullopt : found->Integer();
  if (!heads || *heads < 1 || *heads > static_cast<int64_t>(kMaxExtent)) {
    return RefuseCheckpoint("option heads", "1 to " + std::to_string(kMaxExtent),
                            found == nullptr ? "none" : OptionText(*found));
  }
  return static_cast<uint32_t>(*heads);
}

// The vocabulary of one side, "src" or "tgt": an entry of the dict `vocab`; in older files `vocab`
// is a list of pairs of side and vocabulary.
NodeRef SideOf(const PickleNode& vocabularies, std::string_view side) {
  const auto* pairs = vocabularies.As<PickleList>();
  if (pairs == nullptr) return vocabularies.Find(side);
  for (const PickleNode* pair : pairs->items) {
    std::string_view name;
    const NodeRef second = SecondOf(*pair, &name);
    if (second != nullptr && name == side) return second;
  }
  return nullptr;
}

Result<std::vector<std::string>> TextsOf(const PickleList& list, const std::string& where) {
  std::vector<std::string> texts;
  texts.reserve(list.items.size());
  for (const PickleNode* item : list.items) {
    const auto* text = item->As<std::string>();
    if (text == nullptr) {
      return RefuseCheckpoint(where + ", word " + std::to_string(texts.size()), "text",
                              item->Describe());
    }
    texts.push_back(*text);
  }
  return texts;
}

// OpenNMT-py 3 saves the list of words. Before that, it is inside torchtext's objects: a Vocab has
// `itos`, a Field has a `vocab`, and a TextMultiField or a list has pairs of name and Field, of
// which all but the first are word features.
Result<std::vector<std::string>> ReadWords(const PickleNode& vocabularies, std::string_view side) {
  const std::string where = "vocab, " + std::string(side);
  NodeRef node = SideOf(vocabularies, side);
  constexpr int kDeepest = 4;
  for (int depth = 0; node != nullptr && depth < kDeepest; ++depth) {
    if (const NodeRef words = PickledOption(*node, "itos")) {
      const auto* list = words->As<PickleList>();
      if (list == nullptr)
        return RefuseCheckpoint(where, "a list of words as itos", words->Describe());
      return TextsOf(*list, where);
    }
    if (const NodeRef vocabulary = PickledOption(*node, "vocab")) {
      node = vocabulary;
      continue;
    }
    const NodeRef inside = PickledOption(*node, "fields");
    const auto* fields = (inside != nullptr ? inside : node)->As<PickleList>();
    if (fields == nullptr || fields->items.empty()) break;
    if (depth == 0 && fields->items[0]->As<std::string>() != nullptr)
      return TextsOf(*fields, where);
    if (fields->items.size() > 1) {
      return RefuseCheckpoint(where, "words without features",
                              std::to_string(fields->items.size()) + " fields");
    }
    node = SecondOf(*fields->items[0]);
  }
  return RefuseCheckpoint(where, "a list of words, or a torchtext vocabulary",
                          (node == nullptr ? "none" : node->Describe()) +
                              std::string(" (save the checkpoint as OpenNMT-py does)"));
}

}  // namespace

std::span<const OptionTable> OpenNmtOptions() { return kOptionTables; }

Result<OpenNmtSettings> ReadOpenNmtSettings(const PickleNode& root, IgnoredOptions* ignored) {
  const NodeRef options = root.Find("opt"), vocabularies = root.Find("vocab");
  if (options == nullptr || vocabularies == nullptr) {
    return RefuseCheckpoint("entries", "OpenNMT's 'opt' and 'vocab' next to 'model'",
                            options == nullptr ? "no 'opt'" : "no 'vocab'");
  }
  KINGLET_ASSIGN_OR_RETURN(
      const std::string encoder,
      RequiredText(*options, "encoder_type", "'transformer', 'rnn' or 'brnn'"));
  KINGLET_RETURN_IF_ERROR(
      RequiredText(*options, "decoder_type", "'transformer' or 'rnn'").status());
  const bool recurrent = encoder == "rnn" || encoder == "brnn";
  KINGLET_RETURN_IF_ERROR(CheckOptions(kOptionTables[recurrent ? 1 : 0], "checkpoint", "option ",
                                       PickledOptions(*options), ignored));
  OpenNmtSettings settings;
  if (recurrent) {
    KINGLET_ASSIGN_OR_RETURN(settings.recurrent, ReadRecurrent(*options));
  } else {
    KINGLET_ASSIGN_OR_RETURN(settings.heads, ReadHeads(*options));
    KINGLET_ASSIGN_OR_RETURN(settings.activation, ReadActivation(*options));
    KINGLET_ASSIGN_OR_RETURN(settings.attention_biases, ReadTruth(*options, "add_qkvbias", true));
    KINGLET_ASSIGN_OR_RETURN(settings.inner_biases, ReadTruth(*options, "add_ffnbias", true));
  }
  KINGLET_ASSIGN_OR_RETURN(settings.shares_embeddings,
                           ReadTruth(*options, "share_embeddings", false));
  KINGLET_ASSIGN_OR_RETURN(settings.shares_generator,
                           ReadTruth(*options, "share_decoder_embeddings", false));
  KINGLET_ASSIGN_OR_RETURN(settings.source_words, ReadWords(*vocabularies, "src"));
  KINGLET_ASSIGN_OR_RETURN(settings.target_words, ReadWords(*vocabularies, "tgt"));
  const auto& words = settings.target_words;
  const NodeRef stated = vocabularies->Find("decoder_start_token");
  const auto* text = stated == nullptr ? nullptr : stated->As<std::string>();
  const std::string first = text == nullptr ? "<s>" : *text;
  const auto start = std::find(words.begin(), words.end(), first);
  if (start == words.end()) {
    return RefuseCheckpoint("vocab, tgt", "a word " + first + ", which begins targets", "none");
  }
  settings.start_token = static_cast<uint32_t>(start - words.begin());
  return settings;
}

}  // namespace kinglet
