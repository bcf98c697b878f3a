#include "converters/families/frameworks.h"

#include <array>

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kMicronetNames = {
    "loss.layers.#.weight|embed.layers.#.weight"sv,
    "?embed.layers.#.weight"sv,
    "loss.layers.#.bias"sv,
    "?embed.projections.#.weight"sv,
    "?loss.projections.#.weight"sv,
    "?loss.clusters.%"sv,
    "?loss.cache_theta_inv_softplus"sv,
    "?loss.cache_lambda_inv_sigmoid"sv,
    "layers.#.pos_emb"sv,
    "layers.#.ln1.%"sv,
    "layers.#.qkv.%"sv,
    "layers.#.out.weight"sv,
    "layers.#.ln2.%"sv,
    "layers.#.fc.0.%"sv,
    "layers.#.fc.3.%"sv,
    "?*.max_abs"sv,
    "?*.inv_scale"sv,
};

constexpr std::array kAwdLstmNames = {
    "encoder.weight"sv,
    "rnns.#.module.weight_ih_l0|rnns.#.weight_ih_l0|rnns.#.linear.module.weight_raw|"
    "rnns.#.linear.weight"sv,
    "rnns.#.module.weight_hh_l0_raw|rnns.#.weight_hh_l0_raw|rnns.#.weight_hh_l0|rnns.#.linear."
    "module.weight_raw|"
    "rnns.#.linear.weight"sv,
    "rnns.#.module.bias_ih_l0|rnns.#.bias_ih_l0|rnns.#.linear.module.bias|rnns.#.linear.bias"sv,
    "?rnns.#.module.*"sv,
    "?rnns.#.weight_*"sv,
    "?rnns.#.bias_*"sv,
    "?rnns.#.linear.*"sv,
    "decoder.%"sv,
    "?criterion.*"sv,
};

constexpr std::array kDefineAwdLstmNames = {
    "embeddings.embeds.#.weight"sv,
    "?embeddings.projcs.#.weight"sv,
    "?embeddings.classes.%"sv,
    "?define.weights.#.%"sv,
    "define.finalProj.%"sv,
    "lstms.#.module.weight_ih_l0"sv,
    "lstms.#.module.weight_hh_l0_raw"sv,
    "?lstms.#.module.weight_hh_l0"sv,
    "lstms.#.module.bias_ih_l0"sv,
    "lstms.#.module.bias_hh_l0"sv,
};

constexpr std::array kPytorchExamplesNames = {
    "encoder.weight"sv, "rnn.weight_ih_l#"sv, "rnn.weight_hh_l#"sv,
    "rnn.bias_ih_l#"sv, "rnn.bias_hh_l#"sv,   "decoder.%"sv,
};

// With a slash, as TensorFlow writes them; slots of optimisers end with their own names.
constexpr std::array kZarembaNames = {
    "Model/embedding|Model/full_emb/embedding|Model/kdq_emb/query_wemb"sv,
    "?Model/kdq_emb/*"sv,
    "Model/RNN/*lstm_cell/kernel"sv,
    "Model/RNN/*lstm_cell/bias"sv,
    "Model/softmax_w"sv,
    "Model/softmax_b"sv,
    "?*global_step"sv,
    "?Model/Variable*"sv,
    "?Train/*"sv,
    "?*/Adam*"sv,
    "?*/Momentum"sv,
};

constexpr std::array kTransformerXlNames = {
    "word_emb.emb_layers.#.weight"sv,
    "?word_emb.emb_projs.#"sv,
    "pos_emb.inv_freq"sv,
    "r_w_bias|layers.*.dec_attn.r_w_bias"sv,
    "r_r_bias|layers.*.dec_attn.r_r_bias"sv,
    "?layers.#.dec_attn.r_*_bias"sv,
    "layers.#.dec_attn.qkv_net.weight"sv,
    "layers.#.dec_attn.r_net.weight"sv,
    "layers.#.dec_attn.o_net.weight"sv,
    "layers.#.dec_attn.layer_norm.%"sv,
    "layers.#.pos_ff.CoreNet.0.%"sv,
    "layers.#.pos_ff.CoreNet.3.%"sv,
    "layers.#.pos_ff.layer_norm.%"sv,
    "crit.out_layers.#.%"sv,
    "?crit.out_projs.#"sv,
    "?crit.cluster_*"sv,
};

