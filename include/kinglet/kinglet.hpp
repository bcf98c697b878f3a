// The C interface as C++17 classes: handles that destroy themselves, errors as Status and Result
// (kinglet/status.h), answers as vectors and strings. Each method is a line or two over the
// function of kinglet.h with the corresponding name. kinglet.h says what it does, which errors it
// returns and which threads may call it.
//
//   kinglet::Result<kinglet::Model> model = kinglet::Model::Open("model.kgl");
//   if (!model.ok()) return model.status();
//   kinglet::Result<kinglet::Session> session = kinglet::Session::Create(*model);
//
// kinglet itself throws nothing; vectors and strings throw std::bad_alloc as they do everywhere. An
// object that was moved from is empty: its methods return KINGLET_INVALID_ARGUMENT.
//
// The classes are in an inline namespace, so that a program can link these and the library's own
// classes of the same names.
#ifndef KINGLET_KINGLET_HPP_
#define KINGLET_KINGLET_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinglet/kinglet.h"
#include "kinglet/status.h"

namespace kinglet {
inline namespace api {

// kinglet_model_options with every field at its default.
struct ModelOptions : kinglet_model_options {
  ModelOptions() : kinglet_model_options() { struct_size = sizeof(kinglet_model_options); }
};

// kinglet_session_options with every field at its default.
struct SessionOptions : kinglet_session_options {
  SessionOptions() : kinglet_session_options() { struct_size = sizeof(kinglet_session_options); }
};

// A word and its natural log-probability.
struct Candidate {
  uint32_t id;
  double log_probability;
};

// A token of a text and its bytes there, [begin, end).
struct TextToken {
  uint32_t id;
  uint64_t begin, end;
};

// The status that a function of the C interface returned, with the thread's error text.
inline Status StatusOf(kinglet_status status) {
  if (status == KINGLET_OK) return Status();
  return Status(static_cast<StatusCode>(status), kinglet_error_message());
}

// `value` if the call that was to set it succeeded, otherwise the call's error.
template <class T>
Result<T> ResultOf(kinglet_status status, T value) {
  if (status != KINGLET_OK) return StatusOf(status);
  return value;
}

// The text that write(buffer, capacity, needed) writes as kinglet_model_token_text does: called
// twice, for the size and for the text.
template <class Write>
Result<std::string> TextOf(const Write& write) {
  uint64_t needed = 0;
  if (const kinglet_status status = write(nullptr, 0, &needed); status != KINGLET_OK) {
    return StatusOf(status);
  }
  std::string text(static_cast<size_t>(needed), '\0');
  const kinglet_status status = write(text.data(), needed, &needed);
  text.pop_back();  // the NUL
  return ResultOf(status, std::move(text));
}

// A verified model. Move-only. Immutable: any number of threads may use one at the same time.
class Model {
 public:
  static Result<Model> Open(const std::string& path, const ModelOptions& options = {}) {
    kinglet_model* model = nullptr;
    const kinglet_status status = kinglet_model_open(path.c_str(), &options, &model);
    return ResultOf(status, Model(model));
  }
  static Result<Model> OpenMemory(const void* bytes, size_t size,
                                  const ModelOptions& options = {}) {
    kinglet_model* model = nullptr;
    const kinglet_status status = kinglet_model_open_memory(bytes, size, &options, &model);
    return ResultOf(status, Model(model));
  }

  Result<uint32_t> VocabularySize() const {
    uint32_t size = 0;
    const kinglet_status status = kinglet_model_vocabulary_size(get(), &size);
    return ResultOf(status, size);
  }
  Result<uint32_t> StartToken() const {
    uint32_t id = 0;
    const kinglet_status status = kinglet_model_start_token(get(), &id);
    return ResultOf(status, id);
  }
  Result<uint32_t> Positions() const {
    uint32_t positions = 0;
    const kinglet_status status = kinglet_model_positions(get(), &positions);
    return ResultOf(status, positions);
  }
  Result<bool> HasWords() const {
    int32_t has_words = 0;
    const kinglet_status status = kinglet_model_has_words(get(), &has_words);
    return ResultOf(status, has_words != 0);
  }
  Result<std::string> TokenText(uint32_t id) const {
    return TextOf([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return kinglet_model_token_text(get(), id, buffer, capacity, needed);
    });
  }
  Result<uint32_t> FindToken(std::string_view text) const {
    uint32_t id = 0;
    // data() of an empty view may be null, which the C interface refuses.
    const char* const bytes = text.empty() ? "" : text.data();
    const kinglet_status status = kinglet_model_find_token(get(), bytes, text.size(), &id);
    return ResultOf(status, id);
  }
  // The tokens of a text, as kinglet_model_tokenize cuts it.
  Result<std::vector<TextToken>> Tokenize(std::string_view text) const {
    const char* const bytes = text.empty() ? "" : text.data();
    uint64_t count = 0;
    kinglet_status status =
        kinglet_model_tokenize(get(), bytes, text.size(), nullptr, nullptr, 0, &count);
    if (status != KINGLET_OK) return StatusOf(status);
    std::vector<uint32_t> ids(count);
    std::vector<uint64_t> ranges(2 * count);
    status = kinglet_model_tokenize(get(), bytes, text.size(), ids.data(), ranges.data(), count,
                                    nullptr);
    if (status != KINGLET_OK) return StatusOf(status);
    std::vector<TextToken> tokens;
    for (size_t i = 0; i < ids.size(); ++i) {
      tokens.push_back({ids[i], ranges[2 * i], ranges[2 * i + 1]});
    }
    return tokens;
  }
  Result<std::string> Detokenize(const std::vector<uint32_t>& ids) const {
    const uint32_t none = 0;
    const uint32_t* const first = ids.empty() ? &none : ids.data();
    return TextOf([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return kinglet_model_detokenize(get(), first, ids.size(), buffer, capacity, needed);
    });
  }
  // 0 for a model without an encoder.
  Result<uint32_t> SourceVocabularySize() const {
    uint32_t size = 0;
    const kinglet_status status = kinglet_model_source_vocabulary_size(get(), &size);
    return ResultOf(status, size);
  }
  Result<uint32_t> FindSourceToken(std::string_view text) const {
    uint32_t id = 0;
    const char* const bytes = text.empty() ? "" : text.data();
    const kinglet_status status = kinglet_model_find_source_token(get(), bytes, text.size(), &id);
    return ResultOf(status, id);
  }
  Result<std::string> Digest() const {
    return TextOf([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return kinglet_model_digest(get(), buffer, capacity, needed);
    });
  }
  Result<std::string> Backend() const {
    return TextOf([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return kinglet_model_backend(get(), buffer, capacity, needed);
    });
  }
  Result<uint64_t> LaneBytes() const {
    uint64_t bytes = 0;
    const kinglet_status status = kinglet_model_lane_bytes(get(), &bytes);
    return ResultOf(status, bytes);
  }
  Result<uint64_t> StateBytes() const {
    uint64_t bytes = 0;
    const kinglet_status status = kinglet_model_state_bytes(get(), &bytes);
    return ResultOf(status, bytes);
  }

  // The C handle, which this object still owns.
  kinglet_model* get() const { return model_.get(); }

 private:
  struct Close {
    void operator()(kinglet_model* model) const { kinglet_model_close(model); }
  };
  explicit Model(kinglet_model* model) : model_(model) {}
  std::unique_ptr<kinglet_model, Close> model_;
};

// Everything that a stream remembers. Copies share one immutable state, which any number of threads
// may use at the same time.
class State {
 public:
  static Result<State> Read(const Model& model, const void* bytes, size_t size) {
    kinglet_state* state = nullptr;
    const kinglet_status status = kinglet_state_read(model.get(), bytes, size, &state);
    return ResultOf(status, State(state));
  }
  // Takes ownership of the handle.
  explicit State(kinglet_state* state) : state_(state, kinglet_state_destroy) {}

  Result<uint64_t> Position() const {
    uint64_t position = 0;
    const kinglet_status status = kinglet_state_position(get(), &position);
    return ResultOf(status, position);
  }
  Result<uint64_t> Hash() const {
    uint64_t hash = 0;
    const kinglet_status status = kinglet_state_hash(get(), &hash);
    return ResultOf(status, hash);
  }
  Result<uint64_t> Bytes() const {
    uint64_t bytes = 0;
    const kinglet_status status = kinglet_state_bytes(get(), &bytes);
    return ResultOf(status, bytes);
  }
  Result<std::vector<unsigned char>> Write() const {
    uint64_t size = 0;
    if (const kinglet_status status = kinglet_state_bytes(get(), &size); status != KINGLET_OK) {
      return StatusOf(status);
    }
    std::vector<unsigned char> bytes(static_cast<size_t>(size));
    const kinglet_status status = kinglet_state_write(get(), bytes.data(), size, nullptr);
    return ResultOf(status, std::move(bytes));
  }

  // A state that was moved from equals only another such state.
  friend bool operator==(const State& a, const State& b) {
    int32_t equal = 0;
    if (a.get() == b.get()) return true;
    return kinglet_state_equal(a.get(), b.get(), &equal) == KINGLET_OK && equal != 0;
  }
  friend bool operator!=(const State& a, const State& b) { return !(a == b); }

  // The C handle, which this object and its copies still own.
  const kinglet_state* get() const { return state_.get(); }

 private:
  std::shared_ptr<kinglet_state> state_;
};

// One or more streams through a model, one in each lane. Move-only. One thread at a time may use
// it, except for Cancel. With SessionOptions::threads above 1 it has worker threads of its own.
class Session {
 public:
  static Result<Session> Create(const Model& model, const SessionOptions& options = {}) {
    uint32_t words = 0;
    kinglet_session* session = nullptr;
    kinglet_status status = kinglet_model_vocabulary_size(model.get(), &words);
    if (status == KINGLET_OK) status = kinglet_session_create(model.get(), &options, &session);
    return ResultOf(status, Session(session, words));
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
  Status Encode(const uint32_t* source, size_t count, uint32_t lane = 0) {
    return StatusOf(kinglet_session_encode(get(), lane, source, count));
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
  // Any thread may call this.
  Status Cancel() { return StatusOf(kinglet_session_cancel(get())); }

  Result<double> LogProbability(uint32_t id, uint32_t lane = 0) {
    double log_probability = 0;
    const kinglet_status status =
        kinglet_session_log_probability(get(), lane, id, &log_probability);
    return ResultOf(status, log_probability);
  }
  // Element i is the log-probability of word ids[i].
  Result<std::vector<double>> LogProbabilitiesOf(const uint32_t* ids, size_t count,
                                                 uint32_t lane = 0) {
    std::vector<double> out(count);
    const kinglet_status status =
        kinglet_session_log_probabilities_of(get(), lane, ids, count, out.data());
    return ResultOf(status, std::move(out));
  }
  // Element `id` is the log-probability of word `id`.
  Result<std::vector<float>> LogProbabilities(uint32_t lane = 0) {
    std::vector<float> out(vocabulary_size_);
    const kinglet_status status =
        kinglet_session_log_probabilities(get(), lane, out.data(), out.size());
    return ResultOf(status, std::move(out));
  }
  // The same, written to the caller's memory. Errors: KINGLET_BUFFER_TOO_SMALL.
  Status LogProbabilities(float* out, size_t capacity, uint32_t lane = 0) {
    return StatusOf(kinglet_session_log_probabilities(get(), lane, out, capacity));
  }
  Result<std::vector<float>> Probabilities(uint32_t lane = 0) {
    std::vector<float> out(vocabulary_size_);
    const kinglet_status status =
        kinglet_session_probabilities(get(), lane, out.data(), out.size());
    return ResultOf(status, std::move(out));
  }
  Status Probabilities(float* out, size_t capacity, uint32_t lane = 0) {
    return StatusOf(kinglet_session_probabilities(get(), lane, out, capacity));
  }
  // The most probable word first.
  Result<std::vector<Candidate>> TopK(uint32_t k, uint32_t lane = 0) {
    const uint32_t wanted = k < vocabulary_size_ ? k : vocabulary_size_;
    std::vector<uint32_t> ids(wanted);
    std::vector<double> log_probabilities(wanted);
    uint32_t count = 0;
    const kinglet_status status = kinglet_session_top_k(get(), lane, wanted, ids.data(),
                                                        log_probabilities.data(), wanted, &count);
    std::vector<Candidate> best;
    best.reserve(count);
    for (uint32_t i = 0; i < count; ++i) best.push_back({ids[i], log_probabilities[i]});
    return ResultOf(status, std::move(best));
  }
  Result<uint32_t> Sample(uint64_t seed, double temperature = 1, uint32_t lane = 0) {
    uint32_t id = 0;
    const kinglet_status status = kinglet_session_sample(get(), lane, seed, temperature, &id);
    return ResultOf(status, id);
  }
  // The queries above for `count` lanes at once: element i answers for lane lanes[i].
  Result<std::vector<double>> LogProbabilityLanes(const uint32_t* lanes, const uint32_t* ids,
                                                  size_t count) {
    std::vector<double> out(count);
    const kinglet_status status =
        kinglet_session_log_probability_lanes(get(), lanes, ids, count, out.data());
    return ResultOf(status, std::move(out));
  }
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
  Result<std::vector<uint32_t>> SampleLanes(const uint32_t* lanes, const uint64_t* seeds,
                                            size_t count, double temperature = 1) {
    std::vector<uint32_t> out(count);
    const kinglet_status status =
        kinglet_session_sample_lanes(get(), lanes, seeds, count, temperature, out.data());
    return ResultOf(status, std::move(out));
  }
  // The log-probability of each of a tree's `count` nodes; see kinglet_session_score_tree.
  Result<std::vector<double>> ScoreTree(const uint32_t* parents, const uint32_t* ids,
                                        size_t count) {
    std::vector<double> out(count);
    const kinglet_status status =
        kinglet_session_score_tree(get(), parents, ids, count, out.data(), nullptr);
    return ResultOf(status, std::move(out));
  }
  // Computes what later queries about these lanes will read; see kinglet_session_compute_lanes.
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
  Session(kinglet_session* session, uint32_t vocabulary_size)
      : session_(session), vocabulary_size_(vocabulary_size) {}
  std::unique_ptr<kinglet_session, Destroy> session_;
  uint32_t vocabulary_size_;
};

// The scores of a list of words, one for each class.
struct ClassScores {
  std::vector<double> logits, log_probabilities;
};

// Gives vectors of words and scores of lists of words. Move-only. One thread at a time may use it.
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
  // The words' vectors one after the other: element i * width + j is element j of that of ids[i].
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
