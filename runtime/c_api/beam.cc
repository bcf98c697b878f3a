// Hypotheses of a search through the C interface.
#include "runtime/beam.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"
#include "runtime/token_scorer.h"

kinglet_status kinglet_beam_options_init(kinglet_beam_options* options, uint32_t struct_size) {
  return kinglet::InitOptions(__func__, options, struct_size);
}

void kinglet_beam_destroy(kinglet_beam* beam) { kinglet::Destroy(beam); }

#if defined(KINGLET_SMALL)

// A small library has no room for them (docs/INSTALL.md), so that no handle exists.
kinglet_status kinglet_beam_create(const kinglet_model* /*model*/,
                                   const kinglet_beam_options* /*options*/,
                                   kinglet_beam** /*out*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

kinglet_status kinglet_beam_begin(kinglet_beam* /*beam*/, const kinglet_state* /*state*/,
                                  uint64_t* /*out*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

kinglet_status kinglet_beam_step(kinglet_beam* /*beam*/, const uint64_t* /*hypotheses*/,
                                 const uint32_t* /*ids*/, uint64_t /*count*/, uint64_t* /*out*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

kinglet_status kinglet_beam_hold(kinglet_beam* /*beam*/, const uint64_t* /*hypotheses*/,
                                 uint64_t /*count*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

kinglet_status kinglet_beam_drop(kinglet_beam* /*beam*/, const uint64_t* /*hypotheses*/,
                                 uint64_t /*count*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

kinglet_status kinglet_beam_tokens(const kinglet_beam* /*beam*/, uint64_t /*hypothesis*/,
                                   uint32_t* /*ids*/, uint64_t /*capacity*/, uint64_t* /*needed*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

kinglet_status kinglet_beam_save(kinglet_beam* /*beam*/, uint64_t /*hypothesis*/,
                                 kinglet_state** /*out*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

kinglet_status kinglet_beam_log_probability(kinglet_beam* /*beam*/, const uint64_t* /*hypotheses*/,
                                            const uint32_t* /*ids*/, uint64_t /*count*/,
                                            double* /*out*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

kinglet_status kinglet_beam_log_probabilities(kinglet_beam* /*beam*/,
                                              const uint64_t* /*hypotheses*/, uint64_t /*count*/,
                                              float* /*out*/, uint64_t /*capacity*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

kinglet_status kinglet_beam_top_k(kinglet_beam* /*beam*/, const uint64_t* /*hypotheses*/,
                                  uint64_t /*count*/, uint32_t /*k*/, uint32_t* /*ids*/,
                                  double* /*log_probabilities*/, uint64_t /*capacity*/,
                                  uint32_t* /*per_hypothesis*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

kinglet_status kinglet_beam_stepped(const kinglet_beam* /*beam*/, uint64_t* /*out*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

kinglet_status kinglet_beam_cancel(kinglet_beam* /*beam*/) {
  return kinglet::WithoutPart(__func__, "beams");
}

#else

namespace kinglet {
namespace {

// The size of the structure's first version.
constexpr uint32_t kSmallestBeamOptions = offsetof(kinglet_beam_options, scorer);

Result<std::unique_ptr<kinglet_beam> > CreateBeam(const char* function, const kinglet_model* model,
                                                  const kinglet_beam_options* given) {
  constexpr uint32_t kLanes = 16;
  constexpr uint64_t kStateBytes = uint64_t{64} << 20;
  KINGLET_ASSIGN_OR_RETURN(const kinglet_beam_options options,
                           ReadOptions(function, given, kSmallestBeamOptions));
  const kinglet_session_options lanes = {sizeof lanes, options.empty_cache,
                                         options.lanes != 0 ? options.lanes : kLanes,
                                         options.threads};
  KINGLET_ASSIGN_OR_RETURN(const SessionOptions of_session, ReadSessionOptions(function, &lanes));
  if (model->model->plan().reading) {
    return Status::Refusal(KINGLET_UNSUPPORTED, function, "model", "a language model",
                           "a masked model, which reads whole texts (kinglet_session_read)");
  }
  std::shared_ptr<const TokenScorer> scorer;
  if (options.scorer != nullptr) {
    if (options.scorer->model != model->model) {
      return Invalid(function, "options->scorer", "a scorer of this model", "one of another");
    }
    const auto copy = std::make_shared<TokenScorer>(options.scorer->scorer);
    copy->Link();
    scorer = copy;
  }
  KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                           Session::Create(model->model, of_session));
  const uint64_t bytes = options.state_bytes != 0 ? options.state_bytes : kStateBytes;
  return std::make_unique<kinglet_beam>(std::move(session), bytes, std::move(scorer));
}

// Calls body(hypotheses) if the caller's handle and array may be read.
template <class Body>
kinglet_status WithHypotheses(const char* function, const kinglet_beam* beam,
                              const uint64_t* hypotheses, uint64_t count, const Body& body) {
  return With(function, "beam", beam, [&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto read, ReadArray(function, "hypotheses", hypotheses, count));
    return body(read);
  });
}

}  // namespace
}  // namespace kinglet

using kinglet::Get;
using kinglet::Guard;
using kinglet::ReadArray;
using kinglet::RequireCapacity;
using kinglet::RequirePointer;
using kinglet::Status;
using kinglet::With;
using kinglet::WithHypotheses;