constexpr std::array kTransfoXlNames = {
    "transformer.word_emb.emb_layers.#.weight"sv,
    "?transformer.word_emb.emb_projs.#"sv,
    "transformer.pos_emb.inv_freq"sv,
    "transformer.r_w_bias|transformer.layers.*.dec_attn.r_w_bias"sv,
    "transformer.r_r_bias|transformer.layers.*.dec_attn.r_r_bias"sv,
    "?transformer.layers.#.dec_attn.r_*_bias"sv,
    "transformer.layers.#.dec_attn.qkv_net.weight"sv,
    "transformer.layers.#.dec_attn.r_net.weight"sv,
    "transformer.layers.#.dec_attn.o_net.weight"sv,
    "transformer.layers.#.dec_attn.layer_norm.%"sv,
    "transformer.layers.#.pos_ff.CoreNet.0.%"sv,
    "transformer.layers.#.pos_ff.CoreNet.3.%"sv,
    "transformer.layers.#.pos_ff.layer_norm.%"sv,
    "crit.out_layers.#.bias"sv,
    "?crit.out_layers.#.weight"sv,
    "?crit.out_projs.#"sv,
    "?crit.cluster_*"sv,
};

constexpr std::array kFairseqNames = {
    "decoder.embed_tokens.weight|decoder.embed_tokens.embeddings.0.0.weight|"
    "decoder.embed_tokens.char_embeddings.weight"sv,
    "?decoder.embed_tokens.*"sv,
    "decoder.layers.#.self_attn.in_proj_weight|decoder.layers.#.self_attn.q_proj.weight"sv,
    "?decoder.layers.#.self_attn.*"sv,
    "decoder.layers.#.self_attn.out_proj.%"sv,
    "decoder.layers.#.self_attn_layer_norm.%|decoder.layers.#.layer_norms.0.%"sv,
    "decoder.layers.#.final_layer_norm.%|decoder.layers.#.layer_norms.1.%|"
    "decoder.layers.#.layer_norms.2.%"sv,
    "decoder.layers.#.fc1.%"sv,
    "decoder.layers.#.fc2.%"sv,
    "?decoder.embed_positions.*"sv,
    "?decoder.layer_norm.%"sv,
    "?decoder.project_in_dim.weight"sv,
    "?decoder.quant_noise.weight"sv,
    "?decoder.project_out_dim.weight"sv,
    "?decoder.adaptive_softmax.*"sv,
    "?decoder.output_projection.weight"sv,
    "?decoder.embed_out"sv,
    "?decoder.version"sv,
};

constexpr std::array kFairseqTranslationNames = {
    "encoder.embed_tokens.weight"sv,
    "decoder.embed_tokens.weight"sv,
    "encoder.layers.#.self_attn.out_proj.%"sv,
    "encoder.layers.#.fc1.%"sv,
    "encoder.layers.#.fc2.%"sv,
    "?encoder.layers.#.*"sv,
    "decoder.layers.#.self_attn.out_proj.%"sv,
    "decoder.layers.#.encoder_attn.out_proj.%"sv,
    "decoder.layers.#.fc1.%"sv,
    "decoder.layers.#.fc2.%"sv,
    "?decoder.layers.#.*"sv,
    "?encoder.embed_positions.*"sv,
    "?decoder.embed_positions.*"sv,
    "?encoder.layer*norm*"sv,
    "?decoder.layer*norm*"sv,
    "?decoder.output_projection.weight"sv,
    "?decoder.embed_out"sv,
    "?encoder.version"sv,
    "?decoder.version"sv,
};

constexpr std::array kOpenNmtNames = {
    "encoder.embeddings.make_embedding.emb_luts.0.weight|"
    "encoder.embeddings.make_embedding.emb_luts.0.embeddings.embeds.0.weight"sv,
    "decoder.embeddings.make_embedding.emb_luts.0.weight|"
    "decoder.embeddings.make_embedding.emb_luts.0.embeddings.embeds.0.weight"sv,
    "?*coder.embeddings.make_embedding.emb_luts.0.embeddings.*"sv,
    "?*coder.embeddings.make_embedding.emb_luts.0.define.*"sv,
    "encoder.embeddings.make_embedding.pe.pe"sv,
    "decoder.embeddings.make_embedding.pe.pe"sv,
    "encoder.transformer.#.self_attn.linear_query.%"sv,
    "encoder.transformer.#.self_attn.linear_keys.%"sv,
    "encoder.transformer.#.self_attn.linear_values.%"sv,
    "encoder.transformer.#.self_attn.final_linear.%"sv,
    "encoder.transformer.#.layer_norm.weight|encoder.transformer.#.layer_norm.a_2"sv,
    "encoder.transformer.#.layer_norm.bias|encoder.transformer.#.layer_norm.b_2"sv,
    "encoder.transformer.#.feed_forward.w_1.%"sv,
    "encoder.transformer.#.feed_forward.w_2.%"sv,
    "?encoder.transformer.#.feed_forward.layer_norm.*"sv,
    "encoder.layer_norm.weight|encoder.layer_norm.a_2"sv,
    "encoder.layer_norm.bias|encoder.layer_norm.b_2"sv,
    "decoder.transformer_layers.#.self_attn.linear_query.%"sv,
    "decoder.transformer_layers.#.self_attn.linear_keys.%"sv,
    "decoder.transformer_layers.#.self_attn.linear_values.%"sv,
    "decoder.transformer_layers.#.self_attn.final_linear.%"sv,
    "decoder.transformer_layers.#.context_attn.linear_query.%"sv,
    "decoder.transformer_layers.#.context_attn.linear_keys.%"sv,
    "decoder.transformer_layers.#.context_attn.linear_values.%"sv,
    "decoder.transformer_layers.#.context_attn.final_linear.%"sv,
    "decoder.transformer_layers.#.feed_forward.w_1.%"sv,
    "decoder.transformer_layers.#.feed_forward.w_2.%"sv,
    "?decoder.transformer_layers.#.feed_forward.layer_norm.*"sv,
    "?decoder.transformer_layers.#.layer_norm_*"sv,
    "?decoder.transformer_layers.#.mask"sv,
    "decoder.layer_norm.weight|decoder.layer_norm.a_2"sv,
    "decoder.layer_norm.bias|decoder.layer_norm.b_2"sv,
    "generator.0.%"sv,
};

