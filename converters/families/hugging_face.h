// What the config.json of every model of Hugging Face's transformers has in common.
#ifndef KINGLET_CONVERTERS_FAMILIES_HUGGING_FACE_H_
#define KINGLET_CONVERTERS_FAMILIES_HUGGING_FACE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "converters/checkpoints/config_file.h"
#include "converters/families/families.h"
#include "format/activation.h"
#include "kinglet/status.h"

namespace kinglet {

// Options of training, of generation, of number types and output formats and of the library's
// implementation that the families' networks share. "dpq" describes a table that a recipe makes.
inline constexpr std::string_view kHuggingFaceIgnored =
    "bos_token_id eos_token_id _attn_implementation* _commit_hash _name_or_path _num_labels "
    "adaptive architectures attention_probs_dropout_prob attn_implementation attn_pdrop "
    "bad_words_ids begin_suppress_tokens chunk_size_feed_forward classifier_dropout cls_token_id "
    "decoder_start_token_id directionality diversity_penalty do_sample dpq dropatt dropout dtype "
    "early_stopping embd_pdrop encoder_no_repeat_ngram_size exponential_decay_length_penalty "
    "finetuning_task forced_bos_token_id forced_eos_token_id gradient_checkpointing "
    "hidden_dropout_prob id2label init init_range init_std initializer_range label2id language "
    "length_penalty mask_token_id max_length max_new_tokens min_length min_new_tokens "
    "name_or_path no_repeat_ngram_size num_beam_groups num_beams num_labels num_return_sequences "
    "output_attentions output_hidden_states output_past output_scores pad_token_id pooler_fc_size "
    "pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type prefix "
    "problem_type proj_init_std remove_invalid_values renormalize_logits reorder_and_upcast_attn "
    "repetition_penalty resid_pdrop return_dict return_dict_in_generate sep_token_id summary_* "
    "suppress_tokens task_specific_params temperature tf_legacy_loss tgt_len tie_encoder_decoder "
    "tokenizer_class top_k top_p torch_dtype torchscript transformers_version typical_p "
    "unk_token_id use_bfloat16 use_cache";
// Without the first two, for a family that reads them.
inline constexpr std::string_view kHuggingFaceIgnoredButEnds =
    kHuggingFaceIgnored.substr(kHuggingFaceIgnored.find(" _attn") + 1);

// The configuration that the user gives, or config.json next to the checkpoint. Errors:
// KINGLET_NOT_FOUND without one; those of ConfigFile and CheckConfig.
Result<ConfigFile> ReadHuggingFaceConfig(const OptionTable& table, const FamilyInput& input);

// The sizes of these keys, each at least 1 and at most kMaxExtent, words kMaxDimension, layers
// kMaxLayers; the width is a multiple of the heads. Errors: KINGLET_INVALID_CHECKPOINT.
struct TransformerKeys {
  const char *width, *layers, *heads, *positions, *words;
};
struct TransformerConfig {
  uint32_t width = 0, layers = 0, heads = 0, positions = 0, words = 0;
};
Result<TransformerConfig> ReadTransformerSizes(const ConfigFile& file, const TransformerKeys& keys);
// One such size.
Result<uint32_t> ReadSize(const ConfigFile& file, const std::string& key, uint64_t most);

// The activation of this key. Errors: KINGLET_INVALID_CHECKPOINT.
Result<Activation> ReadActivation(const ConfigFile& file, const char* key);

// "tie_word_embeddings", True if absent: whether the decoder's table is that of the words.
Result<bool> TiesWordTables(const ConfigFile& file);
// Notes the tie, or which option states it.
void ShareWordTables(bool tied, const std::string& words, const std::string& decoder,
                     Network& network);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_HUGGING_FACE_H_
