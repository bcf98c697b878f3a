// The C interface as C++17 classes: handles that destroy themselves, errors as Status and Result
// (kinglet/status.h), answers as vectors and strings. Each method is a line or two over the
// function of kinglet.h with the corresponding name: Session::StepMany calls
// kinglet_session_step_many. The comment of that function documents what the method does, which
// errors it returns and which threads may call it.
//
//   kinglet::Result<kinglet::Model> model = kinglet::Model::Open("model.kgl");
//   if (!model.ok()) return model.status();
//   kinglet::Result<kinglet::Session> session = kinglet::Session::Create(*model);
//
// kinglet itself throws nothing; vectors and strings throw std::bad_alloc as they do everywhere.
// The methods of an object that was moved from return KINGLET_INVALID_ARGUMENT.
//
// The classes are in an inline namespace, so that a program can link these and the library's own
// classes of the same names.
#ifndef KINGLET_KINGLET_HPP_
#define KINGLET_KINGLET_HPP_

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "kinglet.hpp needs C++17: compile with -std=c++17, or include kinglet/kinglet.h"
#endif

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinglet/archive.hpp"
#include "kinglet/beam.hpp"
#include "kinglet/kinglet.h"
#include "kinglet/model.hpp"
#include "kinglet/ngrams.hpp"
#include "kinglet/state.hpp"
#include "kinglet/status.h"
#include "kinglet/text_words.hpp"
#include "kinglet/typing.hpp"