constexpr std::array kOpenNmtRnnNames = {
    "encoder.embeddings.make_embedding.emb_luts.0.weight"sv,
    "decoder.embeddings.make_embedding.emb_luts.0.weight"sv,
    "encoder.rnn.weight_ih_l#"sv,
    "encoder.rnn.weight_hh_l#"sv,
    "encoder.rnn.bias_ih_l#"sv,
    "encoder.rnn.bias_hh_l#"sv,
    "?encoder.rnn.*_reverse"sv,
    "?encoder.bridge.#.*"sv,
    "decoder.rnn.layers.#.weight_ih|decoder.rnn.weight_ih_l#"sv,
    "decoder.rnn.layers.#.weight_hh|decoder.rnn.weight_hh_l#"sv,
    "decoder.rnn.layers.#.bias_ih|decoder.rnn.bias_ih_l#"sv,
    "decoder.rnn.layers.#.bias_hh|decoder.rnn.bias_hh_l#"sv,
    "?decoder.attn.*"sv,
    "generator.0.%"sv,
};

constexpr std::array kBertNames = {
    "bert.embeddings.word_embeddings.weight"sv,
    "bert.embeddings.position_embeddings.weight"sv,
    "bert.embeddings.token_type_embeddings.weight"sv,
    "?bert.embeddings.position_ids"sv,
    "bert.embeddings.LayerNorm.weight|bert.embeddings.LayerNorm.gamma"sv,
    "bert.embeddings.LayerNorm.bias|bert.embeddings.LayerNorm.beta"sv,
    "bert.encoder.layer.#.attention.self.query.%"sv,
    "bert.encoder.layer.#.attention.self.key.%"sv,
    "bert.encoder.layer.#.attention.self.value.%"sv,
    "bert.encoder.layer.#.attention.output.dense.%"sv,
    "bert.encoder.layer.#.attention.output.LayerNorm.weight|"
    "bert.encoder.layer.#.attention.output.LayerNorm.gamma"sv,
    "bert.encoder.layer.#.attention.output.LayerNorm.bias|"
    "bert.encoder.layer.#.attention.output.LayerNorm.beta"sv,
    "bert.encoder.layer.#.intermediate.dense.%"sv,
    "bert.encoder.layer.#.output.dense.%"sv,
    "bert.encoder.layer.#.output.LayerNorm.weight|bert.encoder.layer.#.output.LayerNorm.gamma"sv,
    "bert.encoder.layer.#.output.LayerNorm.bias|bert.encoder.layer.#.output.LayerNorm.beta"sv,
    "?bert.pooler.dense.%"sv,
    "?cls.*"sv,
    "?classifier.*"sv,
    "?qa_outputs.*"sv,
};

constexpr std::array kIcefallRnnNames = {
    "input_embedding.weight"sv, "rnn.weight_ih_l#"sv, "rnn.weight_hh_l#"sv,
    "rnn.bias_ih_l#"sv,         "rnn.bias_hh_l#"sv,   "output_linear.%"sv,
};

constexpr std::array kIcefallTransformerNames = {
    "input_embedding.weight"sv,
    "encoder.embed.%"sv,
    "encoder.norm_before.eps"sv,
    "encoder.encoder.layers.#.self_attn.pos_bias_u"sv,
    "encoder.encoder.layers.#.self_attn.pos_bias_v"sv,
    "encoder.encoder.layers.#.self_attn.in_proj.%"sv,
    "encoder.encoder.layers.#.self_attn.out_proj.%"sv,
    "encoder.encoder.layers.#.self_attn.linear_pos.weight"sv,
    "encoder.encoder.layers.#.feed_forward.0.%"sv,
    "encoder.encoder.layers.#.feed_forward.4.%"sv,
    "encoder.encoder.layers.#.norm_final.eps"sv,
    "?encoder.*_scale"sv,
    "output_linear.%"sv,
};

