#include "format/validate_encoder.h"

#include <string>
#include <variant>

#include "format/message_text.h"
#include "format/validate_decoders.h"

namespace kinglet {
namespace {

Status ValidateCrossTensors(const BlockChecks& checks, const std::string& part,
                            const TransformerDecoder& decoder, const CrossAttention& cross,
                            uint64_t encoder_width) {
  // Each factor is at most 2^20, so the products stay below 2^64.
  const uint64_t d = decoder.width, heads = decoder.heads;
  const uint64_t queries = heads * decoder.key_size, attended = heads * decoder.value_size;
  const BlockTensor tensors[] = {
      {"norm_gain", cross.norm_gain, {d}},
      {"norm_bias", cross.norm_bias, {d}},
      {"query_weight", cross.query_weight, {queries, d}},
      {"query_bias", cross.query_bias, {queries}},
      {"key_value_weight", cross.key_value_weight, {queries + attended, encoder_width}},
      {"key_value_bias", cross.key_value_bias, {queries + attended}},
      {"out_weight", cross.out_weight, {d, attended}},
      {"out_bias", cross.out_bias, {d}},
  };
  return checks.ValidateTensors(part, tensors);
}

Status ValidateCrossQuantisers(const BlockChecks& checks, const std::string& part,
                               const CrossAttentionQuantisers& quantisers) {
  const BlockQuantiser named[] = {{"input", quantisers.input},
                                  {"query", quantisers.query},
                                  {"key_value", quantisers.key_value},
                                  {"weights", quantisers.weights},
                                  {"attended", quantisers.attended}};
  return checks.ValidateQuantisers(part, named);
}

}  // namespace

Status ValidateEncoder(const BlockChecks& checks, const TransformerEncoder& encoder) {
  const TransformerDecoder& stack = encoder.stack;
  KINGLET_RETURN_IF_ERROR(ValidateDecoder(checks, stack));
  KINGLET_RETURN_IF_ERROR(ValidateCrossAttention(checks, stack, nullptr));
  const struct {
    const char* part;
    bool holds;
    const char* expected;
    const char* found;
  } rules[] = {
      {"stack, norm order", stack.norm_order == NormOrder::kPre, "the norm first", "the norm last"},
      {"stack, final norm", stack.final_norm_gain.has_value(), "one", "none"},
      {"stack, positions", std::holds_alternative<PositionTable>(stack.positions),
       "a table of positions", "another kind"},
      {"stack, masked token", !stack.masked_token.has_value(), "none", "one"},
  };
  for (const auto& rule : rules) {
    if (!rule.holds) return checks.InvalidPart(rule.part, rule.expected, rule.found);
  }
  return {};
}

Status ValidateCrossAttention(const BlockChecks& checks, const TransformerDecoder& decoder,
                              const TransformerEncoder* encoder) {
  const bool quantised = decoder.output.has_value();
  if (encoder != nullptr) {
    const bool needed = encoder->stack.output.has_value();
    KINGLET_RETURN_IF_ERROR(
        checks.ValidatePresence("output quantiser", quantised, needed,
                                needed ? "the encoder has one" : "the encoder has none"));
  }
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    const auto& cross = decoder.layers[i].cross_attention;
    const std::string part = Numbered("layer", i) + ", cross-attention";
    KINGLET_RETURN_IF_ERROR(checks.ValidatePresence(
        part, cross.has_value(), encoder != nullptr,
        encoder != nullptr ? "the model has an encoder" : "the model has no encoder"));
    if (!cross) continue;
    KINGLET_RETURN_IF_ERROR(
        ValidateCrossTensors(checks, part, decoder, *cross, encoder->stack.width));
    KINGLET_RETURN_IF_ERROR(checks.ValidatePresence(
        part + ", quantisers", cross->quantisers.has_value(), quantised,
        quantised ? "the output has a quantiser" : "the output has no quantiser"));
    if (quantised) {
      KINGLET_RETURN_IF_ERROR(ValidateCrossQuantisers(checks, part, *cross->quantisers));
    }
  }
  return {};
}

}  // namespace kinglet
