// Options that Hugging Face's transformers write to the config.json of any model.
#ifndef KINGLET_CONVERTERS_FAMILIES_HUGGING_FACE_OPTIONS_H_
#define KINGLET_CONVERTERS_FAMILIES_HUGGING_FACE_OPTIONS_H_

#include <string_view>

namespace kinglet {

// Options of training, of generation, of output formats and of the library's implementation that
// the families' networks share. "dpq" describes a table that a recipe makes.
inline constexpr std::string_view kHuggingFaceIgnored =
    "_attn_implementation* _commit_hash _name_or_path _num_labels adaptive architectures "
    "attention_probs_dropout_prob attn_implementation bad_words_ids begin_suppress_tokens "
    "bos_token_id chunk_size_feed_forward classifier_dropout cls_token_id decoder_start_token_id "
    "directionality diversity_penalty do_sample dpq dropatt dropout dtype early_stopping "
    "encoder_no_repeat_ngram_size eos_token_id exponential_decay_length_penalty finetuning_task "
    "forced_bos_token_id forced_eos_token_id gradient_checkpointing hidden_dropout_prob id2label "
    "init init_range init_std initializer_range label2id language length_penalty mask_token_id "
    "max_length max_new_tokens min_length min_new_tokens name_or_path no_repeat_ngram_size "
    "num_beam_groups num_beams num_labels num_return_sequences output_attentions "
    "output_hidden_states output_past output_scores pad_token_id pooler_fc_size "
    "pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type prefix "
    "problem_type proj_init_std remove_invalid_values renormalize_logits repetition_penalty "
    "return_dict return_dict_in_generate sep_token_id suppress_tokens task_specific_params "
    "temperature tf_legacy_loss tgt_len tie_encoder_decoder tokenizer_class top_k top_p "
    "torch_dtype "
    "torchscript transformers_version typical_p unk_token_id use_bfloat16 use_cache";

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_HUGGING_FACE_OPTIONS_H_
