#include "converters/tuning/text_trace.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "runtime/accounting/exact_sum.h"
#include "runtime/model.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

constexpr uint64_t kProgressEvery = 256;  // tokens

// Feeds all ids but the last, and calls take(log-probability of the next id) after each.
template <class Take>
Status Run(Session& session, std::span<const uint32_t> ids, const RunProgress& progress,
           const Take& take) {
  for (uint64_t at = 1; at < ids.size(); ++at) {
    KINGLET_RETURN_IF_ERROR(session.StepToken(ids[at - 1]));
    KINGLET_ASSIGN_OR_RETURN(const double log_probability, session.LogProbability(ids[at]));
    take(log_probability);
    if (progress && at % kProgressEvery == 0) progress(at);
  }
  return {};
}

template <class Code>
void AppendCodes(const Code* codes, uint64_t count, std::vector<float>& out) {
  std::transform(codes, codes + count, std::back_inserter(out),
                 [](Code code) { return static_cast<float>(code); });
}

// Appends the hidden state of a stream whose context nodes have run.
void AppendHidden(const BufferSpec& spec, const Slot& slot, const StreamFrame& frame,
                  std::vector<float>& out) {
  switch (spec.element) {
    case Element::kReal:
      out.insert(out.end(), slot.At<float>(frame), slot.At<float>(frame) + slot.count);
      return;
    case Element::kCode16:
      AppendCodes(slot.At<int16_t>(frame), slot.count, out);
      return;
    case Element::kCode32:  // below 2^21: exact too
      AppendCodes(slot.At<int32_t>(frame), slot.count, out);
      return;
    case Element::kCode9:  // hidden states are made neither of these rows nor of words
    case Element::kUint32:
      return;
  }
}

}  // namespace

Result<TextTrace> TraceText(std::shared_ptr<const ModelFile> file, std::span<const uint32_t> ids,
                            const RunProgress& progress) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model,
                           Model::FromFile(std::move(file), ModelOptions{}));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  const Plan& plan = model->plan();
  const BufferSpec& spec = plan.buffer(plan.hidden);
  const Slot& slot = model->layout()[plan.hidden];

  TextTrace trace;
  trace.ids.assign(ids.begin(), ids.end());
  trace.width = slot.count;
  if (spec.quantiser) trace.product_scale = spec.quantiser->scale * spec.quantiser->scale;
  trace.hidden.reserve((ids.size() - 1) * slot.count);
  trace.log_probabilities.reserve(ids.size() - 1);
  const Node* last = &plan.nodes[plan.context.end - 1];
  session->set_observer([&](const Node& node, std::span<const StreamFrame> frames) {
    if (&node == last) AppendHidden(spec, slot, frames.front(), trace.hidden);
  });
  KINGLET_RETURN_IF_ERROR(Run(*session, ids, progress, [&trace](double log_probability) {
    trace.log_probabilities.push_back(log_probability);
  }));
  return trace;
}

Result<double> ScoreText(std::shared_ptr<const ModelFile> file, std::span<const uint32_t> ids,
                         const RunProgress& progress) {
  KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model,
                           Model::FromFile(std::move(file), ModelOptions{}));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(std::move(model)));
  ExactSum total;
  KINGLET_RETURN_IF_ERROR(Run(*session, ids, progress,
                              [&total](double log_probability) { total.Add(log_probability); }));
  // Not -total, which is -0 for a sum of 0.
  return (0.0 - total.Value()) / static_cast<double>(ids.size() - 1);
}

}  // namespace kinglet
