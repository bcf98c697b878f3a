#include "runtime/translation.h"

#include <algorithm>
#include <cmath>
#include <list>
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

// The search for one source's translations. Its hypotheses are in a beam that other searches may
// share.
class BeamSearch {
 public:
  BeamSearch(const TranslationOptions& options, uint32_t width, Beam& beam)
      : options_(options), width_(width), beam_(beam) {}

  Status Begin(const State& encoded, uint32_t start_token) {
    KINGLET_ASSIGN_OR_RETURN(const Beam::Hypothesis empty, beam_.Begin(&encoded));
    live_.emplace_back();
    KINGLET_RETURN_IF_ERROR(
        beam_.Step({&empty, 1}, {&start_token, 1}, {&live_.front().hypothesis, 1}));
    return beam_.Drop({&empty, 1});
  }

  std::vector<Beam::Hypothesis> Live() const {
    std::vector<Beam::Hypothesis> hypotheses;
    for (const PartialTranslation& live : live_) hypotheses.push_back(live.hypothesis);
    return hypotheses;
  }

  // One round; `tokens` are the best `width` tokens after each of Live(). Afterwards the search may
  // have ended.
  Status Advance(std::span<const std::vector<Candidate>> tokens) {
    ++length_;
    const std::vector<Extension> kept = BestExtensions(tokens);
    std::vector<Extension> open;
    for (const Extension& extension : kept) {
      if (extension.id == options_.end_token) {
        Finish(extension);
      } else {
        open.push_back(extension);
      }
    }
    best_ended_ = best_ended_ || kept.front().id == options_.end_token;
    const bool last = length_ == options_.max_length;
    if (last) Truncate(open);
    ended_ = open.empty() || last || (best_ended_ && finished_.size() >= options_.n_best);
    return ended_ ? beam_.Drop(Live()) : Extend(open);
  }
  bool ended() const { return ended_; }

  std::vector<Translation> Results() {
    std::vector<Translation> results = std::move(finished_);
    std::stable_sort(results.begin(), results.end(),
                     [](const Translation& a, const Translation& b) { return a.score > b.score; });
    if (results.size() > options_.n_best) results.resize(options_.n_best);
    return results;
  }

 private:
  double Score(double log_probability, size_t tokens) const {
    const auto n = static_cast<double>(tokens);
    const double length = options_.penalty_form == LengthPenalty::kGnmt ? (5 + n) / 6 : n;
    return log_probability / std::pow(length, options_.length_penalty);
  }

  // The `width_` best extensions of all sequences, most probable first. The best `width_` tokens
  // after each sequence are enough to find these extensions.
  std::vector<Extension> BestExtensions(std::span<const std::vector<Candidate>> tokens) const {
    std::vector<Extension> extensions;
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

  const TranslationOptions& options_;
  const uint32_t width_;
  Beam& beam_;
  std::vector<PartialTranslation> live_;
  std::vector<Translation> finished_;
  uint32_t length_ = 0;      // rounds
  bool best_ended_ = false;  // the most probable extension of this round or an earlier one
  bool ended_ = false;
};

// Searches that advance together in the lanes of a session.
class SearchGroup {
 public:
  SearchGroup(const TranslationOptions& options, uint32_t width, Session& session)
      : options_(options),
        width_(width),
        start_token_(*session.model().file().description().start_token),
        beam_(session, UINT64_MAX) {}

  size_t size() const { return searches_.size(); }
  Status Begin(size_t index, const State& encoded) {
    searches_.emplace_back(index, BeamSearch(options_, width_, beam_));
    return searches_.back().second.Begin(encoded, start_token_);
  }
  // One round of all searches. Calls sink(index, translations) for each that ends.
  template <class Sink>
  Status Advance(const Sink& sink) {
    std::vector<Beam::Hypothesis> live;
    for (const auto& [index, search] : searches_) {
      const std::vector<Beam::Hypothesis> its = search.Live();
      live.insert(live.end(), its.begin(), its.end());
    }
    KINGLET_ASSIGN_OR_RETURN(const std::vector<std::vector<Candidate>> tokens,
                             beam_.TopK(live, width_));
    std::span<const std::vector<Candidate>> rest = tokens;
    for (auto& [index, search] : searches_) {
      const size_t its = search.Live().size();
      KINGLET_RETURN_IF_ERROR(search.Advance(rest.first(its)));
      rest = rest.subspan(its);
      if (search.ended()) sink(index, search.Results());
    }
    std::erase_if(searches_, [](const auto& search) { return search.second.ended(); });
    return Status();
  }

 private:
  const TranslationOptions& options_;
  const uint32_t width_, start_token_;
  Beam beam_;
  std::list<std::pair<size_t, BeamSearch>> searches_;
};

Result<State> EncodeSource(std::span<const uint32_t> source, Session& session) {
  KINGLET_RETURN_IF_ERROR(session.Encode(source));
  return session.Save();
}

Status InvalidSource(const char* where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "translation", where, expected, found);
}

Status CheckTranslation(const TranslationOptions& options, uint32_t width, const Session& session) {
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
  if (options.n_best == 0 || options.n_best > width) {
    return InvalidSource("n-best", "1 to the beam's width of " + std::to_string(width),
                         std::to_string(options.n_best));
  }
  if (!std::isfinite(options.length_penalty) || options.length_penalty < 0) {
    return InvalidSource("length penalty", "a finite number from 0",
                         NumberText(options.length_penalty));
  }
  return Status();
}

}  // namespace

Result<std::vector<Translation>> Translate(std::span<const uint32_t> source,
                                           const TranslationOptions& options, Session& session) {
  const uint32_t width = session.lanes();
  KINGLET_RETURN_IF_ERROR(CheckTranslation(options, width, session));
  try {
    KINGLET_ASSIGN_OR_RETURN(const State encoded, EncodeSource(source, session));
    SearchGroup group(options, width, session);
    KINGLET_RETURN_IF_ERROR(group.Begin(0, encoded));
    std::vector<Translation> found;
    while (group.size() > 0) {
      KINGLET_RETURN_IF_ERROR(group.Advance(
          [&](size_t, std::vector<Translation> translations) { found = std::move(translations); }));
    }
    return found;
  } catch (const std::bad_alloc&) {
    return Status(KINGLET_OUT_OF_MEMORY, "translation: out of memory");
  }
}

Result<std::vector<Result<std::vector<Translation>>>> TranslateTogether(
    std::span<const std::vector<uint32_t>> sources, uint32_t width,
    const TranslationOptions& options, Session& session, Session& encoder) {
  KINGLET_RETURN_IF_ERROR(CheckTranslation(options, width, session));
  const size_t together = std::max<size_t>(session.lanes() / std::max(width, 1U), 1);
  try {
    std::vector<Result<std::vector<Translation>>> answers(sources.size(),
                                                          std::vector<Translation>());
    SearchGroup group(options, width, session);
    for (size_t next = 0; next < sources.size() || group.size() > 0;) {
      for (; next < sources.size() && group.size() < together; ++next) {
        const Result<State> encoded = EncodeSource(sources[next], encoder);
        if (encoded.ok()) {
          KINGLET_RETURN_IF_ERROR(group.Begin(next, *encoded));
        } else {
          answers[next] = encoded.status();
        }
      }
      if (group.size() == 0) continue;
      KINGLET_RETURN_IF_ERROR(
          group.Advance([&](size_t index, std::vector<Translation> translations) {
            answers[index] = std::move(translations);
          }));
    }
    return answers;
  } catch (const std::bad_alloc&) {
    return Status(KINGLET_OUT_OF_MEMORY, "translation: out of memory");
  }
}

}  // namespace kinglet
