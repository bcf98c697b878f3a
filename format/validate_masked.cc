#include "format/validate_masked.h"

#include <optional>
#include <string>
#include <variant>

#include "format/validate_decoders.h"
#include "format/validate_dense.h"
#include "format/validate_encoder.h"

namespace kinglet {
namespace {

// `pooled`: elements of the pooled vector; 0: the model has no pooled vector.
Status ValidateScores(const BlockChecks& checks, const MaskedModel& model, uint64_t pooled) {
  const bool spans = model.scored == ScoredPart::kSpans;
  if (!model.scores) return {};
  if (spans == (pooled > 0)) {
    return checks.InvalidPart("pooler", spans ? "none, as spans are scored" : "one before scores",
                              spans ? "one" : "none");
  }
  uint64_t columns = spans ? model.stack.width : pooled;
  KINGLET_RETURN_IF_ERROR(ValidateDenseLayer(checks, "scores", *model.scores, columns));
  if (model.scored != ScoredPart::kClasses && columns != 2) {
    return checks.InvalidPart("scores, rows of weight", "2", std::to_string(columns));
  }
  return {};
}

}  // namespace

Status ValidateMasked(const BlockChecks& checks, const MaskedModel& model) {
  const TransformerDecoder& stack = model.stack;
  KINGLET_RETURN_IF_ERROR(ValidateDecoder(checks, stack));
  KINGLET_RETURN_IF_ERROR(ValidateCrossAttention(checks, stack, nullptr));
  const struct {
    const char* part;
    bool holds;
    const char* expected;
    const char* found;
  } rules[] = {
      {"stack, norm order", stack.norm_order == NormOrder::kPost, "the norm last", "another"},
      {"stack, final norm", !stack.final_norm_gain.has_value(), "none", "one"},
      {"stack, positions", std::holds_alternative<PositionTable>(stack.positions),
       "a table of positions", "another kind"},
      {"stack, masked token", !stack.masked_token.has_value(), "none", "one"},
      {"segments, bins", model.segments.bins.size() == 1, "one", "another number"},
  };
  for (const auto& rule : rules) {
    if (!rule.holds) return checks.InvalidPart(rule.part, rule.expected, rule.found);
  }
  const BlockTensor tensors[] = {{"norm_gain", model.norm_gain, {stack.width}},
                                 {"norm_bias", model.norm_bias, {stack.width}}};
  KINGLET_RETURN_IF_ERROR(checks.ValidateTensors("embedding", tensors));
  KINGLET_RETURN_IF_ERROR(checks.ValidateEnumerator("scored", model.scored, ScoredPart::kSpans));
  uint64_t pooled = model.pooler ? stack.width : 0;
  if (model.pooler) {
    KINGLET_RETURN_IF_ERROR(ValidateDenseLayer(checks, "pooler", *model.pooler, pooled));
  }
  return ValidateScores(checks, model, pooled);
}

}  // namespace kinglet