namespace kinglet {
inline namespace api {

// kinglet_session_options with every field at its default.
struct SessionOptions : kinglet_session_options {
  SessionOptions() : kinglet_session_options() { struct_size = sizeof(kinglet_session_options); }
};

// kinglet_draw_options with every field at its default; `excluded` is a pointer that must be valid
// when the options are used.
struct DrawOptions : kinglet_draw_options {
  DrawOptions() : kinglet_draw_options() {
    kinglet_draw_options_init(this, sizeof(kinglet_draw_options));
  }
};

// One or more streams through a model, one in each lane. Move-only. One thread at a time may use a
// session, except for Cancel. With SessionOptions::threads above 1 a session has worker threads of
// its own.
class Session : public TextQueries<Session> {
 public:
  static Result<Session> Create(const Model& model, const SessionOptions& options = {}) {
    uint32_t words = 0, pooled = 0, scores = 0;
    kinglet_session* session = nullptr;
    kinglet_status status = kinglet_model_vocabulary_size(model.get(), &words);
    if (status == KINGLET_OK) status = kinglet_model_pooled_width(model.get(), &pooled);
    if (status == KINGLET_OK) status = kinglet_model_score_count(model.get(), &scores);
    if (status == KINGLET_OK) status = kinglet_session_create(model.get(), &options, &session);
    return ResultOf(status, Session(session, words, pooled, scores));
  }

  Result<uint32_t> Lanes() const {
    uint32_t lanes = 0;
    const kinglet_status status = kinglet_session_lanes(get(), &lanes);
    return ResultOf(status, lanes);
  }
  Status Step(uint32_t id, uint32_t lane = 0) {
    return StatusOf(kinglet_session_step(get(), lane, id));
  }
  Status StepLanes(const uint32_t* lanes, const uint32_t* ids, size_t count) {
    return StatusOf(kinglet_session_step_lanes(get(), lanes, ids, count));
  }
  // Processes the `count` tokens `ids` of one stream, quicker than one by one. `log_probabilities`
  // has `count` elements or is null; *processed, unless null, becomes the number of tokens that
  // were processed, also after an error.
  Status StepMany(const uint32_t* ids, size_t count, double* log_probabilities = nullptr,
                  uint64_t* processed = nullptr, uint32_t lane = 0) {
    return StatusOf(
        kinglet_session_step_many(get(), lane, ids, count, log_probabilities, processed));
  }
  Status Encode(const uint32_t* source, size_t count, uint32_t lane = 0) {
    return StatusOf(kinglet_session_encode(get(), lane, source, count));
  }
  // Masked models: reads a text of `count` tokens. `segments` has `count` elements, or is null,
  // which means that all are 0.
  Status Read(const uint32_t* ids, const uint32_t* segments, size_t count, uint32_t lane = 0) {
    return StatusOf(kinglet_session_read(get(), lane, ids, segments, count));
  }
  // Masked models: directs the lane's queries to a position of its text.
  Status LookAt(uint64_t position, uint32_t lane = 0) {
    return StatusOf(kinglet_session_look_at(get(), lane, position));
  }
  // Masked models: the pooled vector of the lane's text; Model::PooledWidth elements.
  Result<std::vector<double>> Pooled(uint32_t lane = 0) {
    std::vector<double> out(pooled_width_ + size_t{1});
    const kinglet_status status = kinglet_session_pooled(get(), lane, out.data(), out.size());
    out.resize(pooled_width_);
    return ResultOf(status, std::move(out));
  }
  // Masked models: the scores of the lane's text, or, in a model that finds answers, of the token
  // at `position`, which is otherwise 0; Model::ScoreCount elements.
  Result<std::vector<double>> Scores(uint64_t position = 0, uint32_t lane = 0) {
    std::vector<double> out(score_count_ + size_t{1});
    const kinglet_status status =
        kinglet_session_scores(get(), lane, position, out.data(), out.size());
    out.resize(score_count_);
    return ResultOf(status, std::move(out));
  }
  Status Reset(uint32_t lane = 0) { return StatusOf(kinglet_session_reset(get(), lane)); }
  Result<uint64_t> Position(uint32_t lane = 0) const {
    uint64_t position = 0;
    const kinglet_status status = kinglet_session_position(get(), lane, &position);
    return ResultOf(status, position);
  }
  Status Fork(uint32_t from, uint32_t to) {
    return StatusOf(kinglet_session_fork(get(), from, to));
  }
  // Stops the running call, or else the next one, with KINGLET_CANCELLED. Any thread may call this
  // method.
  Status Cancel() { return StatusOf(kinglet_session_cancel(get())); }

  Result<double> LogProbability(uint32_t id, uint32_t lane = 0) {
    double log_probability = 0;
    const kinglet_status status =
        kinglet_session_log_probability(get(), lane, id, &log_probability);
    return ResultOf(status, log_probability);
  }
  // Element i of the answer is the log-probability of token ids[i].
  Result<std::vector<double>> LogProbabilitiesOf(const uint32_t* ids, size_t count,
                                                 uint32_t lane = 0) {
    std::vector<double> out(count);
    const kinglet_status status =
        kinglet_session_log_probabilities_of(get(), lane, ids, count, out.data());
    return ResultOf(status, std::move(out));
  }
  // Element `id` of the answer is the log-probability of token `id`.
  Result<std::vector<float>> LogProbabilities(uint32_t lane = 0) {
    std::vector<float> out(vocabulary_size_);
    const kinglet_status status =
        kinglet_session_log_probabilities(get(), lane, out.data(), out.size());
    return ResultOf(status, std::move(out));
  }
  // Writes the log-probability of each token to out[id], in the caller's memory. Errors:
  // KINGLET_BUFFER_TOO_SMALL if `capacity` is less than the vocabulary size.
  Status LogProbabilities(float* out, size_t capacity, uint32_t lane = 0) {
    return StatusOf(kinglet_session_log_probabilities(get(), lane, out, capacity));
  }
  // Element `id` of the answer is the probability of token `id`.
  Result<std::vector<float>> Probabilities(uint32_t lane = 0) {
    std::vector<float> out(vocabulary_size_);
    const kinglet_status status =
        kinglet_session_probabilities(get(), lane, out.data(), out.size());
    return ResultOf(status, std::move(out));
  }
  // Writes the probability of each token to out[id], in the caller's memory. Errors:
  // KINGLET_BUFFER_TOO_SMALL if `capacity` is less than the vocabulary size.
  Status Probabilities(float* out, size_t capacity, uint32_t lane = 0) {
    return StatusOf(kinglet_session_probabilities(get(), lane, out, capacity));
  }
  // The k most probable tokens, the most probable first.
  Result<std::vector<Candidate>> TopK(uint32_t k, uint32_t lane = 0) {
    const uint32_t wanted = k < vocabulary_size_ ? k : vocabulary_size_;
    std::vector<uint32_t> ids(wanted);
    std::vector<double> log_probabilities(wanted);
    uint32_t count = 0;
    const kinglet_status status = kinglet_session_top_k(get(), lane, wanted, ids.data(),
                                                        log_probabilities.data(), wanted, &count);
    return ResultOf(status, CandidatesOf(ids, log_probabilities, count));
  }
  Result<uint32_t> Draw(uint64_t seed, const DrawOptions& options = {}, uint32_t lane = 0) {
    uint32_t id = 0;
    const kinglet_status status = kinglet_session_draw(get(), lane, seed, &options, &id);
    return ResultOf(status, id);
  }

  // --- queries that look for tokens and words (words.h). A prefix is any bytes.

  // The fewest tokens whose probabilities reach the fraction `share` of the sum of all, the most
  // probable first.
  Result<std::vector<Candidate>> TopP(double share, uint32_t lane = 0) {
    // The number of tokens is known only after the search, and may be that of all tokens.
    std::vector<uint32_t> ids(vocabulary_size_);
    std::vector<double> log_probabilities(vocabulary_size_);
    uint32_t count = 0;
    const kinglet_status status = kinglet_session_top_p(
        get(), lane, share, ids.data(), log_probabilities.data(), vocabulary_size_, &count);
    return ResultOf(status, CandidatesOf(ids, log_probabilities, count));
  }
  // The rank of a token; 1 for the most probable one.
  Result<uint32_t> Rank(uint32_t id, uint32_t lane = 0) {
    uint32_t rank = 0;
    const kinglet_status status = kinglet_session_rank(get(), lane, id, &rank);
    return ResultOf(status, rank);
  }
  // The k most probable of the `allowed_count` tokens `allowed`, the most probable first.
  Result<std::vector<Candidate>> TopKAllowed(const uint32_t* allowed, size_t allowed_count,
                                             uint32_t k, uint32_t lane = 0) {
    const uint32_t wanted = k < vocabulary_size_ ? k : vocabulary_size_;
    std::vector<uint32_t> ids(wanted);
    std::vector<double> log_probabilities(wanted);
    uint32_t count = 0;
    const kinglet_status status =
        kinglet_session_allowed_top_k(get(), lane, allowed, allowed_count, wanted, ids.data(),
                                      log_probabilities.data(), wanted, &count);
    return ResultOf(status, CandidatesOf(ids, log_probabilities, count));
  }
  // The sum of the probabilities of the `allowed_count` tokens `allowed`; a repeated token counts
  // once.
  Result<double> ProbabilityAllowed(const uint32_t* allowed, size_t allowed_count,
                                    uint32_t lane = 0) {
    double probability = 0;
    const kinglet_status status =
        kinglet_session_allowed_probability(get(), lane, allowed, allowed_count, &probability);
    return ResultOf(status, probability);
  }
  // The k most probable tokens whose texts begin with the prefix, the most probable first.
  Result<std::vector<Candidate>> TopKWithPrefix(std::string_view prefix, uint32_t k,
                                                uint32_t lane = 0) {
    const uint32_t wanted = k < vocabulary_size_ ? k : vocabulary_size_;
    std::vector<uint32_t> ids(wanted);
    std::vector<double> log_probabilities(wanted);
    uint32_t count = 0;
    const kinglet_status status =
        kinglet_session_prefix_top_k(get(), lane, prefix.data(), prefix.size(), wanted, ids.data(),
                                     log_probabilities.data(), wanted, &count);
    return ResultOf(status, CandidatesOf(ids, log_probabilities, count));
  }
  // The sum of the probabilities of the tokens whose texts begin with the prefix.
  Result<double> ProbabilityOfPrefix(std::string_view prefix, uint32_t lane = 0) {
    double probability = 0;
    const kinglet_status status =
        kinglet_session_prefix_probability(get(), lane, prefix.data(), prefix.size(), &probability);
    return ResultOf(status, probability);
  }
  // Each character that follows the prefix in the text of some token, or a value of
  // kinglet_next_character, with the probability of the tokens that continue so.
  Result<std::vector<std::pair<uint32_t, double>>> NextCharacters(std::string_view prefix,
                                                                  uint32_t lane = 0) {
    std::vector<uint32_t> characters(vocabulary_size_);
    std::vector<double> probabilities(vocabulary_size_);
    uint32_t count = 0;
    const kinglet_status status = kinglet_session_next_characters(
        get(), lane, prefix.data(), prefix.size(), characters.data(), probabilities.data(),
        vocabulary_size_, &count);
    std::vector<std::pair<uint32_t, double>> next;
    for (uint32_t i = 0; status == KINGLET_OK && i < count; ++i) {
      next.emplace_back(characters[i], probabilities[i]);
    }
    return ResultOf(status, std::move(next));
  }
  // For entropy coders: the interval [first, second) of the integers below 2^32 that belongs to a
  // token.
  Result<std::pair<uint64_t, uint64_t>> Interval(uint32_t id, uint32_t lane = 0) {
    std::pair<uint64_t, uint64_t> interval(0, 0);
    const kinglet_status status =
        kinglet_session_interval(get(), lane, id, &interval.first, &interval.second);
    return ResultOf(status, interval);
  }
  // For entropy coders: the token whose interval contains the integer `point`.
  Result<uint32_t> WordAt(uint32_t point, uint32_t lane = 0) {
    uint32_t id = 0;
    const kinglet_status status = kinglet_session_word_at(get(), lane, point, &id);
    return ResultOf(status, id);
  }

  // --- queries of `count` lanes at once: element i of the answer is that of lane lanes[i].

  // The log-probability of token ids[i] in lane lanes[i].
  Result<std::vector<double>> LogProbabilityLanes(const uint32_t* lanes, const uint32_t* ids,
                                                  size_t count) {
    std::vector<double> out(count);
    const kinglet_status status =
        kinglet_session_log_probability_lanes(get(), lanes, ids, count, out.data());
    return ResultOf(status, std::move(out));
  }
  // The k most probable tokens of each lane, the most probable first.
  Result<std::vector<std::vector<Candidate>>> TopKLanes(const uint32_t* lanes, size_t count,
                                                        uint32_t k) {
    const size_t wanted = k < vocabulary_size_ ? k : vocabulary_size_;
    std::vector<uint32_t> ids(count * wanted);
    std::vector<double> log_probabilities(count * wanted);
    const kinglet_status status = kinglet_session_top_k_lanes(
        get(), lanes, count, k, ids.data(), log_probabilities.data(), count * wanted, nullptr);
    std::vector<std::vector<Candidate>> best(count);
    for (size_t i = 0; i < ids.size(); ++i) {
      best[i / wanted].push_back({ids[i], log_probabilities[i]});
    }
    return ResultOf(status, std::move(best));
  }
  // The token that Draw draws on lane lanes[i] with seed seeds[i].
  Result<std::vector<uint32_t>> DrawLanes(const uint32_t* lanes, const uint64_t* seeds,
                                          size_t count, const DrawOptions& options = {}) {
    std::vector<uint32_t> out(count);
    const kinglet_status status =
        kinglet_session_draw_lanes(get(), lanes, seeds, count, &options, out.data());
    return ResultOf(status, std::move(out));
  }
  // The log-probability of each of the `count` nodes of a tree (kinglet_session_score_tree).
  Result<std::vector<double>> ScoreTree(const uint32_t* parents, const uint32_t* ids,
                                        size_t count) {
    std::vector<double> out(count);
    const kinglet_status status =
        kinglet_session_score_tree(get(), parents, ids, count, out.data(), nullptr);
    return ResultOf(status, std::move(out));
  }
  // Computes what later queries about these lanes will read (kinglet_session_compute_lanes).
  Status ComputeLanes(const uint32_t* lanes, size_t count) {
    return StatusOf(kinglet_session_compute_lanes(get(), lanes, count));
  }
  Result<kinglet_work> LastWork(uint32_t lane = 0) const {
    kinglet_work work = {};
    work.struct_size = sizeof work;
    const kinglet_status status = kinglet_session_last_work(get(), lane, &work);
    return ResultOf(status, work);
  }

  Result<State> Save(uint32_t lane = 0) {
    kinglet_state* state = nullptr;
    const kinglet_status status = kinglet_session_save(get(), lane, &state);
    return ResultOf(status, State(state));
  }
  Status Restore(const State& state, uint32_t lane = 0) {
    return StatusOf(kinglet_session_restore(get(), lane, state.get()));
  }

  // The C handle, which this object still owns.
  kinglet_session* get() const { return session_.get(); }

 private:
  struct Destroy {
    void operator()(kinglet_session* session) const { kinglet_session_destroy(session); }
  };
  static std::vector<Candidate> CandidatesOf(const std::vector<uint32_t>& ids,
                                             const std::vector<double>& log_probabilities,
                                             uint32_t count) {
    std::vector<Candidate> words;
    words.reserve(count);
    for (uint32_t i = 0; i < count; ++i) words.push_back({ids[i], log_probabilities[i]});
    return words;
  }
  Session(kinglet_session* session, uint32_t vocabulary_size, uint32_t pooled_width,
          uint32_t score_count)
      : session_(session),
        vocabulary_size_(vocabulary_size),
        pooled_width_(pooled_width),
        score_count_(score_count) {}
  std::unique_ptr<kinglet_session, Destroy> session_;
  uint32_t vocabulary_size_, pooled_width_, score_count_;
};

// kinglet_generation_options with every field at its default; its pointers must be valid when the
// options are used.
struct GenerationOptions : kinglet_generation_options {
  GenerationOptions() : kinglet_generation_options() {
    struct_size = sizeof(kinglet_generation_options);
  }
};

// Text that continues from a prompt, in one or more streams. Move-only. One thread at a time may
// use a generation.
class Generation {
 public:
  static Result<Generation> Create(const Model& model, const std::vector<uint32_t>& prompt,
                                   const GenerationOptions& options = {}) {
    kinglet_generation* generation = nullptr;
    const kinglet_status status =
        kinglet_generation_create(model.get(), &options, prompt.data(), prompt.size(), &generation);
    return ResultOf(status, Generation(generation));
  }

  // Draws a token for every stream that has not ended; true if a stream continues.
  Result<bool> Next() {
    int32_t more = 0;
    const kinglet_status status = kinglet_generation_next(get(), &more);
    return ResultOf(status, more != 0);
  }
  Result<bool> Ended(uint32_t stream = 0) const {
    int32_t ended = 0;
    const kinglet_status status = kinglet_generation_ended(get(), stream, &ended);
    return ResultOf(status, ended != 0);
  }
  Result<std::vector<uint32_t>> Ids(uint32_t stream = 0) const {
    uint64_t count = 0;
    kinglet_status status = kinglet_generation_ids(get(), stream, nullptr, 0, &count);
    if (status != KINGLET_OK) return StatusOf(status);
    std::vector<uint32_t> ids(static_cast<size_t>(count));
    status = kinglet_generation_ids(get(), stream, ids.data(), count, nullptr);
    return ResultOf(status, std::move(ids));
  }
  Result<std::string> Text(uint32_t stream = 0) const {
    return TextOf([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return kinglet_generation_text(get(), stream, buffer, capacity, needed);
    });
  }

  // The C handle, which this object still owns.
  kinglet_generation* get() const { return generation_.get(); }

 private:
  struct Destroy {
    void operator()(kinglet_generation* generation) const {
      kinglet_generation_destroy(generation);
    }
  };
  explicit Generation(kinglet_generation* generation) : generation_(generation) {}
  std::unique_ptr<kinglet_generation, Destroy> generation_;
};

// The scores of a list of tokens, one for each class.
struct ClassScores {
  std::vector<double> logits, log_probabilities;
};

// Gives vectors of tokens and class scores of lists of tokens. Move-only. One thread at a time may
// use an embedding.
class Embedding {
 public:
  static Result<Embedding> Create(const Model& model) {
    kinglet_embedding* embedding = nullptr;
    const kinglet_status status = kinglet_embedding_create(model.get(), &embedding);
    return ResultOf(status, Embedding(embedding));
  }

  Result<uint32_t> Width() const {
    uint32_t width = 0;
    const kinglet_status status = kinglet_embedding_width(get(), &width);
    return ResultOf(status, width);
  }
  // 0 for a model without a classifier.
  Result<uint32_t> Classes() const {
    uint32_t classes = 0;
    const kinglet_status status = kinglet_embedding_classes(get(), &classes);
    return ResultOf(status, classes);
  }
  Result<std::vector<float>> Vector(uint32_t id) { return Vectors(&id, 1); }
  // The vectors of `count` tokens, one after the other: element i * width + j of the answer is
  // element j of the vector of token ids[i].
  Result<std::vector<float>> Vectors(const uint32_t* ids, size_t count) {
    const Result<uint32_t> width = Width();
    if (!width.ok()) return width.status();
    std::vector<float> out(count * size_t{*width});
    const kinglet_status status =
        kinglet_embedding_vectors(get(), ids, count, out.data(), out.size());
    return ResultOf(status, std::move(out));
  }
  Result<ClassScores> Classify(const uint32_t* ids, size_t count) {
    const Result<uint32_t> classes = Classes();
    if (!classes.ok()) return classes.status();
    ClassScores scores{std::vector<double>(*classes), std::vector<double>(*classes)};
    const kinglet_status status =
        kinglet_embedding_classify(get(), ids, count, scores.logits.data(),
                                   scores.log_probabilities.data(), scores.logits.size());
    return ResultOf(status, std::move(scores));
  }

  // The C handle, which this object still owns.
  kinglet_embedding* get() const { return embedding_.get(); }

 private:
  struct Destroy {
    void operator()(kinglet_embedding* embedding) const { kinglet_embedding_destroy(embedding); }
  };
  explicit Embedding(kinglet_embedding* embedding) : embedding_(embedding) {}
  std::unique_ptr<kinglet_embedding, Destroy> embedding_;
};

}  // namespace api
}  // namespace kinglet

#endif  // KINGLET_KINGLET_HPP_