constexpr std::array kEspnetRnnNames = {
    "lm.encoder.weight"sv, "lm.rnn.weight_ih_l#"sv, "lm.rnn.weight_hh_l#"sv,
    "lm.rnn.bias_ih_l#"sv, "lm.rnn.bias_hh_l#"sv,   "lm.decoder.%"sv,
};

constexpr std::array kEspnetTransformerNames = {
    "lm.embed.weight"sv,
    "lm.encoder.embed.0.%|lm.encoder.input_layer.0.%"sv,
    "lm.encoder.embed.1.%|lm.encoder.input_layer.1.%"sv,
    "?lm.encoder.*.pe"sv,
    "lm.encoder.encoders.#.self_attn.linear_q.%"sv,
    "lm.encoder.encoders.#.self_attn.linear_k.%"sv,
    "lm.encoder.encoders.#.self_attn.linear_v.%"sv,
    "lm.encoder.encoders.#.self_attn.linear_out.%"sv,
    "lm.encoder.encoders.#.feed_forward.w_1.%"sv,
    "lm.encoder.encoders.#.feed_forward.w_2.%"sv,
    "lm.encoder.encoders.#.norm1.%"sv,
    "lm.encoder.encoders.#.norm2.%"sv,
    "lm.encoder.after_norm.%|lm.encoder.norm.%"sv,
    "lm.decoder.%"sv,
};

constexpr std::array kSpeechbrainRnnNames = {
    "embedding.Embedding.weight"sv, "rnn.rnn.weight_ih_l#"sv,
    "rnn.rnn.weight_hh_l#"sv,       "rnn.rnn.bias_ih_l#"sv,
    "rnn.rnn.bias_hh_l#"sv,         "?dnn.linear*.w.%"sv,
    "?dnn.norm*.norm.%"sv,          "out.w.%"sv,
};

constexpr std::array kSpeechbrainTransformerNames = {
    "custom_src_module.emb.Embedding.weight"sv,
    "?embedding_proj.w.%"sv,
    "positional_encoding.pe"sv,
    "encoder.layers.#.self_att.att.in_proj_weight"sv,
    "encoder.layers.#.self_att.att.in_proj_bias"sv,
    "encoder.layers.#.self_att.att.out_proj.%"sv,
    "encoder.layers.#.pos_ffn.ffn.0.%"sv,
    "encoder.layers.#.pos_ffn.ffn.3.%"sv,
    "encoder.layers.#.norm1.norm.%"sv,
    "encoder.layers.#.norm2.norm.%"sv,
    "encoder.norm.norm.%"sv,
    "output_proj.layers.0.w.%"sv,
    "output_proj.layers.1.norm.%"sv,
    "output_proj.layers.2.w.%"sv,
};

constexpr std::array kCodes = {
    Framework{"neurips-micronet", "", kMicronetNames},
    Framework{"awd-lstm", "", kAwdLstmNames, WordOrder::kFirstAppearance},
    Framework{"define-awd-lstm", "", kDefineAwdLstmNames, WordOrder::kFirstAppearance},
    Framework{"pytorch-examples", "", kPytorchExamplesNames, WordOrder::kFirstAppearance},
    Framework{"zaremba-tf", "", kZarembaNames, WordOrder::kByCountThenCharacters},
    Framework{"transformer-xl", "", kTransformerXlNames, WordOrder::kByCount},
    Framework{"transfo-xl-hf", "", kTransfoXlNames, WordOrder::kByCount},
    Framework{"fairseq", "", kFairseqNames},
    Framework{"fairseq-translation",
              "has an encoder and a decoder: no family reads fairseq's translation models",
              kFairseqTranslationNames},
    Framework{"opennmt", "", kOpenNmtNames},
    Framework{"opennmt", "", kOpenNmtRnnNames},
    Framework{"icefall-rnn-lm", "", kIcefallRnnNames},
    Framework{"icefall-transformer-lm", "", kIcefallTransformerNames},
    Framework{"espnet-rnn-lm", "", kEspnetRnnNames},
    Framework{"espnet-transformer-lm", "", kEspnetTransformerNames},
    Framework{"speechbrain-rnn-lm", "", kSpeechbrainRnnNames},
    Framework{"speechbrain-transformer-lm", "", kSpeechbrainTransformerNames},
    Framework{"bert", "", kBertNames},
};

}  // namespace

std::span<const Framework> Frameworks() { return kCodes; }

}  // namespace kinglet
