#include "runtime/translation.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <string>
#include <utility>

#include "format/blocks.h"
#include "format/message_text.h"
#include "runtime/beam.h"

namespace kinglet {
namespace {

// An unfinished sequence.
struct PartialTranslation {
  Beam::Hypothesis hypothesis;  // the start token and ids
  std::vector<uint32_t> ids;
  double log_probability = 0;
};

// An unfinished sequence and one more token.
struct Extension {
  size_t from;
  uint32_t id;
  double log_probability;
};

class BeamSearch {
 public:
  BeamSearch(const TranslationOptions& options, Session& session)
      : options_(options), session_(session), width_(session.lanes()), beam_(session, UINT64_MAX) {}

  Result<std::vector<Translation>> Run(std::span<const uint32_t> source, uint32_t start_token) {
    KINGLET_RETURN_IF_ERROR(session_.Encode(source));
    KINGLET_ASSIGN_OR_RETURN(const State encoded, session_.Save());
    KINGLET_ASSIGN_OR_RETURN(const Beam::Hypothesis empty, beam_.Begin(&encoded));
    live_.emplace_back();
    KINGLET_RETURN_IF_ERROR(
        beam_.Step({&empty, 1}, {&start_token, 1}, {&live_.front().hypothesis, 1}));
    for (uint32_t length = 1;; ++length) {
      KINGLET_ASSIGN_OR_RETURN(const std::vector<Extension> kept, BestExtensions());
      std::vector<Extension> open;
      for (const Extension& extension : kept) {
        if (extension.id == options_.end_token) {
          Finish(extension);
        } else {
          open.push_back(extension);
        }
      }
      best_ended_ = best_ended_ || kept.front().id == options_.end_token;
      const bool last = length == options_.max_length;
      if (last) Truncate(open);
      if (open.empty() || last || (best_ended_ && finished_.size() >= options_.n_best)) {
        return Results();
      }
      KINGLET_RETURN_IF_ERROR(Extend(open));
    }
  }

 private:
  double Score(double log_probability, size_t tokens) const {
    return log_probability / std::pow(static_cast<double>(tokens), options_.length_penalty);
  }

  std::vector<Beam::Hypothesis> Live() const {
    std::vector<Beam::Hypothesis> hypotheses;
    for (const PartialTranslation& live : live_) hypotheses.push_back(live.hypothesis);
    return hypotheses;
  }

  // The `width_` best extensions of all sequences, most probable first. The best `width_` tokens
  // after each sequence are enough to find these extensions.
  Result<std::vector<Extension>> BestExtensions() {
    std::vector<Extension> extensions;
    KINGLET_ASSIGN_OR_RETURN(const std::vector<std::vector<Candidate>> tokens,
                             beam_.TopK(Live(), width_));
    for (size_t i = 0; i < live_.size(); ++i) {
      for (const Candidate& token : tokens[i]) {
        extensions.push_back({i, token.id, live_[i].log_probability + token.log_probability});
      }
    }
    // Stable: TopK orders equally probable tokens of one sequence by id.
    std::stable_sort(extensions.begin(), extensions.end(),
                     [](const Extension& a, const Extension& b) {
                       return a.log_probability > b.log_probability;
                     });
    if (extensions.size() > width_) extensions.resize(width_);
    return extensions;
  }

  void Finish(const Extension& extension) {
    const std::vector<uint32_t>& ids = live_[extension.from].ids;
    finished_.push_back(
        {ids, extension.log_probability, Score(extension.log_probability, ids.size() + 1), true});
  }

  // Counts the unfinished sequences as finished, without an end token.
  void Truncate(const std::vector<Extension>& open) {
    for (const Extension& extension : open) {
      std::vector<uint32_t> ids = live_[extension.from].ids;
      ids.push_back(extension.id);
      const double score = Score(extension.log_probability, ids.size());
      finished_.push_back({std::move(ids), extension.log_probability, score, false});
    }
  }

  // Makes the extensions the unfinished sequences.
  Status Extend(const std::vector<Extension>& open) {
    std::vector<PartialTranslation> next;
    std::vector<Beam::Hypothesis> from, to(open.size());
    std::vector<uint32_t> ids;
    for (const Extension& extension : open) {
      const PartialTranslation& before = live_[extension.from];
      from.push_back(before.hypothesis);
      ids.push_back(extension.id);
      next.push_back({0, before.ids, extension.log_probability});
      next.back().ids.push_back(extension.id);
    }
    KINGLET_RETURN_IF_ERROR(beam_.Step(from, ids, to));
    KINGLET_RETURN_IF_ERROR(beam_.Drop(Live()));
    for (size_t i = 0; i < next.size(); ++i) next[i].hypothesis = to[i];
    live_ = std::move(next);
    return {};
  }

  std::vector<Translation> Results() {
    std::vector<Translation> results = std::move(finished_);
    std::stable_sort(results.begin(), results.end(),
                     [](const Translation& a, const Translation& b) { return a.score > b.score; });
    if (results.size() > options_.n_best) results.resize(options_.n_best);
    return results;
  }

  const TranslationOptions& options_;
  Session& session_;
  const uint32_t width_;
  Beam beam_;
  std::vector<PartialTranslation> live_;
  std::vector<Translation> finished_;
  bool best_ended_ = false;  // the most probable extension of this round or an earlier one
};

Status InvalidSource(const char* where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "translation", where, expected, found);
}

}  // namespace

Result<std::vector<Translation>> Translate(std::span<const uint32_t> source,
                                           const TranslationOptions& options, Session& session) {
  const ModelDescription& description = session.model().file().description();
  if (!HasEncoder(description)) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "translation", "model", "one with an encoder",
                           "a language model");
  }
  if (options.end_token >= description.vocabulary_size) {
    return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, "translation", "end token",
                           "a number below " + std::to_string(description.vocabulary_size),
                           std::to_string(options.end_token));
  }
  const auto* decoder = FindBlock<TransformerDecoder>(description);
  if (decoder != nullptr && options.max_length > decoder->window) {
    return InvalidSource("longest length", "1 to the decoder's " + std::to_string(decoder->window),
                         std::to_string(options.max_length));
  }
  if (options.max_length == 0) return InvalidSource("longest length", "1 or more", "0");
  if (options.n_best == 0 || options.n_best > session.lanes()) {
    return InvalidSource("n-best", "1 to the beam's width of " + std::to_string(session.lanes()),
                         std::to_string(options.n_best));
  }
  if (!std::isfinite(options.length_penalty) || options.length_penalty < 0) {
    return InvalidSource("length penalty", "a finite number from 0",
                         NumberText(options.length_penalty));
  }
  try {
    return BeamSearch(options, session).Run(source, *description.start_token);
  } catch (const std::bad_alloc&) {
    return Status(KINGLET_OUT_OF_MEMORY, "translation: out of memory");
  }
}

}  // namespace kinglet