kinglet_status kinglet_beam_create(const kinglet_model* model, const kinglet_beam_options* options,
                                   kinglet_beam** out) {
  const char* const function = __func__;
  return With(function, "model", model, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(auto beam, kinglet::CreateBeam(function, model, options));
    *out = beam.release();
    return Status();
  });
}

kinglet_status kinglet_beam_begin(kinglet_beam* beam, const kinglet_state* state, uint64_t* out) {
  return Get(__func__, "beam", beam, out,
             [&] { return beam->beam.Begin(state == nullptr ? nullptr : &state->state); });
}

kinglet_status kinglet_beam_step(kinglet_beam* beam, const uint64_t* hypotheses,
                                 const uint32_t* ids, uint64_t count, uint64_t* out) {
  const char* const function = __func__;
  return WithHypotheses(function, beam, hypotheses, count, [&](auto from) -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto tokens, ReadArray(function, "ids", ids, count));
    KINGLET_ASSIGN_OR_RETURN(const auto to, ReadArray(function, "out", out, count));
    return beam->beam.Step(from, tokens, to);
  });
}

kinglet_status kinglet_beam_hold(kinglet_beam* beam, const uint64_t* hypotheses, uint64_t count) {
  return WithHypotheses(__func__, beam, hypotheses, count,
                        [&](auto held) { return beam->beam.Hold(held); });
}

kinglet_status kinglet_beam_drop(kinglet_beam* beam, const uint64_t* hypotheses, uint64_t count) {
  return WithHypotheses(__func__, beam, hypotheses, count,
                        [&](auto dropped) { return beam->beam.Drop(dropped); });
}

kinglet_status kinglet_beam_tokens(const kinglet_beam* beam, uint64_t hypothesis, uint32_t* ids,
                                   uint64_t capacity, uint64_t* needed) {
  const char* const function = __func__;
  return With(function, "beam", beam, [&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> tokens, beam->beam.Tokens(hypothesis));
    KINGLET_ASSIGN_OR_RETURN(
        const bool wanted, kinglet::PrepareBuffer(function, tokens.size(), ids, capacity, needed));
    if (wanted) std::copy(tokens.begin(), tokens.end(), ids);
    return Status();
  });
}

kinglet_status kinglet_beam_save(kinglet_beam* beam, uint64_t hypothesis, kinglet_state** out) {
  const char* const function = __func__;
  return With(function, "beam", beam, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    return kinglet::Publish(beam->beam.Save(hypothesis), out);
  });
}

kinglet_status kinglet_beam_log_probability(kinglet_beam* beam, const uint64_t* hypotheses,
                                            const uint32_t* ids, uint64_t count, double* out) {
  const char* const function = __func__;
  return WithHypotheses(function, beam, hypotheses, count, [&](auto asked) -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto tokens, ReadArray(function, "ids", ids, count));
    KINGLET_ASSIGN_OR_RETURN(const auto answers, ReadArray(function, "out", out, count));
    return beam->beam.LogProbabilities(asked, tokens, answers);
  });
}

kinglet_status kinglet_beam_log_probabilities(kinglet_beam* beam, const uint64_t* hypotheses,
                                              uint64_t count, float* out, uint64_t capacity) {
  const char* const function = __func__;
  return WithHypotheses(function, beam, hypotheses, count, [&](auto asked) -> Status {
    const uint64_t words = beam->session->model().vocabulary_size();
    if (asked.empty()) return Status();
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(const size_t size,
                             kinglet::ReadCount(function, "count", asked.size(),
                                                static_cast<size_t>(words * sizeof *out)));
    KINGLET_RETURN_IF_ERROR(RequireCapacity(function, size * words, capacity));
    return beam->beam.Distributions(asked, {out, static_cast<size_t>(size * words)});
  });
}

kinglet_status kinglet_beam_top_k(kinglet_beam* beam, const uint64_t* hypotheses, uint64_t count,
                                  uint32_t k, uint32_t* ids, double* log_probabilities,
                                  uint64_t capacity, uint32_t* per_hypothesis) {
  const char* const function = __func__;
  return WithHypotheses(function, beam, hypotheses, count, [&](auto asked) -> Status {
    const uint32_t wanted = std::min(k, beam->session->model().vocabulary_size());
    const auto report = [&] {
      if (per_hypothesis != nullptr) *per_hypothesis = wanted;
    };
    if (ids != nullptr || log_probabilities != nullptr) {
      const Status room = RequireCapacity(function, asked.size() * uint64_t{wanted}, capacity);
      if (!room.ok()) report();
      KINGLET_RETURN_IF_ERROR(room);
    }
    KINGLET_ASSIGN_OR_RETURN(const auto best, beam->beam.TopK(asked, wanted));
    kinglet::WriteRows(best, ids, log_probabilities);
    report();
    return Status();
  });
}

kinglet_status kinglet_beam_stepped(const kinglet_beam* beam, uint64_t* out) {
  return Get(__func__, "beam", beam, out, [&] { return beam->beam.stepped(); });
}

kinglet_status kinglet_beam_cancel(kinglet_beam* beam) {
  return With(__func__, "beam", beam, [&] {
    beam->session->Cancel();
    return Status();
  });
}

#endif  // KINGLET_SMALL
