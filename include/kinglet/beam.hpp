// Hypotheses of a search: a part of kinglet.hpp, which includes this file.
#ifndef KINGLET_BEAM_HPP_
#define KINGLET_BEAM_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kinglet/kinglet.h"
#include "kinglet/model.hpp"
#include "kinglet/state.hpp"
#include "kinglet/status.h"

namespace kinglet {
inline namespace api {

// kinglet_beam_options with every field at its default.
struct BeamOptions : kinglet_beam_options {
  BeamOptions() : kinglet_beam_options() { struct_size = sizeof(kinglet_beam_options); }
};

// Hypotheses and what follows them. Move-only. One thread at a time may use a beam, except for
// Cancel. beam.h documents kinglet_beam, and references to hypotheses.
class Beam {
 public:
  static Result<Beam> Create(const Model& model, const BeamOptions& options = {}) {
    uint32_t words = 0;
    kinglet_beam* beam = nullptr;
    kinglet_status status = kinglet_model_vocabulary_size(model.get(), &words);
    if (status == KINGLET_OK) status = kinglet_beam_create(model.get(), &options, &beam);
    return ResultOf(status, Beam(beam, words));
  }

  Result<uint64_t> Begin() { return BeginAfter(nullptr); }
  Result<uint64_t> Begin(const State& state) { return BeginAfter(state.get()); }
  // For `count` pairs of a hypothesis and a token: the hypotheses after them.
  Result<std::vector<uint64_t>> Step(const uint64_t* hypotheses, const uint32_t* ids,
                                     size_t count) {
    std::vector<uint64_t> out(count);
    const kinglet_status status = kinglet_beam_step(get(), hypotheses, ids, count, out.data());
    return ResultOf(status, std::move(out));
  }
  Result<uint64_t> Step(uint64_t hypothesis, uint32_t id) {
    const kinglet_status status = kinglet_beam_step(get(), &hypothesis, &id, 1, &hypothesis);
    return ResultOf(status, hypothesis);
  }
  Status Hold(const std::vector<uint64_t>& hypotheses) {
    return StatusOf(kinglet_beam_hold(get(), hypotheses.data(), hypotheses.size()));
  }
  Status Drop(const std::vector<uint64_t>& hypotheses) {
    return StatusOf(kinglet_beam_drop(get(), hypotheses.data(), hypotheses.size()));
  }
  Result<std::vector<uint32_t>> Tokens(uint64_t hypothesis) const {
    uint64_t count = 0;
    kinglet_status status = kinglet_beam_tokens(get(), hypothesis, nullptr, 0, &count);
    std::vector<uint32_t> ids(static_cast<size_t>(count));
    if (count > 0) status = kinglet_beam_tokens(get(), hypothesis, ids.data(), count, nullptr);
    return ResultOf(status, std::move(ids));
  }
  Result<State> Save(uint64_t hypothesis) {
    kinglet_state* state = nullptr;
    const kinglet_status status = kinglet_beam_save(get(), hypothesis, &state);
    return ResultOf(status, State(state));
  }

  // The log-probability that token ids[i] follows hypotheses[i].
  Result<std::vector<double>> LogProbability(const uint64_t* hypotheses, const uint32_t* ids,
                                             size_t count) {
    std::vector<double> out(count);
    const kinglet_status status =
        kinglet_beam_log_probability(get(), hypotheses, ids, count, out.data());
    return ResultOf(status, std::move(out));
  }
  // The log-probabilities of all tokens after each hypothesis, one row after the other.
  Result<std::vector<float>> LogProbabilities(const uint64_t* hypotheses, size_t count) {
    std::vector<float> out(count * vocabulary_size_);
    const kinglet_status status =
        kinglet_beam_log_probabilities(get(), hypotheses, count, out.data(), out.size());
    return ResultOf(status, std::move(out));
  }
  // The k most probable tokens after each hypothesis.
  Result<std::vector<std::vector<Candidate>>> TopK(const uint64_t* hypotheses, size_t count,
                                                   uint32_t k) {
    const uint32_t wanted = k < vocabulary_size_ ? k : vocabulary_size_;
    std::vector<uint32_t> ids(count * wanted);
    std::vector<double> log_probabilities(ids.size());
    const kinglet_status status = kinglet_beam_top_k(get(), hypotheses, count, wanted, ids.data(),
                                                     log_probabilities.data(), ids.size(), nullptr);
    std::vector<std::vector<Candidate>> best(count);
    for (size_t i = 0; i < ids.size(); ++i) {
      best[i / wanted].push_back({ids[i], log_probabilities[i]});
    }
    return ResultOf(status, std::move(best));
  }
  Result<uint64_t> Stepped() const {
    uint64_t count = 0;
    const kinglet_status status = kinglet_beam_stepped(get(), &count);
    return ResultOf(status, count);
  }
  Status Cancel() { return StatusOf(kinglet_beam_cancel(get())); }

  // The C handle, which this object still owns.
  kinglet_beam* get() const { return beam_.get(); }

 private:
  struct Destroy {
    void operator()(kinglet_beam* beam) const { kinglet_beam_destroy(beam); }
  };
  Beam(kinglet_beam* beam, uint32_t vocabulary_size)
      : beam_(beam), vocabulary_size_(vocabulary_size) {}
  Result<uint64_t> BeginAfter(const kinglet_state* state) {
    uint64_t hypothesis = 0;
    const kinglet_status status = kinglet_beam_begin(get(), state, &hypothesis);
    return ResultOf(status, hypothesis);
  }
  std::unique_ptr<kinglet_beam, Destroy> beam_;
  uint32_t vocabulary_size_;
};

}  // namespace api
}  // namespace kinglet

#endif  // KINGLET_BEAM_HPP_
